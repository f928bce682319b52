//! Entry of every HTTP request: checks its head, routes it, reads its message and chooses its era, once.
//!
//! The order is: host and origin, then the head, then the body. The head is handled before there is a future, which
//! keeps the future small. What a message means is not known here.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_server::Principal;
use duplexer_server::driver::is_enveloped;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{Malformed, RequestId};
use duplexer_types::version::Era;
use http::{HeaderValue, Method, Request, StatusCode, Version, request::Parts};
use http_body::Body;

use super::body::UnsentOwner;
use super::config::{Config, Handshake, RequestIds, Responses};
use super::exchange::Exchange;
use super::head::{Accepts, ClaimedEra, Head};
use super::reply::{self, Rejection, Reply};
use super::request::AdmittedRequest;
use super::request_headers::KnownHeaders;
use super::request_id::{self, REQUEST_ID};
use super::response::{ResponseMode, respond};
use super::service_state::ServiceState;
use super::session::SessionCall;
use super::{cors, envelope, handshake, http_sse, request_body};
use duplexer_core::dispatch::Frame;

/// Serves one HTTP request. The future has the output of the service, because wrapping it in another future would copy it.
///
/// `peer` is the address of its peer, if the caller knows it; otherwise an extension of the request can have it.
pub(super) fn handle<B>(
    service: Arc<ServiceState>,
    request: Request<B>,
    peer: Option<SocketAddr>,
) -> impl Future<Output = Result<Reply, Infallible>> + Send + use<B>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let (parts, body) = request.into_parts();
    let (step, finish) = first_step(service, parts, body, peer);
    async move {
        let result = match step {
            Step::Reply(reply) => Err(reply),
            Step::Post(claimed, request, body) => post(claimed, request, body).await,
            Step::Boxed(future) => future.await,
        };
        Ok(finish.apply(result.unwrap_or_else(|rejection| *rejection)))
    }
}

/// What follows once the head of a request has been checked.
enum Step<B> {
    Reply(Rejection),
    Post(ClaimedEra, AdmittedRequest, B),
    /// Rare routes, boxed to keep the POST future small.
    Boxed(BoxFuture<'static, Result<Reply, Rejection>>),
}

fn first_step<B>(
    service: Arc<ServiceState>,
    mut parts: Parts,
    body: B,
    peer: Option<SocketAddr>,
) -> (Step<B>, Finish)
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    if let Some(reply) = service.config.card.as_ref().and_then(|card| card.reply(&service.config, &parts)) {
        return (Step::Reply(reply.into()), Finish::default());
    }
    let request_id = match service.config.request_ids {
        RequestIds::On => request_id::of(&mut parts.headers),
        RequestIds::Off => None,
    };
    let head = Head::read(&parts.headers);
    let mut finish = Finish {
        request_id,
        origin: None,
        is_last: head.is_last_on_connection(parts.version),
        watched: (parts.version == Version::HTTP_2).then(|| unsent_owner(&service, &parts)),
    };
    if let Err(not_allowed) = service.config.allowed.check(&head, parts.uri.authority()) {
        tracing::warn!(reason = not_allowed.0, "a request is refused");
        let reply = reply::invalid_request(StatusCode::FORBIDDEN, not_allowed.0);
        return (Step::Reply(reply.into()), finish);
    }
    finish.origin = cors::origin(service.config.cors, &parts);
    let preflight = finish.origin.as_ref().and_then(|_| cors::preflight(&parts));
    let route = match preflight {
        Some(reply) => Err(reply.into()),
        None => route(&service.config, &parts, &head),
    };
    let Head { accepts, known, .. } = head;
    let step = route.and_then(|route| dispatch(service, route, parts, known, accepts, body, peer));
    (step.unwrap_or_else(Step::Reply), finish)
}

/// What every response gets, whatever it is.
#[derive(Default)]
struct Finish {
    /// Id that the log of the client can have too.
    request_id: Option<HeaderValue>,
    /// Origin of the script that reads the response.
    origin: Option<HeaderValue>,
    /// Whether the connection closes after the response.
    is_last: bool,
    /// Whose limits the response counts against until it is read, for HTTP/2. On HTTP/1 the socket shows it.
    watched: Option<UnsentOwner>,
}

fn unsent_owner(service: &Arc<ServiceState>, parts: &Parts) -> UnsentOwner {
    let principal = parts.extensions.get::<Arc<Principal>>();
    let share = principal.map(|principal| service.shares.of(principal));
    UnsentOwner { service: Arc::clone(service), share }
}

impl Finish {
    fn apply(self, mut reply: Reply) -> Reply {
        if let Some(owner) = self.watched {
            reply.body_mut().watch_text(&owner);
        }
        if let Some(origin) = self.origin {
            cors::expose(&mut reply, origin);
        }
        if let Some(id) = self.request_id {
            reply.headers_mut().insert(REQUEST_ID, id);
        }
        if self.is_last { reply::close_connection(reply) } else { reply }
    }
}

/// Purpose of a request according to its head.
#[derive(Clone, Copy)]
enum Route {
    /// POST: a message.
    Message(ClaimedEra),
    /// GET: a stream of a session.
    OpenStream,
    /// DELETE: the end of a session.
    EndSession,
    /// The HTTP+SSE transport.
    HttpSse(http_sse::End),
}

fn route(config: &Config, parts: &Parts, head: &Head<'_>) -> Result<Route, Rejection> {
    let path = parts.uri.path();
    if let Some(end) = config.http_sse.end(path) {
        http_sse::check(end, &parts.method, head)?;
        return Ok(Route::HttpSse(end));
    }
    if let Some(own) = config.path.as_ref().filter(|own| path.strip_suffix('/').unwrap_or(path) != **own) {
        return Err(reply::not_found(own).into());
    }
    let (claimed, accepts) = (head.claimed_era(), head.accepts);
    match (&parts.method, config.handshake, claimed) {
        (&Method::POST, ..) => {
            head.check_body()?;
            if !accepts.json || !(accepts.events || config.responses == Responses::JsonOnly) {
                return Err(not_acceptable(claimed, config.responses).into());
            }
            Ok(Route::Message(claimed))
        }
        (&Method::GET, Handshake::Sessions, ClaimedEra::Handshake) => Ok(Route::OpenStream),
        (&Method::DELETE, Handshake::Sessions, ClaimedEra::Handshake) => Ok(Route::EndSession),
        (_, Handshake::Sessions, ClaimedEra::Handshake) => {
            Err(reply::method_not_allowed("GET, POST, DELETE").into())
        }
        _ => Err(reply::method_not_allowed("POST").into()),
    }
}

/// Admits a request and hands it to its route.
fn dispatch<B>(
    service: Arc<ServiceState>,
    route: Route,
    parts: Parts,
    known: KnownHeaders,
    accepts: Accepts,
    body: B,
    peer: Option<SocketAddr>,
) -> Result<Step<B>, Rejection>
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError>,
{
    let query = match route {
        Route::HttpSse(_) => parts.uri.query().map(str::to_owned),
        Route::Message(_) | Route::OpenStream | Route::EndSession => None,
    };
    let request = AdmittedRequest::new(service, parts, known, accepts, peer)?;
    Ok(match route {
        Route::Message(claimed) => Step::Post(claimed, request, body),
        Route::OpenStream => Step::Boxed(Box::pin(async { handshake::get(request.start().await?).await })),
        Route::EndSession => Step::Boxed(Box::pin(async { handshake::delete(request.start().await?).await })),
        Route::HttpSse(end) => Step::Boxed(Box::pin(http_sse::serve(end, query, request, body))),
    })
}

/// How the message of a POST is answered.
pub(super) enum PostStep {
    Reply(Reply),
    /// The response driver polls its handler.
    Exchange(Exchange, ResponseMode),
    /// The same in a session.
    Session(SessionCall, ResponseMode),
    /// Rare paths, boxed to keep the POST future small.
    Boxed(BoxFuture<'static, Result<Reply, Rejection>>),
}

/// Reads the message of a POST, chooses its era and serves it.
async fn post<B>(claimed: ClaimedEra, request: AdmittedRequest, body: B) -> Result<Reply, Rejection>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let text = request_body::read(body, &request.permit.service().config).await?;
    let frame = parse_message(&text)?;
    let context = request.start().await?;
    let step = match choose_era(claimed, &frame) {
        Era::Envelope => envelope::serve(context, frame)?,
        Era::Handshake => handshake::post(context, frame)?,
    };
    match step {
        PostStep::Reply(reply) => Ok(reply),
        PostStep::Exchange(exchange, mode) => Ok(respond(exchange, mode).await),
        PostStep::Session(call, mode) => Ok(call.respond(mode).await),
        PostStep::Boxed(future) => future.await,
    }
}

/// Chooses the envelope era if the message has an envelope, or if the version header names no handshake revision.
fn choose_era(claimed: ClaimedEra, frame: &Frame) -> Era {
    match (claimed, frame) {
        (ClaimedEra::Other, _) => Era::Envelope,
        (ClaimedEra::Handshake, Frame::Request(_, call) | Frame::Notification(call))
            if is_enveloped(call) =>
        {
            Era::Envelope
        }
        (ClaimedEra::Handshake, _) => Era::Handshake,
    }
}

fn parse_message(text: &ByteString) -> Result<Frame, Rejection> {
    Frame::parse(text).map_err(|malformed| match malformed {
        Malformed::NotJson => parse_error().into(),
        Malformed::Invalid { id, .. } => not_a_message(id.as_ref()).into(),
        Malformed::Unanswerable { .. } => not_a_message(None).into(),
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
