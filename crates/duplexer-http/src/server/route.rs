//! The route: every request comes in here, and here its era is chosen, once.
//!
//! Host and origin come first, then the form of the request, then its body; only then is anything of it understood.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::{BoxError, CallError};
use duplexer_core::server::{Caller, Principal, Running, is_enveloped};
use duplexer_core::transport::{Headers, TransportContext};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{self, Frame, Malformed, RequestId};
use duplexer_types::version::Era;
use http::{HeaderValue, Method, Request, StatusCode, request::Parts};
use http_body::Body;

use super::config::{Config, Handshake, Responses};
use super::exchange::Exchange;
use super::head::{Accepts, ClaimedEra, Head, is_last_on_connection};
use super::reply::{self, Rejection, Reply};
use super::request_headers::RequestHeaders;
use super::response::{ResponseMode, respond};
use super::service_state::{RequestPermit, ServiceState, StartFailed};
use super::{cors, envelope, handshake, http_sse, request_body};

/// A request that has been let in, apart from its message.
pub(super) struct RequestContext {
    pub(super) permit: RequestPermit,
    pub(super) running: Running,
    pub(super) headers: Arc<RequestHeaders>,
    pub(super) accepts: Accepts,
    pub(super) caller: Caller,
}

/// A request that is let in as soon as the server runs.
pub(super) struct AdmittedRequest {
    permit: RequestPermit,
    headers: Arc<RequestHeaders>,
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

impl RequestContext {
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
            permit: self.permit.another(),
            running: self.running.clone(),
            headers: Arc::clone(&self.headers),
            accepts: self.accepts,
            caller: self.caller.clone(),
        }
    }
}

impl AdmittedRequest {
    pub(super) fn new(
        service: Arc<ServiceState>,
        mut parts: Parts,
        accepts: Accepts,
    ) -> Result<Self, Rejection> {
        let permit = service.admit().ok_or_else(reply::overloaded)?;
        let mut caller = Caller::default();
        caller.principal = parts.extensions.remove::<Arc<Principal>>();
        Ok(Self { permit, headers: Arc::new(RequestHeaders::new(parts.headers)), accepts, caller })
    }

    pub(super) async fn start(self) -> Result<RequestContext, Rejection> {
        let Self { permit, headers, accepts, caller } = self;
        let running = match permit.service().running().await {
            Ok(running) => running.clone(),
            Err(StartFailed) => return Err(reply::unavailable(None, "Internal server error").into()),
        };
        Ok(RequestContext { permit, running, headers, accepts, caller })
    }
}

/// Serves one request of HTTP. What its head says is settled before there is a future, which has the less to hold.
pub(super) fn enter<B>(
    service: Arc<ServiceState>,
    request: Request<B>,
) -> impl Future<Output = Reply> + Send + use<B>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let (begun, finish) = begin(service, parts, body);
    async move {
        let answered = match begun {
            Begun::Settled(reply) => Err(reply),
            Begun::Message(claimed, request, body) => post(claimed, request, body).await,
            Begun::Seldom(work) => work.await,
        };
        finish.apply(answered.unwrap_or_else(|refusal| *refusal))
    }
}

/// A request of which the head has been looked at.
enum Begun<B> {
    /// That was enough.
    Settled(Rejection),
    Message(ClaimedEra, AdmittedRequest, B),
    /// Everything that does not come often, so that what does is not made larger by it.
    Seldom(BoxFuture<'static, Result<Reply, Rejection>>),
}

fn begin<B>(service: Arc<ServiceState>, parts: Parts, body: B) -> (Begun<B>, Finish)
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let head = Head::read(&parts.headers);
    let is_last = is_last_on_connection(&parts.headers, parts.version);
    if let Err(refused) = service.config.allowed.check(&head, parts.uri.authority()) {
        tracing::warn!(reason = refused.0, "a request is refused");
        let refusal = reply::invalid_request(StatusCode::FORBIDDEN, refused.0).into();
        return (Begun::Settled(refusal), Finish { origin: None, is_last });
    }
    let origin = cors::origin(service.config.cors, &parts);
    let preflight = origin.as_ref().and_then(|_| cors::preflight(&parts));
    let finish = Finish { origin, is_last };
    let errand = match preflight {
        Some(reply) => Err(reply.into()),
        None => errand(&service.config, &parts, &head),
    };
    let accepts = head.accepts;
    let begun = errand.and_then(|errand| set_out(service, errand, accepts, parts, body));
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
        if self.is_last { reply::close_connection(reply) } else { reply }
    }
}

/// What a request is here for, as far as its head says.
#[derive(Clone, Copy)]
enum Errand {
    /// A message is brought.
    Message(ClaimedEra),
    /// What a session tells is to be read.
    Read,
    /// A session is to be ended.
    End,
    /// An old client.
    HttpSse(http_sse::End),
}

fn errand(config: &Config, parts: &Parts, head: &Head<'_>) -> Result<Errand, Rejection> {
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
        (&Method::GET, Handshake::Sessions, ClaimedEra::Handshake) => Ok(Errand::Read),
        (&Method::DELETE, Handshake::Sessions, ClaimedEra::Handshake) => Ok(Errand::End),
        (_, Handshake::Sessions, ClaimedEra::Handshake) => {
            Err(reply::method_not_allowed("GET, POST, DELETE").into())
        }
        _ => Err(reply::method_not_allowed("POST").into()),
    }
}

fn set_out<B>(
    service: Arc<ServiceState>,
    errand: Errand,
    accepts: Accepts,
    parts: Parts,
    body: B,
) -> Result<Begun<B>, Rejection>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    Ok(match errand {
        Errand::HttpSse(end) => Begun::Seldom(Box::pin(http_sse::serve(service, end, parts, body))),
        Errand::Message(claimed) => {
            Begun::Message(claimed, AdmittedRequest::new(service, parts, accepts)?, body)
        }
        Errand::Read => {
            let request = AdmittedRequest::new(service, parts, accepts)?;
            Begun::Seldom(Box::pin(async { handshake::get(request.start().await?).await }))
        }
        Errand::End => {
            let request = AdmittedRequest::new(service, parts, accepts)?;
            Begun::Seldom(Box::pin(async { handshake::delete(request.start().await?).await }))
        }
    })
}

/// How a message is answered.
pub(super) enum Served {
    /// At once.
    Now(Reply),
    /// As its handler says.
    Exchange(Exchange, ResponseMode),
    /// In another way.
    Later(BoxFuture<'static, Result<Reply, Rejection>>),
}

/// From the head of the request to its message, and on.
async fn post<B>(claimed: ClaimedEra, request: AdmittedRequest, body: B) -> Result<Reply, Rejection>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let text = request_body::read(body, &request.permit.service().config).await?;
    let message = read_message(&text)?;
    let context = request.start().await?;
    let served = match choose(claimed, &message) {
        Era::Envelope => envelope::serve(context, message)?,
        Era::Handshake => handshake::post(context, message)?,
    };
    match served {
        Served::Now(reply) => Ok(reply),
        Served::Exchange(exchange, mode) => Ok(respond(exchange, mode).await),
        Served::Later(work) => work.await,
    }
}

/// An envelope in the body, or a version header that is not one of a handshake, makes the envelope era.
fn choose(claimed: ClaimedEra, message: &Message) -> Era {
    match (claimed, message) {
        (ClaimedEra::Other, _) => Era::Envelope,
        (ClaimedEra::Handshake, Message::Request(_, call) | Message::Notification(call))
            if is_enveloped(call) =>
        {
            Era::Envelope
        }
        (ClaimedEra::Handshake, _) => Era::Handshake,
    }
}

fn read_message(text: &ByteString) -> Result<Message, Rejection> {
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
    reply::rpc_error(StatusCode::BAD_REQUEST, None, &error)
}

pub(super) fn not_a_message(id: Option<&RequestId>) -> Reply {
    let text = "Body must be a single JSON-RPC request or notification object";
    let error = ErrorObject::new(ErrorCode::INVALID_REQUEST, text);
    reply::rpc_error(StatusCode::BAD_REQUEST, id, &error)
}

fn not_acceptable(claimed: ClaimedEra, responses: Responses) -> Reply {
    let text = match (claimed, responses) {
        (ClaimedEra::Other, _) => return reply::empty(StatusCode::NOT_ACCEPTABLE),
        (ClaimedEra::Handshake, Responses::Streaming) => {
            "Not Acceptable: Client must accept both application/json and text/event-stream"
        }
        (ClaimedEra::Handshake, Responses::JsonOnly) => "Not Acceptable: Client must accept application/json",
    };
    reply::invalid_request(StatusCode::NOT_ACCEPTABLE, text)
}
