//! The handshake that opens a session. Until it has succeeded there is none, and whoever breaks it off leaves nothing.

use std::sync::Arc;

use duplexer_core::dispatch::{CallContext, Cancellation, Contained, Invocation};
use duplexer_core::server::{Connection, ServerRunner};
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::ProtocolVersion;
use http::StatusCode;

use super::channel::NotificationChannel;
use super::{Session, Sessions, caller, ownership, random};
use crate::server::reply::{self, Rejection, Reply};
use crate::server::request::RequestContext;
use crate::server::rpc_response::ErrorResponder;
use crate::server::service_state::ServiceState;
use crate::session::PrincipalKey;

pub(in crate::server) async fn initialize(
    context: RequestContext,
    id: RequestId,
    message: Invocation,
) -> Result<Reply, Rejection> {
    let service = Arc::clone(context.service());
    let permit = Sessions::reserve(&service).ok_or_else(|| reply::too_many_sessions(Some(&id)))?;
    let name: Arc<str> =
        random().map(|bits| format!("{bits:032x}").into()).ok_or_else(|| reply::internal_error(&id))?;
    let principal = context.request.caller.principal.clone();
    let key = principal.as_deref().map(PrincipalKey::of);
    let who = caller(&name, principal.clone());
    let session = Session::new(&service, name, key, |channel| {
        let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, channel);
        Some(Arc::new(connection.with_caller(who)))
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
    let work = Contained::of(Box::pin(async move { rendering.render(request.await) }));
    let answer = tokio::select! {
        biased;
        answer = work => answer.unwrap_or_else(|panicked| errors.response(&panicked)),
        () = service.abort.raised() => errors.failure(&ErrorObject::connection_closed(), StatusCode::OK),
    };
    if answer.has_failed() || session.connection.agreed().is_none() {
        return Ok(answer.into_reply());
    }
    if ownership::persist_new(&service, &session).await.is_err() {
        return Err(reply::unavailable(Some(&id), "The session could not be written down").into());
    }
    Sessions::insert(&service, Arc::clone(&session));
    pending.outcome = Outcome::Opened;
    drop(permit);
    Ok(session.stamp(answer.into_reply()))
}

fn call_context(
    service: &Arc<ServiceState>,
    session: &Arc<Session>,
    context: &RequestContext,
    id: &RequestId,
) -> CallContext {
    // There is no stream yet that anything could be told on.
    let channel = NotificationChannel {
        service: Arc::clone(service),
        session: Arc::clone(session),
        never: Cancellation::new(),
    };
    CallContext::new(Some(id.clone()), Arc::new(context.transport()), Arc::new(channel))
}

/// A session that nobody knows yet. Dropped, it has never been.
struct PendingSession {
    service: Arc<ServiceState>,
    session: Arc<Session>,
    outcome: Outcome,
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Pending,
    /// It is in the table now, which sees to its end.
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
