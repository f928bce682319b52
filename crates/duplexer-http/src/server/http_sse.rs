//! The HTTP+SSE transport of 2024-11-05: an SSE stream, and a second path to which the client POSTs its messages.
//!
//! The two form one duplex transport (`transport`), which core serves like any other, in either era. `session` is its
//! life cycle. What the messages mean is not known here.

mod forward;
mod paths;
mod session;
mod transport;

use std::sync::Arc;

use bytes::Bytes;
use bytestring::ByteString;
use duplexer_core::error::BoxError;
use duplexer_core::run::RunId;
use duplexer_core::transport::{HeaderSource, Headers, Incoming, IncomingMessage, TransportContext};
use duplexer_server::Principal;
use duplexer_types::jsonrpc;
use http::{Method, StatusCode};
use http_body::Body;

use super::head::Head;
use super::reply::{self, Rejection, Reply};
use super::request::AdmittedRequest;
use super::request_body;
use super::request_headers::RequestHeaders;
use super::service_state::RequestPermit;
use super::session::Stores;
use super::sse;

pub(super) use forward::receive;
pub(super) use paths::{End, InvalidPath, Paths};
pub(super) use session::SseSessions;
pub(super) use transport::SseSessionBody;

/// Checks the method of a request to one of the two paths, and the head of a message.
pub(super) fn check(end: End, method: &Method, head: &Head<'_>) -> Result<(), Rejection> {
    match (end, method) {
        (End::Stream, &Method::GET) => Ok(()),
        (End::Stream, _) => Err(reply::method_not_allowed("GET").into()),
        (End::Messages, &Method::POST) => head.check_body(),
        (End::Messages, _) => Err(reply::method_not_allowed("POST").into()),
    }
}

/// Serves one request to one of the two paths.
pub(super) async fn serve<B>(
    end: End,
    query: Option<String>,
    request: AdmittedRequest,
    body: B,
) -> Result<Reply, Rejection>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    match end {
        End::Stream => session::open(request.start().await?),
        End::Messages => post(query.as_deref(), request, body).await,
    }
}

/// Accepts a message. Its response is sent on the stream.
async fn post<B>(query: Option<&str>, request: AdmittedRequest, body: B) -> Result<Reply, Rejection>
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    let service = Arc::clone(request.permit.service());
    let body = request_body::read_bytes(body, &service.config).await?;
    let link = Link::read(query)?;
    let AdmittedRequest { permit, headers, caller, .. } = request.start().await?.request;
    if let Some(stores) = service.stores.as_ref().filter(|stores| link.is_elsewhere(stores)) {
        return forward::send(stores, &link, caller.principal.as_deref(), &body).await;
    }
    let principal = caller.principal.as_deref();
    let session = SseSessions::find(&service, link.key, principal).ok_or_else(unknown_session)?;
    let posted = Posted { headers: Some(headers), _permit: permit };
    let (incoming, reply) = incoming_message(posted, caller.principal, &body);
    session.deliver(&service, incoming).await?;
    Ok(reply)
}

/// Builds the frame for the transport. Malformed input is passed on too: the dispatcher decides how to respond to it.
fn incoming_message(posted: Posted, sender: Option<Arc<Principal>>, body: &Bytes) -> (Incoming, Reply) {
    let garbled = || reply::text(StatusCode::BAD_REQUEST, "Could not parse message");
    let Ok(text) = std::str::from_utf8(body) else {
        return (Incoming::Unreadable("not UTF-8"), garbled());
    };
    let reply = match jsonrpc::read(text) {
        Ok(_) => reply::text(StatusCode::ACCEPTED, "Accepted"),
        Err(_) => garbled(),
    };
    let mut transport = TransportContext::stream("http+sse");
    transport.sender = sender.map(|principal| principal as _);
    transport.headers = Headers::of(Arc::new(posted));
    // Copied, because a small message could pin a large read buffer.
    (Incoming::Message(IncomingMessage::new(ByteString::from(text), Arc::new(transport))), reply)
}

/// A message of a POST. It holds its permit until it has been handled, not only until the POST is answered.
struct Posted {
    /// `None` if another node has received the message.
    headers: Option<Arc<RequestHeaders>>,
    _permit: RequestPermit,
}

impl HeaderSource for Posted {
    fn values<'a>(&'a self, name: &str, each: &mut dyn FnMut(&'a str)) {
        if let Some(headers) = &self.headers {
            headers.values(name, each);
        }
    }
}

/// The session that a message belongs to.
struct Link {
    key: u128,
    /// The run that serves it, if there are shared stores.
    run: Option<RunId>,
}

impl Link {
    fn read(query: Option<&str>) -> Result<Self, Rejection> {
        let pairs = query.unwrap_or_default().split('&');
        let mut named = pairs.filter_map(|pair| pair.strip_prefix("session_id="));
        let refused = |text| Rejection::new(reply::text(StatusCode::BAD_REQUEST, text));
        match (named.next(), named.next()) {
            (None | Some(""), _) => Err(refused("session_id is required")),
            (Some(name), None) => Self::parse(name).ok_or_else(|| refused("Invalid session ID")),
            (Some(_), Some(_)) => Err(refused("Invalid session ID")),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        let Some((run, id)) = name.split_once('.') else {
            return Some(Self { key: sse::bits(name)?, run: None });
        };
        sse::bits(id)?;
        let run = if run.len() == 16 { run.parse().ok()? } else { return None };
        Some(Self { key: session::link_key(name)?, run: Some(run) })
    }

    fn is_elsewhere(&self, stores: &Stores) -> bool {
        stores.shared().is_some() && self.run.is_some_and(|run| run != stores.run())
    }
}

/// Returns the same response for a session that does not exist and one of another principal.
fn unknown_session() -> Rejection {
    reply::text(StatusCode::NOT_FOUND, "Could not find session").into()
}
