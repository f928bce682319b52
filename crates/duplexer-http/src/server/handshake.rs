//! The handshake era without sessions: every POST is served on a connection of its own, in the revision it names.

use std::sync::Arc;

use duplexer_core::dispatch::{CallContext, Contained, Invocation};
use duplexer_core::server::{ClientFacts, Connection, serve_on, serve_one};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::version::ProtocolVersion;
use http::StatusCode;

use super::config::{Handshake, Responses};
use super::door::{self, Message, Visit};
use super::exchange::{Exchange, Failing, Form};
use super::header_bag::HeaderBag;
use super::outlet::{Outlet, State};
use super::reply::{self, Refusal, Reply};

pub(super) async fn serve(visit: Visit, message: Message) -> Result<Reply, Refusal> {
    if visit.admitted.hub().config.handshake == Handshake::Refused {
        return Err(not_served(&message).into());
    }
    match message {
        Message::Request(id, call) => {
            let (exchange, form) = request(visit, id, call);
            Ok(exchange.respond(form).await)
        }
        Message::Notification(call) => Ok(notification(visit, call).await),
        // Nothing was asked, so nobody waits for it.
        Message::Response => Ok(reply::empty(StatusCode::ACCEPTED)),
        Message::Batch => Err(door::not_a_message(None).into()),
    }
}

fn not_served(message: &Message) -> Reply {
    let text = format!(
        "{} header is missing or names a revision that is not served here; served: {}",
        headers::PROTOCOL_VERSION.lower,
        ProtocolVersion::envelope_names().join(", ")
    );
    let id = if let Message::Request(id, _) = message { Some(id) } else { None };
    reply::refusal(StatusCode::BAD_REQUEST, id, &ErrorObject::new(ErrorCode::HEADER_MISMATCH, text))
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

fn request(visit: Visit, id: RequestId, call: Invocation) -> (Exchange, Form) {
    let (connection, transport) = (connection(&visit), visit.transport());
    let Visit { admitted, running, .. } = visit;
    let hub = Arc::clone(admitted.hub());
    let (form, state) = match hub.config.responses {
        Responses::Streaming => (Form::Either, State::Open),
        Responses::JsonOnly => (Form::Json, State::Closed),
    };
    let outlet = Outlet::new(hub, state);
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&outlet) as _);
    let call = Arc::new(call);
    let failing = Failing { id, message: Arc::clone(&call), status_of: |_| StatusCode::OK };
    let serve = async move { serve_one(&running, connection, cx, call).await };
    (Exchange::new(admitted, outlet, failing, serve), form)
}

/// Handled before it is acknowledged: there is nothing else that could own its handler.
async fn notification(visit: Visit, call: Invocation) -> Reply {
    let (connection, transport) = (connection(&visit), visit.transport());
    let outlet = Outlet::new(Arc::clone(visit.admitted.hub()), State::Closed);
    let cx = CallContext::new(None, transport, outlet);
    let running = visit.running.clone();
    let handled = async move {
        serve_on(&running, &connection, cx, call).await;
        connection.close().await;
    };
    if let Err(error) = Contained::of(Box::pin(handled)).await {
        tracing::error!(%error, "a notification's handler failed");
    }
    reply::empty(StatusCode::ACCEPTED)
}
