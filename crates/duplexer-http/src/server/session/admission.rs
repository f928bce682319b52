//! Admission of messages to sessions. Without shared stores the session table decides; with them the store does, in one
//! call, and the table is a cache.

use std::sync::{Arc, Mutex};

use duplexer_core::error::StoreError;
use duplexer_server::{ConnectionSnapshot, Principal, RunningServer};

use super::store::with_timeout;
use super::{Session, Sessions, caller};
use crate::server::service_state::{ServiceState, lock};
use crate::session::{
    Admission, Admitted, Change, Created, NewRequest, PrincipalKey, Revision, SessionDigest, SessionRecord,
};

/// What a session with shared stores has in addition.
pub(super) struct SharedSession {
    pub(super) digest: SessionDigest,
    known: Mutex<KnownRecord>,
}

/// The record as this node knows it.
struct KnownRecord {
    record: SessionRecord,
    revision: Revision,
}

impl SharedSession {
    pub(super) fn new(id: &str, record: SessionRecord, revision: Revision) -> Box<Self> {
        let known = Mutex::new(KnownRecord { record, revision });
        Box::new(Self { digest: SessionDigest::of(id), known })
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

impl From<StoreError> for NotAdmitted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Admits a message and returns its session.
pub(in crate::server) async fn admit(
    service: &Arc<ServiceState>,
    running: &RunningServer,
    id: &str,
    principal: Option<&Arc<Principal>>,
    request: Option<NewRequest<'_>>,
) -> Result<Arc<Session>, NotAdmitted> {
    let local = Sessions::find(service, id);
    let Some(stores) = &service.config.sessions.shared else {
        return local.filter(|session| session.belongs_to(principal)).ok_or(NotAdmitted::Unknown);
    };
    let key = principal.map(|principal| PrincipalKey::of(principal));
    let known = local.as_ref().and_then(|session| session.revision());
    let mut admission = Admission::new(key.as_ref(), known);
    admission.request = request;
    match with_timeout(|| stores.sessions.admit(id, admission)).await? {
        Admitted::Current => local.ok_or(NotAdmitted::Unknown),
        Admitted::Record(record, revision) => match local {
            Some(session) => {
                session.refresh(running, *record, revision);
                Ok(session)
            }
            None => restore(service, running, id, *record, revision, principal),
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
    service: &Arc<ServiceState>,
    running: &RunningServer,
    id: &str,
    record: SessionRecord,
    revision: Revision,
    principal: Option<&Arc<Principal>>,
) -> Result<Arc<Session>, NotAdmitted> {
    let _permit =
        Sessions::reserve(service, record.principal.as_ref()).ok_or(NotAdmitted::TooManySessions)?;
    let id: Arc<str> = id.into();
    let who = caller(&id, principal.cloned());
    let shared = SharedSession::new(&id, record.clone(), revision);
    let session = Session::new(service, id, record.principal.clone(), |channel| {
        record.connection.restore(running, channel, who)
    });
    let session =
        session.ok_or_else(|| StoreError::Unreadable("an unknown revision of the protocol".into()))?;
    let _ = session.shared.set(shared);
    Ok(Sessions::insert(service, session))
}

/// Stores a new session, if there are shared stores.
pub(super) async fn create(service: &ServiceState, session: &Session) -> Result<(), StoreError> {
    let Some(stores) = &service.config.sessions.shared else { return Ok(()) };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return Ok(()) };
    let record = SessionRecord::new(connection, session.principal.clone());
    match with_timeout(|| stores.sessions.create(&session.id, &record)).await? {
        Created::New => {
            let _ = session.shared.set(SharedSession::new(&session.id, record, Revision(1)));
            Ok(())
        }
        // The id is random, so another session cannot have it.
        Created::Exists => Err(StoreError::Failed("the id of a new session is taken".into())),
    }
}

/// Stores what a message has changed, field by field, if there are shared stores.
pub(super) async fn update(service: &ServiceState, session: &Session) -> Result<(), StoreError> {
    let (Some(stores), Some(shared)) = (&service.config.sessions.shared, session.shared.get()) else {
        return Ok(());
    };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return Ok(()) };
    let changes = Change::between(&lock(&shared.known).record.connection, &connection);
    if changes.is_empty() {
        return Ok(());
    }
    let revision = with_timeout(|| stores.sessions.update(&session.id, &changes)).await?;
    let mut known = lock(&shared.known);
    for change in &changes {
        change.apply(&mut known.record.connection);
    }
    // If another node has changed the record too, the next message brings it along.
    if revision == Some(Revision(known.revision.0 + 1)) {
        known.revision.0 += 1;
    }
    Ok(())
}

impl Session {
    fn revision(&self) -> Option<Revision> {
        self.shared.get().map(|shared| lock(&shared.known).revision)
    }

    /// Applies what other nodes have changed. What this node has changed and not yet stored stays.
    fn refresh(&self, running: &RunningServer, record: SessionRecord, revision: Revision) {
        let Some(shared) = self.shared.get() else { return };
        let mut known = lock(&shared.known);
        if revision > known.revision {
            record.connection.refresh(&known.record.connection, running, &self.connection);
            *known = KnownRecord { record, revision };
        }
    }
}
