//! The handshake that opens a session. Until it has succeeded there is none, and whoever breaks it off leaves nothing.

use std::sync::Arc;

use duplexer_core::dispatch::{CallContext, Cancellation, CatchUnwind, Invocation};
use duplexer_core::server::{Connection, ServerRunner};
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::ProtocolVersion;
use http::StatusCode;

use super::channel::NotificationChannel;
use super::{Session, Sessions, caller, hand_over, random};
use crate::server::door::Visit;
use crate::server::exchange::Failing;
use crate::server::hub::Hub;
use crate::server::reply::{self, Refusal, Reply};
use crate::session::PrincipalKey;

pub(in crate::server) async fn open(
    visit: Visit,
    id: RequestId,
    message: Invocation,
) -> Result<Reply, Refusal> {
    let hub = Arc::clone(visit.admitted.hub());
    let place = Sessions::reserve(&hub).ok_or_else(|| reply::too_many_sessions(Some(&id)))?;
    let name: Arc<str> =
        random().map(|bits| format!("{bits:032x}").into()).ok_or_else(|| reply::failed(&id))?;
    let principal = visit.caller.principal.clone();
    let key = principal.as_deref().map(PrincipalKey::of);
    let who = caller(&name, principal.clone());
    let session = Session::new(&hub, name, key, |channel| {
        let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, channel);
        Some(Arc::new(connection.with_caller(who)))
    });
    let session = session.ok_or_else(|| reply::failed(&id))?;
    let mut opening =
        Opening { hub: Arc::clone(&hub), session: Arc::clone(&session), outcome: Outcome::Unknown };
    let message = Arc::new(message);
    let failing = Failing { id: id.clone(), message: Arc::clone(&message), status_of: |_| StatusCode::OK };
    let rendering = failing.clone();
    let runner =
        ServerRunner::new(visit.running.clone(), Arc::clone(&session.connection)).on_behalf_of(principal);
    let request = runner.request(context(&hub, &session, &visit, &id), message);
    let work = CatchUnwind::of(Box::pin(async move { rendering.render(request.await) }));
    let answer = tokio::select! {
        biased;
        answer = work => answer.unwrap_or_else(|panicked| failing.answer(&panicked)),
        () = hub.cut.cancelled() => failing.failure(&ErrorObject::connection_closed(), StatusCode::OK),
    };
    if answer.has_failed() || session.connection.agreed().is_none() {
        return Ok(answer.into_reply());
    }
    if hand_over::register(&hub, &session).await.is_err() {
        return Err(reply::unavailable(Some(&id), "The session could not be written down").into());
    }
    Sessions::insert(&hub, Arc::clone(&session));
    opening.outcome = Outcome::Opened;
    drop(place);
    Ok(session.stamp(answer.into_reply()))
}

fn context(hub: &Arc<Hub>, session: &Arc<Session>, visit: &Visit, id: &RequestId) -> CallContext {
    // There is no stream yet that anything could be told on.
    let channel = NotificationChannel {
        hub: Arc::clone(hub),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    CallContext::new(Some(id.clone()), visit.transport(), Arc::new(channel))
}

/// A session that nobody knows yet. Dropped, it has never been.
struct Opening {
    hub: Arc<Hub>,
    session: Arc<Session>,
    outcome: Outcome,
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Unknown,
    /// It is in the table now, which sees to its end.
    Opened,
}

impl Drop for Opening {
    fn drop(&mut self) {
        if self.outcome == Outcome::Unknown {
            let connection = self.session.end();
            self.hub.see_to(async move { connection.close().await });
        }
    }
}
