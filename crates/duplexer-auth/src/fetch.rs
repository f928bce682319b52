//! HTTP requests to other servers: no redirects, no proxies, limits on size and time.
//!
//! Configured URLs can be anywhere. URLs from a peer must be on the public network: see `public_only`.

mod public_only;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder};

use crate::error::AuthConfigError;

pub(crate) use public_only::{Guarded, is_public};

/// Maximum time of a request, from name resolution to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error("the server cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    #[error("the answer has status {0}")]
    Status(u16),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer is not the JSON that was expected")]
    Malformed(#[source] serde_json::Error),
}

/// HTTP client with the restrictions of this module.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher(Client);

impl Fetcher {
    pub(crate) fn new() -> Result<Self, AuthConfigError> {
        Self::build(builder())
    }

    /// Creates a client that connects to the public network only, whatever a name resolves to.
    pub(crate) fn guarded() -> Result<Self, AuthConfigError> {
        Self::build(builder().https_only(true).dns_resolver(Arc::new(Guarded)))
    }

    pub(crate) fn build(builder: ClientBuilder) -> Result<Self, AuthConfigError> {
        builder.build().map(Self).map_err(|error| AuthConfigError::Http(error.to_string()))
    }

    /// Fetches a JSON document of at most `limit` bytes.
    pub(crate) async fn json<T: serde::de::DeserializeOwned>(
        &self,
        url: &str,
        limit: usize,
    ) -> Result<T, FetchError> {
        let text = read(self.0.get(url).header("accept", "application/json"), limit).await?;
        serde_json::from_slice(&text).map_err(FetchError::Malformed)
    }

    pub(crate) fn post(&self, url: &str) -> RequestBuilder {
        self.0.post(url)
    }
}

pub(crate) fn builder() -> ClientBuilder {
    // TLS needs a library for cryptography. The one that the program has installed, if any, applies.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .timeout(TIMEOUT)
        .user_agent(concat!("duplexer-auth/", env!("CARGO_PKG_VERSION")))
}

/// Reads the body of a successful response, up to `limit` bytes.
pub(crate) async fn read(request: RequestBuilder, limit: usize) -> Result<Bytes, FetchError> {
    let mut response = request.send().await.map_err(FetchError::Unreachable)?;
    if !response.status().is_success() {
        return Err(FetchError::Status(response.status().as_u16()));
    }
    let mut text = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(FetchError::Unreachable)? {
        if text.len() + piece.len() > limit {
            return Err(FetchError::TooLarge(limit));
        }
        text.extend_from_slice(&piece);
    }
    Ok(text.freeze())
}
