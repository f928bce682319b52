//! Admission of messages to sessions. Without shared stores the session table decides; with them the store does, in one
//! call, and the table is a cache.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_server::subscriptions::{Event, Position};
use duplexer_server::{ConnectionSnapshot, RunningServer};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;
use http::StatusCode;
use tokio::time::{Instant, sleep};

use super::store::jittered;
use super::stores::Stores;
use super::{NOT_FOUND, Session, Sessions, caller, change_delivery, random};
use crate::server::config::Responses;
use crate::server::reply::{self, Reply};
use crate::server::request::RequestContext;
use crate::server::rpc_response::RpcResponse;
use crate::session::{
    Admission, Admitted, Change, Created, NewRequest, Placement, PrincipalKey, Revision, SessionDigest,
    SessionRecord, StreamId,
};
use crate::sync::{Mutex, lock};

/// What a session with shared stores has in addition.
pub(super) struct SharedSession {
    pub(super) digest: SessionDigest,
    running: RunningServer,
    known: Mutex<KnownRecord>,
}

/// The record as this node knows it.
struct KnownRecord {
    record: SessionRecord,
    revision: Revision,
    /// The revision after this node's last change. An earlier record does not contain that change.
    written: Revision,
}

impl SharedSession {
    fn new(running: &RunningServer, id: &str, record: SessionRecord, revision: Revision) -> Box<Self> {
        let known = Mutex::new(KnownRecord { record, revision, written: revision });
        Box::new(Self { digest: SessionDigest::of(id), running: running.clone(), known })
    }

    /// Notes what was stored, and the revision after it.
    fn note(&self, changes: &[Change], revision: Option<Revision>) {
        let mut known = lock(&self.known);
        for change in changes {
            change.apply(&mut known.record.connection);
        }
        if let Some(revision) = revision {
            known.written = known.written.max(revision);
            // If another node has changed the record too, the next message brings it along.
            if revision.0 == known.revision.0 + 1 {
                known.revision = revision;
            }
        }
    }
}

/// Reason why a message is not admitted.
#[derive(Debug)]
pub(in crate::server) enum NotAdmitted {
    /// There is no such session, or it belongs to another principal.
    Unknown,
    /// A request with this id is in flight, at whichever node.
    InFlight,
    /// The limit of requests in flight of the session is reached.
    TooManyRequests,
    /// The limit of open sessions is reached.
    TooManySessions,
    /// The store has failed.
    Store(StoreError),
}

impl NotAdmitted {
    /// Returns the reply to a message, or to a request with this id.
    pub(in crate::server) fn reply(&self, id: Option<&RequestId>) -> Reply {
        match (self, id) {
            (Self::InFlight, Some(id)) => {
                reply::rpc_error(StatusCode::CONFLICT, Some(id), &ErrorObject::id_in_flight(id))
            }
            (Self::Unknown | Self::InFlight, _) => reply::invalid_request(StatusCode::NOT_FOUND, NOT_FOUND),
            (Self::TooManyRequests, id) => reply::unavailable(id, super::call::TOO_MANY_CALLS),
            (Self::TooManySessions, id) => reply::too_many_sessions(id),
            (Self::Store(error), id) => reply::store_failed(id, error),
        }
    }

    /// Returns the response to a request of a batch.
    pub(super) fn response(&self, id: &RequestId) -> RpcResponse {
        let internal = |text: &'static str| ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
        let (error, status) = match self {
            Self::Unknown => (ErrorObject::new(ErrorCode::INVALID_REQUEST, NOT_FOUND), StatusCode::NOT_FOUND),
            Self::InFlight => (ErrorObject::id_in_flight(id), StatusCode::CONFLICT),
            Self::TooManyRequests => (internal(super::call::TOO_MANY_CALLS), StatusCode::SERVICE_UNAVAILABLE),
            Self::TooManySessions | Self::Store(_) => {
                (internal(reply::STORE_UNAVAILABLE), StatusCode::SERVICE_UNAVAILABLE)
            }
        };
        RpcResponse::failure(id, &error, status)
    }
}

impl From<StoreError> for NotAdmitted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// A request that is admitted to its session.
pub(in crate::server) struct AdmittedCall {
    pub(super) id: RequestId,
    /// The stream of its events, if there is an event store.
    pub(super) stream: Option<StreamId>,
    pub(super) shared: Option<SharedCall>,
}

/// A request in the shared stores. Dropping it removes the request from those in flight.
pub(super) struct SharedCall {
    stores: Arc<Stores>,
    session: Arc<str>,
    request: RequestId,
    placement: Placement,
    release: Release,
}

#[derive(PartialEq, Eq)]
enum Release {
    OnDrop,
    /// It was not admitted, or the last event of its stream does so.
    Unneeded,
}

impl SharedCall {
    /// Leaves the removal to the last event of the request's stream.
    pub(super) fn ends_with_stream(mut self) {
        self.release = Release::Unneeded;
    }
}

impl Drop for SharedCall {
    fn drop(&mut self) {
        if self.release == Release::Unneeded {
            return;
        }
        let stores = Arc::clone(&self.stores);
        let (session, request, placement) = (Arc::clone(&self.session), self.request.clone(), self.placement);
        self.stores.spawn(async move {
            let Some(shared) = stores.shared() else { return };
            let released = || shared.sessions.release(&session, &request, placement);
            let start = Instant::now();
            while stores.guard().run(released).await.is_err() && start.elapsed() < RELEASE {
                sleep(jittered(RELEASE_PAUSE)).await;
            }
        });
    }
}

/// Time for which the removal of a request is tried, and the longest pause between two attempts. After that the request
/// is removed with its session.
const RELEASE: Duration = Duration::from_secs(60);
const RELEASE_PAUSE: Duration = Duration::from_secs(1);

/// Admits a request and returns its session.
pub(in crate::server) async fn admit_call(
    context: &RequestContext,
    session: &str,
    id: &RequestId,
) -> Result<(Arc<Session>, AdmittedCall), NotAdmitted> {
    let service = context.service();
    let stores = service.stores.as_ref();
    let is_kept = stores.is_some() && service.config.responses == Responses::Streaming;
    let stream = is_kept.then(random).flatten().map(StreamId);
    let shared = stores.filter(|stores| stores.shared().is_some());
    let Some(stores) = shared else {
        let session = admit(context, session, None).await?;
        return Ok((session, AdmittedCall { id: id.clone(), stream, shared: None }));
    };
    let placement = Placement { run: stores.run(), stream };
    let (session, shared) = Box::pin(admit_placed(context, stores, session, id, placement)).await?;
    Ok((session, AdmittedCall { id: id.clone(), stream, shared: Some(shared) }))
}

/// Admits a request of a batch, whose session is admitted already.
pub(super) async fn admit_in_batch(
    context: &RequestContext,
    session: &Arc<Session>,
    id: &RequestId,
) -> Result<Option<SharedCall>, NotAdmitted> {
    let Some(stores) = session.shared_stores() else { return Ok(None) };
    let placement = Placement { run: stores.run(), stream: None };
    let (_, shared) = admit_placed(context, stores, &session.id, id, placement).await?;
    Ok(Some(shared))
}

/// Admits a request in the shared stores.
async fn admit_placed(
    context: &RequestContext,
    stores: &Arc<Stores>,
    session: &str,
    id: &RequestId,
    placement: Placement,
) -> Result<(Arc<Session>, SharedCall), NotAdmitted> {
    let (stores, session_id) = (Arc::clone(stores), session.into());
    // An admission that is not confirmed, or not awaited, may have happened, so it is removed.
    let mut shared =
        SharedCall { stores, session: session_id, request: id.clone(), placement, release: Release::OnDrop };
    let Placement { run, stream } = placement;
    match admit(context, session, Some(NewRequest { id, run, stream })).await {
        Err(refused @ (NotAdmitted::Unknown | NotAdmitted::InFlight | NotAdmitted::TooManyRequests)) => {
            shared.release = Release::Unneeded;
            Err(refused)
        }
        admitted => {
            let session = admitted?;
            // The lease was lost meanwhile: other nodes could neither reach the request nor wait for it.
            if shared.stores.run() != run {
                return Err(StoreError::Unavailable("this node goes on as another run".into()).into());
            }
            Ok((session, shared))
        }
    }
}

/// Admits a message and returns its session.
pub(in crate::server) async fn admit(
    context: &RequestContext,
    id: &str,
    request: Option<NewRequest<'_>>,
) -> Result<Arc<Session>, NotAdmitted> {
    let local = Sessions::find(context.service(), id);
    if let Some(stores) = context.service().stores.as_ref().filter(|stores| stores.shared().is_some()) {
        // Boxed, because requests without shared stores should not pay for its size.
        return Box::pin(admit_shared(context, stores, local, id, request)).await;
    }
    owned(context, local)
}

/// Admits a message where no other node has sessions, and returns its session.
pub(in crate::server) fn admit_local(
    context: &RequestContext,
    id: &str,
) -> Result<Arc<Session>, NotAdmitted> {
    owned(context, Sessions::find(context.service(), id))
}

/// Returns a session if it belongs to the principal of the message.
fn owned(context: &RequestContext, session: Option<Arc<Session>>) -> Result<Arc<Session>, NotAdmitted> {
    let principal = context.request.caller.principal.as_ref();
    session.filter(|session| session.belongs_to(principal)).ok_or(NotAdmitted::Unknown)
}

async fn admit_shared(
    context: &RequestContext,
    stores: &Stores,
    local: Option<Arc<Session>>,
    id: &str,
    request: Option<NewRequest<'_>>,
) -> Result<Arc<Session>, NotAdmitted> {
    let Some(shared) = stores.shared() else { return Err(NotAdmitted::Unknown) };
    let (service, principal) = (context.service(), context.request.caller.principal.as_ref());
    let key = principal.map(|principal| PrincipalKey::of(principal));
    let known = local.as_ref().and_then(|session| session.revision());
    let mut admission = Admission::new(key.as_ref(), known);
    admission.request = request;
    match stores.guard().run(|| shared.sessions.admit(id, admission)).await? {
        Admitted::Current => local.ok_or(NotAdmitted::Unknown),
        Admitted::Record(record, revision) => match local {
            Some(session) => {
                session.refresh(*record, revision);
                Ok(session)
            }
            None => restore(context, id, *record, revision),
        },
        Admitted::InFlight => Err(NotAdmitted::InFlight),
        Admitted::TooMany => Err(NotAdmitted::TooManyRequests),
        Admitted::Unknown => {
            // A session that belongs to another principal stays; one that has ended elsewhere does not.
            if let Some(ended) = local.filter(|session| session.principal == key) {
                Sessions::evict(service, &ended);
            }
            Err(NotAdmitted::Unknown)
        }
    }
}

/// Adds a session to the cache.
fn restore(
    context: &RequestContext,
    id: &str,
    record: SessionRecord,
    revision: Revision,
) -> Result<Arc<Session>, NotAdmitted> {
    let service = context.service();
    let _permit =
        Sessions::reserve(service, record.principal.as_ref()).ok_or(NotAdmitted::TooManySessions)?;
    let id: Arc<str> = id.into();
    let mut who = caller(&id, context.request.caller.principal.clone());
    who.changes = change_delivery(service);
    let session = Session::new(service, Arc::clone(&id), record.principal.clone(), |channel| {
        record.connection.restore(&context.running, channel, who)
    });
    let unreadable = || StoreError::Unreadable("an unknown revision of the protocol".into());
    let session = session.ok_or_else(unreadable)?;
    let _ = session.shared.set(SharedSession::new(&context.running, &id, record, revision));
    Ok(Sessions::insert(service, session))
}

/// Stores a new session, if there are shared stores.
pub(super) async fn create(running: &RunningServer, session: &Session) -> Result<(), StoreError> {
    let Some(stores) = session.shared_stores() else { return Ok(()) };
    let (Some(shared), Some(connection)) = (stores.shared(), ConnectionSnapshot::of(&session.connection))
    else {
        return Ok(());
    };
    let record = SessionRecord::new(connection, session.principal.clone()).opened_at(running.latest_change());
    match stores.guard().run(|| shared.sessions.create(&session.id, &record)).await? {
        Created::New => {
            let _ = session.shared.set(SharedSession::new(running, &session.id, record, Revision(1)));
            Ok(())
        }
        // The id is random, so another session cannot have it.
        Created::Exists => Err(StoreError::Failed("the id of a new session is taken".into())),
    }
}

/// Stores what a message has changed, field by field, if there are shared stores.
pub(super) async fn update(session: &Session) -> Result<(), StoreError> {
    match (&session.stores, session.shared.get()) {
        (Some(stores), Some(own)) => Box::pin(update_shared(session, stores, own)).await,
        _ => Ok(()),
    }
}

async fn update_shared(session: &Session, stores: &Stores, own: &SharedSession) -> Result<(), StoreError> {
    let (Some(shared), Some(connection)) = (stores.shared(), ConnectionSnapshot::of(&session.connection))
    else {
        return Ok(());
    };
    let changes = Change::between(&lock(&own.known).record.connection, &connection);
    if changes.is_empty() {
        return Ok(());
    }
    let revision = stores.guard().run(|| shared.sessions.update(&session.id, &changes)).await?;
    own.note(&changes, revision);
    // The stream for changes may be read at another node. Published before the response, it precedes the changes that the
    // client can expect to hear of.
    if changes.iter().any(|change| matches!(change, Change::Subscribed(_) | Change::Unsubscribed(_))) {
        let name = own.digest.to_string();
        own.running.publish(Event::SessionChanged { session: name.into() }).await;
    }
    Ok(())
}

impl Session {
    fn revision(&self) -> Option<Revision> {
        self.shared.get().map(|shared| lock(&shared.known).revision)
    }

    /// Returns the position of the last change before the session was opened.
    pub(super) fn opened_at(&self) -> Option<Position> {
        self.shared.get().and_then(|shared| lock(&shared.known).record.opened_at)
    }

    /// Takes over what other nodes have changed, without a message.
    pub(super) async fn refresh_from_store(&self) -> Result<(), StoreError> {
        let Some(stores) = self.shared_stores() else { return Ok(()) };
        let Some(shared) = stores.shared() else { return Ok(()) };
        let admit =
            || shared.sessions.admit(&self.id, Admission::new(self.principal.as_ref(), self.revision()));
        if let Admitted::Record(record, revision) = stores.guard().run(admit).await? {
            self.refresh(*record, revision);
        }
        Ok(())
    }

    /// Applies what other nodes have changed. What this node has changed and not yet stored stays.
    fn refresh(&self, record: SessionRecord, revision: Revision) {
        let Some(shared) = self.shared.get() else { return };
        let mut known = lock(&shared.known);
        if revision > known.revision && revision >= known.written {
            record.connection.refresh(&known.record.connection, &shared.running, &self.connection);
            *known = KnownRecord { record, revision, written: revision };
        }
    }
}
