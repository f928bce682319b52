//! The door: every request comes in here, and here its era is chosen, once.
//!
//! Host and origin come first, then the form of the request, then its body; only then is anything of it understood.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::Invocation;
use duplexer_core::error::BoxError;
use duplexer_core::server::{Caller, Principal, Running, is_enveloped};
use duplexer_core::transport::{Headers, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::headers::{self, Values};
use duplexer_types::jsonrpc::{self, Frame, Malformed, RequestId};
use duplexer_types::version::{Era, ProtocolVersion};
use http::{Method, Request, StatusCode, request::Parts};
use http_body::Body;

use super::header_bag::HeaderBag;
use super::hub::{Admitted, Hub, StartFailed};
use super::inlet::{self, Accepts};
use super::reply::{self, Refusal, Reply};
use super::{config::Responses, cors, envelope, handshake};

/// A request that has been let in, apart from its message.
pub(super) struct Visit {
    pub(super) admitted: Admitted,
    pub(super) running: Running,
    pub(super) headers: Arc<HeaderBag>,
    pub(super) accepts: Accepts,
    pub(super) caller: Caller,
}

/// What a POST may hold that is of any use.
pub(super) enum Message {
    Request(RequestId, Invocation),
    Notification(Invocation),
    /// The answer to a request of ours.
    Response,
    Batch,
}

impl Visit {
    /// What handlers see of the transport.
    pub(super) fn transport(&self) -> Arc<TransportContext> {
        let context = TransportContext::exchange("http", Headers::of(Arc::clone(&self.headers) as _));
        Arc::new(context.with_principal(self.caller.principal.clone()))
    }
}

/// Serves one request of HTTP.
pub(super) async fn enter<B>(hub: Arc<Hub>, request: Request<B>) -> Reply
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    if let Err(refused) = hub.config.allowed.check(&parts) {
        tracing::warn!(reason = refused.0, "a request is refused");
        return reply::refused(StatusCode::FORBIDDEN, refused.0);
    }
    let origin = cors::origin(hub.config.cors, &parts);
    let is_last = inlet::is_last_on_connection(&parts);
    let preflight = origin.as_ref().and_then(|_| cors::preflight(&parts));
    let mut reply = match preflight {
        Some(reply) => reply,
        None => admit(hub, parts, body).await.unwrap_or_else(|refusal| *refusal),
    };
    if let Some(origin) = origin {
        cors::expose(&mut reply, origin);
    }
    if is_last { reply::closing(reply) } else { reply }
}

/// From the head of the request to its message.
async fn admit<B>(hub: Arc<Hub>, mut parts: Parts, body: B) -> Result<Reply, Refusal>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    if let Some(path) = &hub.config.path
        && parts.uri.path().strip_suffix('/').unwrap_or(parts.uri.path()) != path
    {
        return Err(reply::empty(StatusCode::NOT_FOUND).into());
    }
    if parts.method != Method::POST {
        return Err(reply::method_not_allowed("POST").into());
    }
    inlet::check_framing(&parts)?;
    inlet::check_media_type(&parts.headers)?;
    let accepts = Accepts::of(&parts.headers);
    let headers = Arc::new(HeaderBag::new(parts.headers));
    let claimed = Claimed::of(&headers);
    if !accepts.json || !(accepts.events || hub.config.responses == Responses::JsonOnly) {
        return Err(not_acceptable(claimed, hub.config.responses).into());
    }
    let busy = || Refusal::new(reply::unavailable(None, "Too many requests in flight"));
    let admitted = hub.admit().ok_or_else(busy)?;
    let message = read_message(&inlet::read(body, &hub.config).await?)?;
    let running = match hub.running().await {
        Ok(running) => running.clone(),
        Err(StartFailed) => return Err(reply::unavailable(None, "Internal server error").into()),
    };
    let principal = parts.extensions.remove::<Arc<Principal>>();
    let mut caller = Caller::default();
    caller.principal = principal;
    let visit = Visit { admitted, running, headers, accepts, caller };
    match choose(claimed, &message) {
        Era::Envelope => envelope::serve(visit, message).await,
        Era::Handshake => handshake::serve(visit, message).await,
    }
}

/// What the version header claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claimed {
    /// Nothing, or a revision of the handshake era.
    Handshake,
    /// Anything else.
    Other,
}

impl Claimed {
    fn of(headers: &HeaderBag) -> Self {
        let version = match headers.look_up(headers::PROTOCOL_VERSION.lower) {
            Values::Absent => return Self::Handshake,
            Values::Several => return Self::Other,
            Values::One(version) => {
                std::str::from_utf8(version).ok().and_then(|text| text.trim().parse().ok())
            }
        };
        match version.map(ProtocolVersion::era) {
            Some(Era::Handshake) => Self::Handshake,
            Some(Era::Envelope) | None => Self::Other,
        }
    }
}

/// An envelope in the body, or a version header that is not one of a handshake, makes the envelope era.
fn choose(claimed: Claimed, message: &Message) -> Era {
    match (claimed, message) {
        (Claimed::Other, _) => Era::Envelope,
        (Claimed::Handshake, Message::Request(_, call) | Message::Notification(call))
            if is_enveloped(call) =>
        {
            Era::Envelope
        }
        (Claimed::Handshake, _) => Era::Handshake,
    }
}

fn read_message(text: &ByteString) -> Result<Message, Refusal> {
    match jsonrpc::read(text) {
        Ok(Frame::Request { id, call }) => Ok(Message::Request(id, Invocation::of_frame(text, &call))),
        Ok(Frame::Notification(call)) => Ok(Message::Notification(Invocation::of_frame(text, &call))),
        Ok(Frame::Success { .. } | Frame::Failure { .. }) => Ok(Message::Response),
        Ok(Frame::Batch(_)) => Ok(Message::Batch),
        Err(Malformed::NotJson) => Err(parse_error().into()),
        Err(Malformed::Invalid { id, .. }) => Err(not_a_message(id.as_ref()).into()),
        Err(Malformed::Unanswerable { .. }) => Err(not_a_message(None).into()),
    }
}

pub(super) fn parse_error() -> Reply {
    let error = ErrorObject::new(ErrorCode::PARSE_ERROR, "Parse error");
    reply::refusal(StatusCode::BAD_REQUEST, None, &error)
}

pub(super) fn not_a_message(id: Option<&RequestId>) -> Reply {
    let text = "Body must be a single JSON-RPC request or notification object";
    let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, text);
    reply::refusal(StatusCode::BAD_REQUEST, id, &error)
}

fn not_acceptable(claimed: Claimed, responses: Responses) -> Reply {
    let text = match (claimed, responses) {
        (Claimed::Other, _) => return reply::empty(StatusCode::NOT_ACCEPTABLE),
        (Claimed::Handshake, Responses::Streaming) => {
            "Not Acceptable: Client must accept both application/json and text/event-stream"
        }
        (Claimed::Handshake, Responses::JsonOnly) => "Not Acceptable: Client must accept application/json",
    };
    reply::refused(StatusCode::NOT_ACCEPTABLE, text)
}
