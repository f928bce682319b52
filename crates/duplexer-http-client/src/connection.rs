//! State that all exchanges with one server share, and the HTTP requests of the transport: POST, GET and DELETE.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::transport::{FrameMeta, Incoming, IncomingMessage, TransportContext};
use duplexer_types::headers::LAST_EVENT_ID;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE};
use reqwest::{Client, Method, Request, Response, StatusCode, Url};
use tokio::sync::mpsc;

use crate::session::Session;

/// The media type of a stream of events.
pub(crate) const EVENTS: &str = "text/event-stream";

const MAX_REDIRECTS: u32 = 5;

/// Target and settings of every HTTP request.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) limit: usize,
    pub(crate) on_challenge: Option<OnChallenge>,
}

/// Receives the status of a rejected request and its challenge.
type ChallengeHandler = dyn Fn(u16, Option<&str>) + Send + Sync;

/// Callback for requests that the server rejects with 401 or 403.
#[derive(Clone)]
pub(crate) struct OnChallenge(pub(crate) Arc<ChallengeHandler>);

impl std::fmt::Debug for OnChallenge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OnChallenge")
    }
}

impl Endpoint {
    /// Calls the challenge handler if the server rejects the request with 401 or 403.
    pub(crate) fn report_challenge(&self, response: &Response) {
        let status = response.status();
        if let (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, Some(OnChallenge(handler))) =
            (status, &self.on_challenge)
        {
            handler(
                status.as_u16(),
                response.headers().get(WWW_AUTHENTICATE).and_then(|it| it.to_str().ok()),
            );
        }
    }
}

/// One server and the session with it.
pub(crate) struct Connection {
    pub(crate) endpoint: Endpoint,
    pub(crate) session: Session,
    /// Queue of received messages, which the reader half drains.
    pub(crate) inbox: mpsc::Sender<Incoming>,
    pub(crate) context: Arc<TransportContext>,
}

/// A message to send.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) frame: Vec<u8>,
    pub(crate) hints: FrameMeta,
}

/// Relation of a message to the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionRole {
    /// The message carries an envelope: it belongs to no session, and its POST is the whole exchange.
    None,
    /// The message opens the session.
    Opens,
    /// The message belongs to the session.
    Member,
}

/// Why a message was not sent.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The header of this name is invalid.
    Header(String),
    /// The server was not reached, or the response is not HTTP.
    Unreached(reqwest::Error),
}

impl Connection {
    /// Delivers a received message to the reader half.
    pub(crate) async fn deliver(&self, text: ByteString) {
        let message = IncomingMessage::new(text, Arc::clone(&self.context));
        // Fails only after the reader half is dropped; the message has no receiver then.
        let _ = self.inbox.send(Incoming::Message(message)).await;
    }

    /// Sends a message as a POST.
    pub(crate) async fn post(&self, message: Outgoing, role: SessionRole) -> Result<Response, SendError> {
        let mut request = self.request(Method::POST);
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        for (name, value) in &message.hints.headers {
            let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
                return Err(SendError::Header(name.clone()));
            };
            headers.insert(name, value);
        }
        if role == SessionRole::Member {
            self.session.add_headers(headers);
        }
        *request.body_mut() = Some(message.frame.into());
        self.send(request).await.map_err(SendError::Unreached)
    }

    /// Opens the standalone stream of the session, or resumes an earlier stream after the event `last`.
    pub(crate) async fn get(&self, last: Option<&HeaderValue>) -> Result<Response, reqwest::Error> {
        let mut request = self.request(Method::GET);
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(EVENTS));
        if let Some(last) = last {
            headers.insert(HeaderName::from_static(LAST_EVENT_ID.lower), last.clone());
        }
        self.session.add_headers(headers);
        self.send(request).await
    }

    /// Ends the session at the server. A server that does not support this expires the session by itself.
    pub(crate) async fn delete(&self) {
        let mut request = self.request(Method::DELETE);
        self.session.add_headers(request.headers_mut());
        match self.send(request).await {
            Ok(response) => tracing::debug!(status = %response.status(), "the session has ended"),
            Err(error) => tracing::debug!(%error, "the session could not be ended at the server"),
        }
    }

    fn request(&self, method: Method) -> Request {
        let mut request = Request::new(method, self.endpoint.url.clone());
        *request.headers_mut() = self.endpoint.headers.clone();
        request
    }

    /// Sends a request and follows permitted redirects.
    async fn send(&self, mut request: Request) -> Result<Response, reqwest::Error> {
        let mut followed = 0;
        loop {
            let (url, again) = (request.url().clone(), request.try_clone());
            let response = self.endpoint.client.execute(request).await?;
            let target = redirected(&url, response.status(), response.headers().get(LOCATION));
            match (target, again) {
                (Some(target), Some(again)) if followed < MAX_REDIRECTS => {
                    request = again;
                    *request.url_mut() = target;
                    followed += 1;
                }
                _ => return Ok(response),
            }
        }
    }
}

/// Returns the target of a permitted redirect: same method, same server, because the request may hold credentials that
/// are meant for that server only.
fn redirected(from: &Url, status: StatusCode, location: Option<&HeaderValue>) -> Option<Url> {
    if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
        return None;
    }
    let to = from.join(location?.to_str().ok()?).ok()?;
    let upgraded = from.host() == to.host()
        && (from.scheme(), from.port_or_known_default()) == ("http", Some(80))
        && (to.scheme(), to.port_or_known_default()) == ("https", Some(443));
    (upgraded || from.origin() == to.origin()).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CHTTP-04: the same server and the same method, or an upgrade of the same server to https.
    #[test]
    fn a_redirect_is_followed_only_to_the_same_server() {
        let check = |from: &str, status: u16, location: &str, to: Option<&str>| {
            let found = redirected(
                &Url::parse(from).unwrap(),
                StatusCode::from_u16(status).unwrap(),
                Some(&HeaderValue::try_from(location).unwrap()),
            );
            assert_eq!(found.as_ref().map(Url::as_str), to, "{from} {status} {location}");
        };
        let here = "http://host:8000/mcp";
        check(here, 307, "/mcp/", Some("http://host:8000/mcp/"));
        check(here, 308, "http://HOST:8000/other?q", Some("http://host:8000/other?q"));
        for moved in [300, 301, 302, 303, 304, 200, 404] {
            check(here, moved, "/mcp/", None);
        }
        for elsewhere in
            ["http://host:8001/", "http://other:8000/", "https://host:8000/", "//evil/", "file:///x"]
        {
            check(here, 307, elsewhere, None);
        }
        check("http://host/mcp", 307, "https://host/mcp", Some("https://host/mcp"));
        check("http://host/mcp", 307, "https://host:8443/mcp", None);
        check("http://host:8000/mcp", 307, "https://host/mcp", None);
        check("https://host/mcp", 307, "http://host/mcp", None);
        check("http://host/mcp", 307, "https://sub.host/mcp", None);
    }

    #[test]
    fn a_redirect_to_nowhere_is_not_followed() {
        let here = Url::parse("http://host/").unwrap();
        assert_eq!(redirected(&here, StatusCode::TEMPORARY_REDIRECT, None), None);
        let nonsense = HeaderValue::from_static("http://[");
        assert_eq!(redirected(&here, StatusCode::TEMPORARY_REDIRECT, Some(&nonsense)), None);
    }
}
