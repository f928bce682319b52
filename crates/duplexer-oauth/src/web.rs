//! HTTP requests of discovery, registration and token endpoints, within their limits (OAC-90, OAC-91).

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use duplexer_oauth_base::address::is_protected;
use duplexer_oauth_base::fetch::{self, Answer, FetchError, Fetcher, Reach};
use duplexer_types::headers::PROTOCOL_VERSION;
use duplexer_types::methods::{Ping, Request as _};
use duplexer_types::text::shown;
use duplexer_types::version::ProtocolVersion;
use reqwest::StatusCode;
use reqwest::header::{LOCATION, WWW_AUTHENTICATE};
use serde_json::json;
use url::Url;

use crate::challenge::Challenge;
use crate::error::OAuthError;

/// Maximum time of one request.
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 3;
/// Maximum size of an answer to a POST.
pub(crate) const MAX_ANSWER: usize = 1024 * 1024;

/// Address of the other end of a connection, if it is known.
pub(crate) type Peer = Option<SocketAddr>;

/// HTTP client for URLs that a server names: no more private than the server itself.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    fetcher: Fetcher,
}

/// What a URL of discovery leads to.
pub(crate) enum Document {
    Found(Bytes),
    /// There is no document: 404, 405 or 410.
    Absent,
    /// The server refuses to give it, or redirects elsewhere, with this status.
    Refused(u16),
}

impl Web {
    pub(crate) fn new(reach: Reach) -> Result<Self, OAuthError> {
        let builder = fetch::builder(concat!("duplexer/", env!("CARGO_PKG_VERSION"))).timeout(TIMEOUT);
        let failed = |error: reqwest::Error| OAuthError::Config(error.to_string().into());
        Ok(Self { fetcher: Fetcher::build(builder, reach).map_err(failed)? })
    }

    /// Fetches a document of discovery. Redirects stay on the origin.
    pub(crate) async fn document(&self, url: &Url, limit: usize) -> Result<Document, OAuthError> {
        let mut at = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            check_protected(&at)?;
            let failed = |error| OAuthError::of_fetch(at.as_str(), &error);
            let request = self.fetcher.get(&at).map_err(failed)?;
            let request = request
                .header("accept", "application/json")
                .header(PROTOCOL_VERSION.lower, ProtocolVersion::LATEST_ENVELOPE.as_str());
            let answer = fetch::answer(request, limit).await.map_err(failed)?;
            match answer.status {
                200..=299 => return Ok(Document::Found(answer.body)),
                404 | 405 | 410 => return Ok(Document::Absent),
                301 | 302 | 303 | 307 | 308 => match redirected(&at, &answer) {
                    Some(target) => at = target,
                    None => return Ok(Document::Refused(answer.status)),
                },
                429 | 500.. => return Err(unavailable(at.as_str(), answer.status)),
                status => return Ok(Document::Refused(status)),
            }
        }
        Err(OAuthError::answer(url.as_str(), "it redirects too often"))
    }

    /// Sends a `ping` without a token to a server. Returns the challenge of its refusal, or `None` without a refusal, and the
    /// address that it came from.
    pub(crate) async fn challenge(&self, server: &Url) -> Result<(Option<Challenge>, Peer), OAuthError> {
        check_protected(server)?;
        let failed = |error| OAuthError::of_fetch(server.as_str(), &error);
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": Ping::METHOD.name()});
        let request = self.fetcher.post(server).map_err(failed)?;
        let request = request
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(ping.to_string());
        // The body, which may be a stream without an end, is not read.
        let response = request.send().await.map_err(|error| failed(FetchError::Unreachable(error)))?;
        let peer = response.remote_addr();
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok((None, peer));
        }
        let values = response.headers().get_all(WWW_AUTHENTICATE).into_iter();
        Ok((Some(Challenge::select(values.filter_map(|value| value.to_str().ok()))), peer))
    }

    /// Sends a body. Redirects are not followed.
    pub(crate) async fn post(
        &self,
        url: &Url,
        configure: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<Answer, OAuthError> {
        check_protected(url)?;
        let failed = |error| OAuthError::of_fetch(url.as_str(), &error);
        let request = self.fetcher.post(url).map_err(failed)?.header("accept", "application/json");
        fetch::answer(configure(request), MAX_ANSWER).await.map_err(failed)
    }
}

/// Returns the target of a redirect that stays on the origin.
fn redirected(from: &Url, answer: &Answer) -> Option<Url> {
    let target = from.join(answer.headers.get(LOCATION)?.to_str().ok()?).ok()?;
    (target.origin() == from.origin()).then_some(target)
}

pub(crate) fn unavailable(url: &str, status: u16) -> OAuthError {
    OAuthError::temporary(url, format!("status {status}"))
}

/// Rejects URLs that are neither https nor on this machine, or that name a user or a fragment (OAC-19).
pub(crate) fn check_protected(url: &Url) -> Result<(), OAuthError> {
    let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
    if is_plain && is_protected(url) {
        return Ok(());
    }
    Err(OAuthError::InsecureEndpoint { url: shown(url.as_str()) })
}

/// Reads and checks a URL that a server names.
pub(crate) fn endpoint(text: &str) -> Result<Url, OAuthError> {
    let insecure = |_| OAuthError::InsecureEndpoint { url: shown(text) };
    let url = Url::parse(text).map_err(insecure)?;
    check_protected(&url)?;
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-19, P-AUC-19: a custom scheme would reach a program of the user's machine.
    #[test]
    fn an_endpoint_is_https_or_on_this_machine() {
        for fine in
            ["https://a.example/authorize?x=1", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]/"]
        {
            assert!(endpoint(fine).is_ok(), "{fine}");
        }
        for wrong in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "a.example",
            "http://a.example/",
            "http://10.0.0.1/",
            "https://user@a.example/",
            "https://:secret@a.example/",
            "https://a.example/#x",
            "vscode://x",
            "",
        ] {
            let refused = matches!(endpoint(wrong), Err(OAuthError::InsecureEndpoint { .. }));
            assert!(refused, "{wrong}");
        }
    }

    /// OAC-91
    #[test]
    fn a_redirect_of_discovery_stays_on_its_origin() {
        let from = Url::parse("https://a.example/x").unwrap();
        let to = |location: &str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(LOCATION, location.parse().unwrap());
            redirected(&from, &answer(headers)).map(String::from)
        };
        assert_eq!(to("/y").as_deref(), Some("https://a.example/y"));
        for elsewhere in ["https://b.example/", "http://a.example/", "https://a.example:8443/", "//b.example"]
        {
            assert_eq!(to(elsewhere), None, "{elsewhere}");
        }
        assert!(redirected(&from, &answer(http::HeaderMap::new())).is_none());
    }

    /// OAC-90, P-AUC-20: what a public server names is not on this machine, its network or its cloud, at any hop. A name is checked by
    /// the addresses that it resolves to.
    #[tokio::test]
    async fn a_public_server_cannot_name_private_addresses() {
        let web = Web::new(Reach::Public).unwrap();
        for private in [
            "https://127.0.0.1/",
            "https://10.0.0.1/token",
            "https://169.254.169.254/latest/meta-data",
            "https://[::1]:8443/",
            "https://[::ffff:192.168.0.1]/",
            "https://localhost/",
            "http://127.0.0.1:80/",
        ] {
            let url = Url::parse(private).unwrap();
            let fetched = web.document(&url, 1024).await.err();
            let posted = web.post(&url, |request| request).await.err();
            for refused in [fetched, posted] {
                assert!(matches!(refused, Some(OAuthError::PrivateAddress { .. })), "{private}: {refused:?}");
            }
        }
        let is_public = async |text: &str| fetch::is_public_host(&Url::parse(text).unwrap()).await;
        assert!(is_public("https://1.1.1.1/").await);
        assert!(!is_public("https://127.0.0.1/").await && !is_public("http://localhost/mcp").await);
    }

    fn answer(headers: http::HeaderMap) -> Answer {
        Answer::new(302, headers, Bytes::new())
    }
}
