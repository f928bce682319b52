//! The door: every request comes in here, and here its era is chosen, once.
//!
//! Host and origin come first, then the form of the request, then its body; only then is anything of it understood.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::{BoxError, CallError};
use duplexer_core::transport::{Headers, TransportContext};
use duplexer_server::driver::is_enveloped;
use duplexer_server::{Caller, Principal, RunningServer};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Malformed, RawFrame, RequestId};
use duplexer_types::version::Era;
use http::{HeaderValue, Method, Request, StatusCode, request::Parts};
use http_body::Body;

use super::config::{Config, Handshake, Responses};
use super::exchange::{Exchange, Form};
use super::head::{Accepts, Claimed, Head, is_last_on_connection};
use super::header_bag::HeaderBag;
use super::hub::{Admitted, Hub, StartFailed};
use super::reply::{self, Refusal, Reply};
use super::{cors, envelope, handshake, http_sse, inlet};

/// A request that has been let in, apart from its message.
pub(super) struct Visit {
    pub(super) admitted: Admitted,
    pub(super) running: RunningServer,
    pub(super) headers: Arc<HeaderBag>,
    pub(super) accepts: Accepts,
    pub(super) caller: Caller,
}

/// A request that is let in as soon as the server runs.
pub(super) struct Guest {
    admitted: Admitted,
    headers: Arc<HeaderBag>,
    accepts: Accepts,
    caller: Caller,
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

impl Guest {
    pub(super) fn new(hub: Arc<Hub>, mut parts: Parts, accepts: Accepts) -> Result<Self, Refusal> {
        let admitted = hub.admit().ok_or_else(reply::busy)?;
        let mut caller = Caller::default();
        caller.principal = parts.extensions.remove::<Arc<Principal>>();
        Ok(Self { admitted, headers: Arc::new(HeaderBag::new(parts.headers)), accepts, caller })
    }

    pub(super) async fn visit(self) -> Result<Visit, Refusal> {
        let Self { admitted, headers, accepts, caller } = self;
        let running = match admitted.hub().running().await {
            Ok(running) => running.clone(),
            Err(StartFailed) => return Err(reply::unavailable(None, "Internal server error").into()),
        };
        Ok(Visit { admitted, running, headers, accepts, caller })
    }
}

/// Serves one request of HTTP. What its head says is settled before there is a future, which has the less to hold.
pub(super) fn enter<B>(hub: Arc<Hub>, request: Request<B>) -> impl Future<Output = Reply> + Send + use<B>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let (begun, finish) = begin(hub, parts, body);
    async move {
        let answered = match begun {
            Begun::Settled(reply) => Err(reply),
            Begun::Message(claimed, guest, body) => post(claimed, guest, body).await,
            Begun::Seldom(work) => work.await,
        };
        finish.apply(answered.unwrap_or_else(|refusal| *refusal))
    }
}

/// A request of which the head has been looked at.
enum Begun<B> {
    /// That was enough.
    Settled(Refusal),
    Message(Claimed, Guest, B),
    /// Everything that does not come often, so that what does is not made larger by it.
    Seldom(BoxFuture<'static, Result<Reply, Refusal>>),
}

fn begin<B>(hub: Arc<Hub>, parts: Parts, body: B) -> (Begun<B>, Finish)
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let head = Head::of(&parts.headers);
    let is_last = is_last_on_connection(&parts.headers, parts.version);
    if let Err(refused) = hub.config.allowed.check(&head, parts.uri.authority()) {
        tracing::warn!(reason = refused.0, "a request is refused");
        let refusal = reply::refused(StatusCode::FORBIDDEN, refused.0).into();
        return (Begun::Settled(refusal), Finish { origin: None, is_last });
    }
    let origin = cors::origin(hub.config.cors, &parts);
    let preflight = origin.as_ref().and_then(|_| cors::preflight(&parts));
    let finish = Finish { origin, is_last };
    let errand = match preflight {
        Some(reply) => Err(reply.into()),
        None => errand(&hub.config, &parts, &head),
    };
    let accepts = head.accepts;
    let begun = errand.and_then(|errand| set_out(hub, errand, accepts, parts, body));
    (begun.unwrap_or_else(Begun::Settled), finish)
}

/// What is done to a response whatever it is.
struct Finish {
    /// The script that is to read it.
    origin: Option<HeaderValue>,
    /// Whether it is the last one on its connection.
    is_last: bool,
}

impl Finish {
    fn apply(self, mut reply: Reply) -> Reply {
        if let Some(origin) = self.origin {
            cors::expose(&mut reply, origin);
        }
        if self.is_last { reply::closing(reply) } else { reply }
    }
}

/// What a request is here for, as far as its head says.
#[derive(Clone, Copy)]
enum Errand {
    /// A message is brought.
    Message(Claimed),
    /// What a session tells is to be read.
    Read,
    /// A session is to be ended.
    End,
    /// An old client.
    HttpSse(http_sse::End),
}

fn errand(config: &Config, parts: &Parts, head: &Head<'_>) -> Result<Errand, Refusal> {
    let path = parts.uri.path();
    if let Some(end) = config.http_sse.end(path) {
        return Ok(Errand::HttpSse(end));
    }
    if config.path.as_ref().is_some_and(|own| path.strip_suffix('/').unwrap_or(path) != own) {
        return Err(reply::empty(StatusCode::NOT_FOUND).into());
    }
    let (claimed, accepts) = (head.claimed(), head.accepts);
    match (&parts.method, config.handshake, claimed) {
        (&Method::POST, ..) => {
            head.check_body()?;
            if !accepts.json || !(accepts.events || config.responses == Responses::JsonOnly) {
                return Err(not_acceptable(claimed, config.responses).into());
            }
            Ok(Errand::Message(claimed))
        }
        (&Method::GET, Handshake::Sessions, Claimed::Handshake) => Ok(Errand::Read),
        (&Method::DELETE, Handshake::Sessions, Claimed::Handshake) => Ok(Errand::End),
        (_, Handshake::Sessions, Claimed::Handshake) => {
            Err(reply::method_not_allowed("GET, POST, DELETE").into())
        }
        _ => Err(reply::method_not_allowed("POST").into()),
    }
}

fn set_out<B>(
    hub: Arc<Hub>,
    errand: Errand,
    accepts: Accepts,
    parts: Parts,
    body: B,
) -> Result<Begun<B>, Refusal>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    Ok(match errand {
        Errand::HttpSse(end) => Begun::Seldom(Box::pin(http_sse::serve(hub, end, parts, body))),
        Errand::Message(claimed) => Begun::Message(claimed, Guest::new(hub, parts, accepts)?, body),
        Errand::Read => {
            let guest = Guest::new(hub, parts, accepts)?;
            Begun::Seldom(Box::pin(async { handshake::get(guest.visit().await?).await }))
        }
        Errand::End => {
            let guest = Guest::new(hub, parts, accepts)?;
            Begun::Seldom(Box::pin(async { handshake::delete(guest.visit().await?).await }))
        }
    })
}

/// How a message is answered.
pub(super) enum Served {
    /// At once.
    Now(Reply),
    /// As its handler says.
    Exchange(Exchange, Form),
    /// In another way.
    Later(BoxFuture<'static, Result<Reply, Refusal>>),
}

/// From the head of the request to its message, and on.
async fn post<B>(claimed: Claimed, guest: Guest, body: B) -> Result<Reply, Refusal>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let text = inlet::read(body, &guest.admitted.hub().config).await?;
    let message = read_message(&text)?;
    let visit = guest.visit().await?;
    let served = match choose(claimed, &message) {
        Era::Envelope => envelope::serve(visit, message)?,
        Era::Handshake => handshake::post(visit, message)?,
    };
    match served {
        Served::Now(reply) => Ok(reply),
        Served::Exchange(exchange, form) => Ok(exchange.respond(form).await),
        Served::Later(work) => work.await,
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
        RawFrame::Request { id, call } => Message::Request(id, Invocation::of_frame(text, &call)),
        RawFrame::Notification(call) => Message::Notification(Invocation::of_frame(text, &call)),
        RawFrame::Success { id, result } => {
            Message::Response(Response::Answer(id, Ok(text.slice_ref(result))))
        }
        RawFrame::Failure { id: Some(id), error } => {
            let error = serde_json::from_str(error).map_or_else(CallError::Unexpected, CallError::Peer);
            Message::Response(Response::Answer(id, Err(error)))
        }
        RawFrame::Failure { id: None, .. } => Message::Response(Response::Nameless),
        RawFrame::Batch(_) => Message::Batch(text.clone()),
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
