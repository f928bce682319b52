//! The handshake era without sessions: every POST is served on a connection of its own, in the revision it names.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallContext, Contained, Invocation};
use duplexer_server::driver::{serve_on, serve_one};
use duplexer_server::{ClientProfile, Connection};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::{ProtocolVersion, feature};
use http::StatusCode;

use super::batch;
use crate::server::config::Responses;
use crate::server::door::{self, Message, Served, Visit};
use crate::server::exchange::{Answer, Exchange, Failing, Form};
use crate::server::header_bag::HeaderBag;
use crate::server::outlet::{Outlet, State};
use crate::server::reply::{self, Refusal};

pub(super) fn serve(visit: Visit, message: Message) -> Result<Served, Refusal> {
    let accepted = || reply::empty(StatusCode::ACCEPTED);
    match message {
        Message::Request(id, call) => {
            let form = match visit.admitted.hub().config.responses {
                Responses::Streaming => Form::Either,
                Responses::JsonOnly => Form::Json,
            };
            Ok(Served::Exchange(request(visit, id, call, form), form))
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
    let ready = Connection::ready(version(&visit.headers), ClientProfile::UNKNOWN);
    Arc::new(ready.with_caller(visit.caller.clone()))
}

fn request(visit: Visit, id: RequestId, call: Invocation, form: Form) -> Exchange {
    let (connection, transport) = (connection(&visit), visit.transport());
    let Visit { admitted, running, .. } = visit;
    let state = if form == Form::Json { State::Closed } else { State::Open };
    let outlet = Outlet::new(Arc::clone(admitted.hub()), state);
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&outlet) as _);
    let call = Arc::new(call);
    let failing = Failing { id, message: Arc::clone(&call), status_of: |_| StatusCode::OK };
    let serve = |rendering: Failing| -> BoxFuture<'static, Answer> {
        Box::pin(async move { rendering.render(serve_one(&running, connection, cx, call).await) })
    };
    Exchange::new(admitted, outlet, failing, serve)
}

/// The answer to a request that is one of many.
pub(super) async fn answer(visit: Visit, id: RequestId, call: Invocation) -> Answer {
    request(visit, id, call, Form::Json).answer().await
}

/// Handled before it is acknowledged: there is nothing else that could own its handler.
pub(super) async fn notification(visit: Visit, call: Invocation) {
    let (connection, transport) = (connection(&visit), visit.transport());
    let outlet = Outlet::new(Arc::clone(visit.admitted.hub()), State::Closed);
    let cx = CallContext::new(None, transport, outlet);
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
