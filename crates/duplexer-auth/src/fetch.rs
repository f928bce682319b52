//! HTTP clients of this crate, with the restrictions of `duplexer-oauth-base`.

pub(crate) use duplexer_oauth_base::fetch::{FetchError, Fetcher, read};

use duplexer_oauth_base::fetch::{self, Reach};
use reqwest::ClientBuilder;

use crate::error::AuthConfigError;

/// Creates a client for configured URLs, which can be anywhere.
pub(crate) fn fetcher() -> Result<Fetcher, AuthConfigError> {
    build(builder(), Reach::Any)
}

/// Creates a client for URLs of peers, which must be on the public network.
pub(crate) fn guarded() -> Result<Fetcher, AuthConfigError> {
    build(builder(), Reach::Public)
}

pub(crate) fn build(builder: ClientBuilder, reach: Reach) -> Result<Fetcher, AuthConfigError> {
    Fetcher::build(builder, reach).map_err(|error| AuthConfigError::Http(error.to_string()))
}

pub(crate) fn builder() -> ClientBuilder {
    fetch::builder(concat!("duplexer-auth/", env!("CARGO_PKG_VERSION")))
}
