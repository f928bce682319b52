//! Calls to other servers: no redirects, no proxies, bounded in size and time.
//!
//! Addresses from configuration may be anywhere. Addresses that a peer has chosen may not: see `public_only`.

mod public_only;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, RequestBuilder};

use crate::error::ConfigError;

pub(crate) use public_only::{Guarded, is_public};

/// For a whole call, from the look-up of the name to the last byte.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a call brought nothing.
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

/// Somebody who calls addresses from the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Fetcher(Client);

impl Fetcher {
    pub(crate) fn new() -> Result<Self, ConfigError> {
        Self::build(builder())
    }

    /// Calls only what is on the public network, whatever names resolve to at that moment.
    pub(crate) fn guarded() -> Result<Self, ConfigError> {
        Self::build(builder().https_only(true).dns_resolver(Arc::new(Guarded)))
    }

    pub(crate) fn build(builder: ClientBuilder) -> Result<Self, ConfigError> {
        builder.build().map(Self).map_err(|error| ConfigError::Http(error.to_string()))
    }

    /// A JSON document of at most `limit` bytes.
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
    Client::builder()
        .redirect(Policy::none())
        .no_proxy()
        .referer(false)
        .timeout(TIMEOUT)
        .user_agent(concat!("duplexer-auth/", env!("CARGO_PKG_VERSION")))
}

/// The body of a successful answer, as long as it is no larger than it may be.
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
