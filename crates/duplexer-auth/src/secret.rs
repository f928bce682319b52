//! Secrets of `duplexer-oauth-base`. A system without random numbers is a server error here.

pub(crate) use duplexer_oauth_base::secret::{digest, matches};

use duplexer_oauth_base::secret::{self, RandomError, Secret};

use crate::error::OAuthError;

/// Generates 256 random bits, for tokens, codes and handles.
pub(crate) fn token() -> Result<Secret, OAuthError> {
    Secret::random().map_err(failed)
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], OAuthError> {
    secret::random().map_err(failed)
}

/// Generates random bytes in lower-case hexadecimal digits.
pub(crate) fn random_hex<const N: usize>() -> Result<String, OAuthError> {
    secret::random_hex::<N>().map_err(failed)
}

#[expect(clippy::needless_pass_by_value, reason = "the signature of `map_err`")]
fn failed(error: RandomError) -> OAuthError {
    tracing::error!(%error, "no secret can be generated");
    OAuthError::server_error()
}
