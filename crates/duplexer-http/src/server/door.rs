//! The door: every request comes in here, and here its era is chosen, once.
//!
//! Host and origin come first, then the form of the request, then its body; only then is anything of it understood.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::Invocation;
use duplexer_core::error::{BoxError, CallError};
use duplexer_core::server::{Caller, Principal, Running, is_enveloped};
use duplexer_core::transport::{Headers, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Frame, Malformed, RequestId};
use duplexer_types::version::{Era, ProtocolVersion};
use http::{HeaderMap, Method, Request, StatusCode, request::Parts};
use http_body::Body;

use super::config::{Handshake, Responses};
use super::header_bag::{self, HeaderBag};
use super::hub::{Admitted, Hub, StartFailed};
use super::inlet::{self, Accepts};
use super::reply::{self, Refusal, Reply};
use super::{cors, envelope, handshake, http_sse};

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
    Response(Response),
    Batch(ByteString),
}

/// What a client says to a request of ours.
pub(super) enum Response {
    Answer(RequestId, Result<ByteString, CallError>),
    /// An error that does not say what it is about.
    Nameless,
}

impl Visit {
    /// What handlers see of the transport.
    pub(super) fn transport(&self) -> Arc<TransportContext> {
        Arc::new(self.transport_context())
    }

    pub(super) fn transport_context(&self) -> TransportContext {
        TransportContext::exchange("http", Headers::of(Arc::clone(&self.headers) as _))
    }

    /// The same for another message that came along with it.
    pub(super) fn another(&self) -> Self {
        Self {
            admitted: self.admitted.another(),
            running: self.running.clone(),
            headers: Arc::clone(&self.headers),
            accepts: self.accepts,
            caller: self.caller.clone(),
        }
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
        None => serve(hub, parts, body).await.unwrap_or_else(|refusal| *refusal),
    };
    if let Some(origin) = origin {
        cors::expose(&mut reply, origin);
    }
    if is_last { reply::closing(reply) } else { reply }
}

/// From the head of the request to its message.
async fn serve<B>(hub: Arc<Hub>, parts: Parts, body: B) -> Result<Reply, Refusal>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    if let Some(end) = hub.config.http_sse.end(parts.uri.path()) {
        return http_sse::serve(hub, end, parts, body).await;
    }
    if let Some(path) = &hub.config.path
        && parts.uri.path().strip_suffix('/').unwrap_or(parts.uri.path()) != path
    {
        return Err(reply::empty(StatusCode::NOT_FOUND).into());
    }
    let claimed = Claimed::of(&parts.headers);
    let method = parts.method.clone();
    match (&method, hub.config.handshake, claimed) {
        (&Method::POST, ..) => {
            inlet::check_framing(&parts)?;
            inlet::check_media_type(&parts.headers)?;
            let accepts = Accepts::of(&parts.headers);
            if !accepts.json || !(accepts.events || hub.config.responses == Responses::JsonOnly) {
                return Err(not_acceptable(claimed, hub.config.responses).into());
            }
            let admitted = admit(&hub)?;
            let message = read_message(&inlet::read(body, &hub.config).await?)?;
            let visit = visit(admitted, parts, accepts).await?;
            match choose(claimed, &message) {
                Era::Envelope => envelope::serve(visit, message).await,
                Era::Handshake => handshake::post(visit, message).await,
            }
        }
        (&Method::GET, Handshake::Sessions, Claimed::Handshake) => {
            let accepts = Accepts::of(&parts.headers);
            handshake::get(visit(admit(&hub)?, parts, accepts).await?).await
        }
        (&Method::DELETE, Handshake::Sessions, Claimed::Handshake) => {
            handshake::delete(visit(admit(&hub)?, parts, Accepts::default()).await?).await
        }
        (_, Handshake::Sessions, Claimed::Handshake) => {
            Err(reply::method_not_allowed("GET, POST, DELETE").into())
        }
        _ => Err(reply::method_not_allowed("POST").into()),
    }
}

pub(super) fn admit(hub: &Arc<Hub>) -> Result<Admitted, Refusal> {
    hub.admit().ok_or_else(|| reply::busy().into())
}

pub(super) async fn visit(admitted: Admitted, mut parts: Parts, accepts: Accepts) -> Result<Visit, Refusal> {
    let running = match admitted.hub().running().await {
        Ok(running) => running.clone(),
        Err(StartFailed) => return Err(reply::unavailable(None, "Internal server error").into()),
    };
    let mut caller = Caller::default();
    caller.principal = parts.extensions.remove::<Arc<Principal>>();
    Ok(Visit { admitted, running, headers: Arc::new(HeaderBag::new(parts.headers)), accepts, caller })
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
    fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(header_bag::PROTOCOL_VERSION).iter();
        let version = match (values.next(), values.next()) {
            (None, _) => return Self::Handshake,
            (Some(_), Some(_)) => return Self::Other,
            (Some(version), None) => {
                std::str::from_utf8(version.as_bytes()).ok().and_then(|text| text.trim().parse().ok())
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
    understand(text).map_err(|malformed| match malformed {
        Malformed::NotJson => parse_error().into(),
        Malformed::Invalid { id, .. } => not_a_message(id.as_ref()).into(),
        Malformed::Unanswerable { .. } => not_a_message(None).into(),
    })
}

/// The message that a text is.
pub(super) fn understand(text: &ByteString) -> Result<Message, Malformed> {
    Ok(match jsonrpc::read(text)? {
        Frame::Request { id, call } => Message::Request(id, Invocation::of_frame(text, &call)),
        Frame::Notification(call) => Message::Notification(Invocation::of_frame(text, &call)),
        Frame::Success { id, result } => Message::Response(Response::Answer(id, Ok(text.slice_ref(result)))),
        Frame::Failure { id: Some(id), error } => {
            let error = serde_json::from_str(error).map_or_else(CallError::Unexpected, CallError::Peer);
            Message::Response(Response::Answer(id, Err(error)))
        }
        Frame::Failure { id: None, .. } => Message::Response(Response::Nameless),
        Frame::Batch(_) => Message::Batch(text.clone()),
    })
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
