//! The envelope era: every POST stands for itself, and the end of its response is the end of its request.

use std::sync::Arc;

use duplexer_core::dispatch::{BoxFuture, CallContext, Invocation};
use duplexer_server::driver::serve_envelope;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion};
use http::StatusCode;

use super::config::Responses;
use super::door::{self, Message, Served, Visit};
use super::exchange::{Answer, Exchange, Failing, Form};
use super::header_bag::HeaderBag;
use super::outlet::{Outlet, State};
use super::reply::{self, Refusal, Reply};

pub(super) fn serve(visit: Visit, message: Message) -> Result<Served, Refusal> {
    match message {
        Message::Request(id, call) => {
            let (exchange, form) = request(visit, id, call)?;
            Ok(Served::Exchange(exchange, form))
        }
        Message::Notification(_) => notification(&visit.headers).map(Served::Now),
        Message::Response(_) | Message::Batch(_) => Err(door::not_a_message(None).into()),
    }
}

/// Over HTTP this era has no notifications to the server: they are taken and dropped.
fn notification(headers: &HeaderBag) -> Result<Reply, Refusal> {
    unambiguous(headers.repeated().find(|name| *name == headers::PROTOCOL_VERSION), None)?;
    if let Values::One(version) = headers.look_up(headers::PROTOCOL_VERSION.lower) {
        let version = String::from_utf8_lossy(version);
        let known = version.trim().parse::<ProtocolVersion>();
        if !known.is_ok_and(|version| version.era() == Era::Envelope) {
            let error = ErrorObject::unsupported_version(&ProtocolVersion::envelope_names(), &version);
            return Err(reply::refusal(StatusCode::BAD_REQUEST, None, &error).into());
        }
    }
    Ok(reply::empty(StatusCode::ACCEPTED))
}

fn request(visit: Visit, id: RequestId, call: Invocation) -> Result<(Exchange, Form), Refusal> {
    let is_subscription = call.known() == Some(Method::SubscriptionsListen);
    if is_subscription && !visit.accepts.events {
        return Err(reply::empty(StatusCode::NOT_ACCEPTABLE).into());
    }
    unambiguous(visit.headers.repeated().next(), Some(&id))?;
    let transport = visit.transport();
    let Visit { admitted, running, headers, caller, .. } = visit;
    let hub = Arc::clone(admitted.hub());
    let (form, admitted) = match hub.config.responses {
        _ if is_subscription => {
            let full = || Refusal::new(reply::unavailable(Some(&id), "Too many subscriptions"));
            (Form::Stream, admitted.subscribe().ok_or_else(full)?)
        }
        Responses::Streaming => (Form::Either, admitted),
        Responses::JsonOnly => (Form::Json, admitted),
    };
    let state = if form == Form::Json { State::Closed } else { State::Open };
    let outlet = Outlet::new(hub, state);
    let cx = CallContext::new(Some(id.clone()), transport, Arc::clone(&outlet) as _);
    let call = Arc::new(call);
    let failing = Failing { id, message: Arc::clone(&call), status_of: reply::status_of };
    let serve = |rendering: Failing| -> BoxFuture<'static, Answer> {
        Box::pin(async move {
            let look_up = |name: &str| headers.look_up(name);
            rendering.render(serve_envelope(&running, cx, call, Some(&look_up), caller).await)
        })
    };
    Ok((Exchange::new(admitted, outlet, failing, serve), form))
}

fn unambiguous(repeated: Option<headers::Name>, id: Option<&RequestId>) -> Result<(), Refusal> {
    let Some(name) = repeated else { return Ok(()) };
    let text = format!("{} header appears more than once", name.lower);
    let error = ErrorObject::new(ErrorCode::HEADER_MISMATCH, text);
    Err(reply::refusal(StatusCode::BAD_REQUEST, id, &error).into())
}
