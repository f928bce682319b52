//! The one place through which every HTTP request leaves: authorization, redirects, and the cap of both.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::CallClock;
use duplexer_core::transport::TransportFailure;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use reqwest::{Body, Client, Method, Request, Response, StatusCode, Url};

use crate::authorization::{Authorization, OutgoingRequest, ResponseHead, Verdict};
use crate::failure;
use crate::observer::Observer;

/// Maximum times that a request is sent because of its authorization.
const MAX_SENDS: u32 = 6;
/// Maximum redirects of one request.
const MAX_REDIRECTS: u32 = 5;

/// Target and settings of every HTTP request.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) client: Client,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) limit: usize,
    pub(crate) authorization: Option<Arc<dyn Authorization>>,
    pub(crate) observer: Option<Observer>,
}

impl Endpoint {
    /// Starts a request to `url` with the headers of every request.
    pub(crate) fn request(&self, method: Method, url: &Url) -> Request {
        let mut request = Request::new(method, url.clone());
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Sends a request, again if its authorization decides so, and follows permitted redirects.
    pub(crate) async fn send(&self, mut request: Request) -> Result<Response, TransportFailure> {
        let (mut attempt, mut redirects) = (1, 0);
        loop {
            let again = request.try_clone();
            let (outgoing, mut response) = self.send_once(request, attempt).await?;
            let target = redirected(&outgoing.url, response.status(), response.headers().get(LOCATION));
            let Some(again) = again else { return Ok(response) };
            request = again;
            if let Some(target) = target.filter(|_| redirects < MAX_REDIRECTS) {
                *request.url_mut() = target;
                redirects += 1;
                continue;
            }
            if is_unauthorized(response.status()) && self.authorization.is_some() {
                response = received(response).await;
            }
            if attempt == MAX_SENDS || self.verdict(&outgoing, &response).await? == Verdict::Accept {
                return Ok(response);
            }
            *request.url_mut() = outgoing.url;
            attempt += 1;
        }
    }

    /// Returns the clock that is paused while a person logs in.
    pub(crate) fn clock(&self) -> Option<CallClock> {
        self.authorization.as_ref().and_then(|authorization| authorization.clock())
    }

    /// Runs a request for at most `limit`, to which the time of a login is not charged. Returns `None` after it.
    pub(crate) async fn within<T>(&self, limit: Duration, request: impl Future<Output = T>) -> Option<T> {
        let clock = self.clock().unwrap_or_default();
        tokio::select! {
            biased;
            outcome = request => Some(outcome),
            () = clock.run_for(limit) => None,
        }
    }

    async fn send_once(
        &self,
        mut request: Request,
        attempt: u32,
    ) -> Result<(OutgoingRequest, Response), TransportFailure> {
        let headers = std::mem::take(request.headers_mut());
        let (method, url) = (request.method().clone(), request.url().clone());
        let mut outgoing = OutgoingRequest { method, url, headers, attempt };
        if let Some(authorization) = &self.authorization {
            let authorized = authorization.authorize(&mut outgoing).await;
            authorized.map_err(|error| TransportFailure::Authorization(error.into()))?;
            if let Some(credentials) = outgoing.headers.get_mut(AUTHORIZATION) {
                credentials.set_sensitive(true);
            }
            *request.headers_mut() = outgoing.headers.clone();
        } else {
            *request.headers_mut() = std::mem::take(&mut outgoing.headers);
        }
        let Some(observer) = &self.observer else {
            let response = self.client.execute(request).await.map_err(failure::of_sending)?;
            return Ok((outgoing, response));
        };
        let exchange = observer.begin(&request);
        let response = self.client.execute(request).await.map_err(failure::of_sending)?;
        exchange.end(&response);
        Ok((outgoing, response))
    }

    async fn verdict(
        &self,
        outgoing: &OutgoingRequest,
        response: &Response,
    ) -> Result<Verdict, TransportFailure> {
        let Some(authorization) = &self.authorization else { return Ok(Verdict::Accept) };
        let head = ResponseHead::of(response);
        let verdict = authorization.on_response(outgoing, head).await;
        verdict.map_err(|error| TransportFailure::Authorization(error.into()))
    }
}

/// Shows no secret: neither headers nor the parts of a URL that can hold one.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("limit", &self.limit)
            .field("authorization", &self.authorization.as_ref().map(|_| "set"))
            .finish_non_exhaustive()
    }
}

/// Returns a URL without user name, password, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    format!("{}{}", url.origin().ascii_serialization(), url.path())
}

fn is_unauthorized(status: StatusCode) -> bool {
    matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN)
}

/// Receives the beginning of the body of a refusal, and returns the response with it.
///
/// A connection whose response is not received counts as busy. After the login of a person it would be used for the next
/// request, although the server has closed it meanwhile.
async fn received(mut response: Response) -> Response {
    let body = failure::beginning(&mut response).await;
    let mut whole = http::Response::<Body>::from(response);
    *whole.body_mut() = body.into();
    whole.into()
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
    use duplexer_core::dispatch::BoxFuture;
    use duplexer_core::error::BoxError;
    use tokio::time::sleep;

    use super::*;

    /// An authorization that has nothing but a clock.
    struct Clocked(CallClock);

    impl Authorization for Clocked {
        fn authorize<'a>(&'a self, _: &'a mut OutgoingRequest) -> BoxFuture<'a, Result<(), BoxError>> {
            Box::pin(std::future::ready(Ok(())))
        }

        fn on_response<'a>(
            &'a self,
            _: &'a OutgoingRequest,
            _: ResponseHead<'a>,
        ) -> BoxFuture<'a, Result<Verdict, BoxError>> {
            Box::pin(std::future::ready(Ok(Verdict::Accept)))
        }

        fn clock(&self) -> Option<CallClock> {
            Some(self.0.clone())
        }
    }

    /// OAC-06: a notification that needs a login waits for the person, not for its own limit only.
    #[tokio::test(start_paused = true)]
    async fn a_login_is_not_charged_to_the_limit_of_a_message() {
        let clock = CallClock::new();
        let endpoint = Endpoint {
            client: crate::transport::default_client().unwrap(),
            url: Url::parse("http://127.0.0.1:1/").unwrap(),
            headers: HeaderMap::new(),
            limit: 1,
            authorization: Some(Arc::new(Clocked(clock.clone()))),
            observer: None,
        };
        let second = Duration::from_secs(1);
        let login = async {
            let _pause = clock.pause();
            sleep(200 * second).await;
        };
        assert_eq!(endpoint.within(30 * second, login).await, Some(()));
        assert_eq!(endpoint.within(30 * second, sleep(31 * second)).await, None);
    }

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
