//! The handshake era without sessions: every POST is served on a connection of its own, in the revision it names.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallContext, Contained, Invocation};
use duplexer_core::server::{ClientFacts, Connection, serve_on, serve_one};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::{ProtocolVersion, feature};
use http::StatusCode;

use super::batch;
use crate::server::door::{self, Message, Served, Visit};
use crate::server::event_queue::QueueState;
use crate::server::exchange::{Exchange, ExchangeChannel};
use crate::server::header_bag::HeaderBag;
use crate::server::reply::{self, Refusal};
use crate::server::response::{ResponseMode, complete};
use crate::server::rpc_response::{ErrorResponder, RpcResponse};

pub(super) fn serve(visit: Visit, message: Message) -> Result<Served, Refusal> {
    let accepted = || reply::empty(StatusCode::ACCEPTED);
    match message {
        Message::Request(id, call) => {
            let mode = visit.admitted.hub().config.responses.into();
            Ok(Served::Exchange(request(visit, id, call, mode), mode))
        }
        Message::Notification(call) => Ok(Served::Later(Box::pin(async move {
            notification(visit, call).await;
            Ok(accepted())
        }))),
        // Nothing was asked, so nobody waits for it.
        Message::Response(_) => Ok(Served::Now(accepted())),
        Message::Batch(text) if version(&visit.headers).has(feature::BATCHES) => {
            Ok(Served::Later(Box::pin(async move { batch::serve(batch::Host::Nobody, visit, &text).await })))
        }
        Message::Batch(_) => Err(door::not_a_message(None).into()),
    }
}

/// The door has seen that the header, if there is one, names a revision of this era.
fn version(headers: &HeaderBag) -> ProtocolVersion {
    let named = match headers.look_up(headers::PROTOCOL_VERSION.lower) {
        Values::One(version) => {
            std::str::from_utf8(version).ok().and_then(|version| version.trim().parse().ok())
        }
        Values::Absent | Values::Several => None,
    };
    named.unwrap_or(ProtocolVersion::ASSUMED)
}

fn connection(visit: &Visit) -> Arc<Connection> {
    let ready = Connection::ready(version(&visit.headers), ClientFacts::UNKNOWN);
    Arc::new(ready.with_caller(visit.caller.clone()))
}

fn request(visit: Visit, id: RequestId, call: Invocation, mode: ResponseMode) -> Exchange {
    let (connection, transport) = (connection(&visit), visit.transport());
    let Visit { admitted, running, .. } = visit;
    let channel = ExchangeChannel::new(Arc::clone(admitted.hub()), mode.queue_state());
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&channel) as _);
    let call = Arc::new(call);
    let errors = ErrorResponder { id, message: Arc::clone(&call), status_of: |_| StatusCode::OK };
    let serve = |errors: ErrorResponder| -> BoxFuture<'static, RpcResponse> {
        Box::pin(async move { errors.render(serve_one(&running, connection, cx, call).await) })
    };
    Exchange::new(admitted, channel, errors, serve)
}

/// Serves a request that is part of a batch.
pub(super) async fn answer(visit: Visit, id: RequestId, call: Invocation) -> RpcResponse {
    complete(request(visit, id.clone(), call, ResponseMode::Json), &id).await
}

/// Handled before it is acknowledged: there is nothing else that could own its handler.
pub(super) async fn notification(visit: Visit, call: Invocation) {
    let (connection, transport) = (connection(&visit), visit.transport());
    let channel = ExchangeChannel::new(Arc::clone(visit.admitted.hub()), QueueState::Closed);
    let cx = CallContext::new(None, transport, channel);
    let running = visit.running.clone();
    let handled = async move {
        let principal = visit.caller.principal;
        serve_on(&running, &connection, principal, cx, call).await;
        connection.close().await;
    };
    if let Err(error) = Contained::of(Box::pin(handled)).await {
        tracing::error!(%error, "a notification's handler failed");
    }
}
