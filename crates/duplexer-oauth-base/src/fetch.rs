//! HTTP requests to other servers: no redirects, no proxies, limits on size and time.
//!
//! Configured URLs can be anywhere. URLs from a peer must be on the public network: see `public_only`.

mod public_only;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder};
use url::{Host, Url};

use crate::address::is_public;
use public_only::Guarded;

/// Default maximum time of a request, from name resolution to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum time that a connection is kept without a request. A login takes longer, and the server or the network may have
/// given up the connection meanwhile.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The server cannot be reached, or the connection broke off.
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The status is not a success.
    #[error("the answer has status {0}")]
    Status(u16),
    /// The body exceeds the limit.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The body is not the expected JSON.
    #[error("the answer is not the JSON that was expected")]
    Malformed(#[source] serde_json::Error),
    /// The URL is not on the public network.
    #[error("the address is not on the public network")]
    NotPublic,
}

/// Response of a server, whatever its status.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

impl Answer {
    /// Creates a response, for tests.
    pub fn new(status: u16, headers: HeaderMap, body: Bytes) -> Self {
        Self { status, headers, body }
    }
}

/// Networks that a [`Fetcher`] connects to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Any network, with or without TLS.
    Any,
    /// The public network over https, whatever a name resolves to.
    Public,
}

/// HTTP client with the restrictions of this module.
#[derive(Clone, Debug)]
pub struct Fetcher {
    client: Client,
    reach: Reach,
}

impl Fetcher {
    /// Builds a client from the settings of [`builder`].
    ///
    /// # Errors
    /// Fails if TLS cannot be set up.
    pub fn build(builder: ClientBuilder, reach: Reach) -> Result<Self, reqwest::Error> {
        let builder = match reach {
            Reach::Any => builder,
            Reach::Public => builder.https_only(true).dns_resolver(Arc::new(Guarded)),
        };
        Ok(Self { client: builder.build()?, reach })
    }

    /// Fetches a JSON document of at most `limit` bytes.
    ///
    /// # Errors
    /// Fails if the server cannot be reached, or if the answer is not a success, too large or not the expected JSON.
    pub async fn json<T: serde::de::DeserializeOwned>(
        &self,
        url: &str,
        limit: usize,
    ) -> Result<T, FetchError> {
        let text = read(self.client.get(url).header("accept", "application/json"), limit).await?;
        serde_json::from_slice(&text).map_err(FetchError::Malformed)
    }

    /// Returns a GET request, after a check of a literal address in the URL.
    ///
    /// # Errors
    /// Fails if the URL has an address that this client does not connect to.
    pub fn get(&self, url: &Url) -> Result<RequestBuilder, FetchError> {
        self.check(url)?;
        Ok(self.client.get(url.clone()))
    }

    /// Returns a POST request, after a check of a literal address in the URL.
    ///
    /// # Errors
    /// Fails if the URL has an address that this client does not connect to.
    pub fn post(&self, url: &Url) -> Result<RequestBuilder, FetchError> {
        self.check(url)?;
        Ok(self.client.post(url.clone()))
    }

    /// A literal address is not resolved, so the resolver does not check it.
    fn check(&self, url: &Url) -> Result<(), FetchError> {
        if self.reach == Reach::Any {
            return Ok(());
        }
        let is_allowed = url.scheme() == "https" && literal(url).is_none_or(is_public);
        if is_allowed { Ok(()) } else { Err(FetchError::NotPublic) }
    }
}

fn literal(url: &Url) -> Option<IpAddr> {
    match url.host()? {
        Host::Ipv4(address) => Some(address.into()),
        Host::Ipv6(address) => Some(address.into()),
        Host::Domain(_) => None,
    }
}

/// Returns whether the host of a URL is on the public network. A name counts as public if one of its addresses is, or if it
/// cannot be resolved: who owns a public name can add a private address to it.
pub async fn is_public_host(url: &Url) -> bool {
    if let Some(address) = literal(url) {
        return is_public(address);
    }
    let Some(name) = url.host_str() else { return true };
    match tokio::net::lookup_host((name, 0)).await {
        Ok(found) => is_public_name(found.map(|address| address.ip())),
        Err(_) => true,
    }
}

fn is_public_name(addresses: impl IntoIterator<Item = IpAddr>) -> bool {
    let mut addresses = addresses.into_iter().peekable();
    addresses.peek().is_none() || addresses.any(is_public)
}

/// Returns whether the failure is that a name leads to a network that is not public.
pub fn is_not_public(error: &FetchError) -> bool {
    let FetchError::Unreachable(error) = error else { return matches!(error, FetchError::NotPublic) };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if error.is::<public_only::NotPublic>() {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Returns the settings that every client begins with.
pub fn builder(user_agent: &str) -> ClientBuilder {
    // TLS needs a library for cryptography. The one that the program has installed, if any, applies.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .timeout(TIMEOUT)
        .pool_idle_timeout(IDLE_TIMEOUT)
        .user_agent(user_agent)
}

/// Reads the body of a successful response, up to `limit` bytes.
///
/// # Errors
/// Fails if the server cannot be reached, or if the answer is not a success or too large.
pub async fn read(request: RequestBuilder, limit: usize) -> Result<Bytes, FetchError> {
    let response = request.send().await.map_err(FetchError::Unreachable)?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    body(response, limit).await
}

/// Reads a response of any status, up to `limit` bytes.
///
/// # Errors
/// Fails if the server cannot be reached, or if the answer is too large.
pub async fn answer(request: RequestBuilder, limit: usize) -> Result<Answer, FetchError> {
    let mut response = request.send().await.map_err(FetchError::Unreachable)?;
    let (status, headers) = (response.status().as_u16(), std::mem::take(response.headers_mut()));
    Ok(Answer { status, headers, body: body(response, limit).await? })
}

async fn body(mut response: reqwest::Response, limit: usize) -> Result<Bytes, FetchError> {
    let mut text = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(FetchError::Unreachable)? {
        if text.len() + piece.len() > limit {
            return Err(FetchError::TooLarge(limit));
        }
        text.extend_from_slice(&piece);
    }
    Ok(text.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-90: a server does not become private, and gets no access to private networks, by an additional address.
    #[test]
    fn a_name_with_one_public_address_is_public() {
        let is_public = |texts: &[&str]| is_public_name(texts.iter().map(|text| text.parse().unwrap()));
        assert!(is_public(&["1.1.1.1", "10.0.0.1"]) && is_public(&["127.0.0.1", "2606:4700::1111"]));
        assert!(is_public(&[]) && is_public(&["1.1.1.1"]));
        assert!(!is_public(&["10.0.0.1", "fd12:3456::1"]) && !is_public(&["127.0.0.1"]));
    }
}
