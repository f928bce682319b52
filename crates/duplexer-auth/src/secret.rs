//! Secrets: made of the system's randomness, compared in constant time, kept as digests, never shown.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::error::OAuthError;

/// A text that nobody should see: not in a log, and not in memory after its use.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// A secret that somebody else has made.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// 256 random bits, for tokens, codes and handles.
    pub(crate) fn random() -> Result<Self, OAuthError> {
        Ok(Self::new(URL_SAFE_NO_PAD.encode(random::<32>()?)))
    }

    /// The text, for the one it is meant for.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What may be kept and looked up in its place.
    pub(crate) fn digest(&self) -> String {
        digest(self.reveal())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// The SHA-256 of a text, as base64url without padding: what PKCE compares, and what is kept in place of a secret.
pub(crate) fn digest(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}

/// Whether `presented` is the text with this digest. How long it takes does not depend on what they have in common.
pub(crate) fn matches(presented: &str, kept: &str) -> bool {
    digest(presented).as_bytes().ct_eq(kept.as_bytes()).into()
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], OAuthError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| {
        tracing::error!(%error, "the system gives no randomness");
        OAuthError::server_error()
    })?;
    Ok(bytes)
}

/// Random bytes in lower-case hexadecimal digits.
pub(crate) fn random_hex<const N: usize>() -> Result<String, OAuthError> {
    use fmt::Write;
    let mut text = String::with_capacity(2 * N);
    for byte in random::<N>()? {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7636, appendix B.
    #[test]
    fn the_digest_is_the_one_of_pkce() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        assert_eq!(digest(verifier), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert!(matches(verifier, "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
        assert!(!matches("another", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
        assert!(!matches(verifier, ""));
    }

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::random().unwrap();
        assert_eq!(secret.reveal().len(), 43);
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_ne!(random_hex::<16>().unwrap(), random_hex::<16>().unwrap());
    }
}
