//! The `initialize` request that opens a session. The session exists once the request has succeeded; one that fails
//! leaves nothing behind.

use std::sync::Arc;

use duplexer_core::dispatch::{CallContext, Cancellation, CatchUnwind, Message};
use duplexer_server::Connection;
use duplexer_server::driver::ServerRunner;
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::ProtocolVersion;
use http::StatusCode;

use super::channel::NotificationChannel;
use super::{Session, Sessions, admission, caller, change_delivery, random};
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::RequestContext;
use crate::server::rpc_response::ErrorResponder;
use crate::server::service_state::ServiceState;
use crate::session::PrincipalKey;

/// Serves an `initialize` request.
pub(in crate::server) async fn initialize(
    context: RequestContext,
    id: RequestId,
    message: Message,
) -> Result<Reply, Rejection> {
    let service = Arc::clone(context.service());
    let principal = context.request.caller.principal.clone();
    let key = principal.as_deref().map(PrincipalKey::of);
    let permit = Sessions::reserve(&service, key.as_ref());
    let permit = permit.ok_or_else(|| reply::too_many_sessions(Some(&id)))?;
    let session_id: Arc<str> =
        random().map(|bits| format!("{bits:032x}").into()).ok_or_else(|| reply::internal_error(&id))?;
    let mut caller = caller(&session_id, principal.clone());
    caller.changes = change_delivery(&service);
    let session = Session::new(&service, session_id, key, |channel| {
        let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, channel);
        Some(Arc::new(connection.with_caller(caller)))
    });
    let session = session.ok_or_else(|| reply::internal_error(&id))?;
    let mut pending = PendingSession {
        service: Arc::clone(&service),
        session: Arc::clone(&session),
        outcome: Outcome::Pending,
    };
    let message = Arc::new(message);
    let errors =
        ErrorResponder { id: id.clone(), message: Arc::clone(&message), status_of: |_| StatusCode::OK };
    let rendering = errors.clone();
    let runner =
        ServerRunner::new(context.running.clone(), Arc::clone(&session.connection)).on_behalf_of(principal);
    let request = runner.request(call_context(&service, &session, &context, &id), message);
    let work = CatchUnwind::of(Box::pin(async move { rendering.render(request.await) }));
    let response = tokio::select! {
        biased;
        finished = work => finished.unwrap_or_else(|panicked| errors.response(&panicked)),
        () = service.abort.cancelled() => errors.failure(&ErrorObject::shutting_down(), StatusCode::OK),
    };
    if response.has_failed() || session.connection.agreed().is_none() {
        return Ok(response.into_reply());
    }
    if let Err(error) = admission::create(&context.running, &session).await {
        return Err(reply::store_failed(Some(&id), &error).into());
    }
    Sessions::insert(&service, Arc::clone(&session));
    pending.outcome = Outcome::Opened;
    drop(permit);
    Ok(session.stamp(response.into_reply()))
}

fn call_context(
    service: &Arc<ServiceState>,
    session: &Arc<Session>,
    context: &RequestContext,
    id: &RequestId,
) -> CallContext {
    // There is no stream for notifications yet.
    let channel = NotificationChannel {
        service: Arc::clone(service),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    CallContext::new(Some(id.clone()), Arc::new(context.transport()), Arc::new(channel))
}

/// A session that is not in the table yet. Dropping it closes its connection.
struct PendingSession {
    service: Arc<ServiceState>,
    session: Arc<Session>,
    outcome: Outcome,
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Pending,
    /// The session is in the table, which ends it.
    Opened,
}

impl Drop for PendingSession {
    fn drop(&mut self) {
        if self.outcome == Outcome::Pending {
            let connection = self.session.end();
            self.service.spawn_tracked(async move { connection.close().await });
        }
    }
}
