//! Tokens, and when they expire.

use std::time::Duration;

use duplexer_oauth_base::Secret;
use duplexer_oauth_base::secret::{as_optional_text, as_text};
use serde::{Deserialize, Serialize};

/// Maximum time before the expiry in which a token is refreshed.
const REFRESH_BEFORE: Duration = Duration::from_secs(60);

/// How a token is presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TokenKind {
    Bearer,
    /// Bound to a key (RFC 9449).
    Dpop,
}

impl TokenKind {
    /// Returns the scheme of the `Authorization` header.
    pub(crate) fn scheme(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Dpop => "DPoP",
        }
    }
}

/// Tokens of one login. Times are absolute, so that a restart knows them (OAC-44).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Tokens {
    #[serde(with = "as_text")]
    pub(crate) access: Secret,
    pub(crate) kind: TokenKind,
    #[serde(with = "as_optional_text", default)]
    pub(crate) refresh: Option<Secret>,
    /// When it was received, in seconds since 1970.
    pub(crate) received_at: u64,
    pub(crate) expires_at: Option<u64>,
    pub(crate) scopes: Vec<String>,
}

impl Tokens {
    /// Returns whether the access token has expired.
    pub(crate) fn is_expired(&self, now: u64) -> bool {
        self.expires_at.is_some_and(|end| end <= now)
    }

    /// Returns whether so little of its life is left that it should be refreshed: a minute or a tenth, less a little by
    /// which processes that share the token differ (OAC-47).
    pub(crate) fn is_due(&self, now: u64, jitter: u8) -> bool {
        let Some(end) = self.expires_at else { return false };
        let life = end.saturating_sub(self.received_at);
        let margin = REFRESH_BEFORE.as_secs().min(life / 10);
        // At most a quarter less.
        let margin = margin - margin * u64::from(jitter) / (4 * u64::from(u8::MAX));
        end.saturating_sub(margin) <= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(received_at: u64, expires_at: Option<u64>) -> Tokens {
        Tokens {
            access: Secret::new("a"),
            kind: TokenKind::Bearer,
            refresh: None,
            received_at,
            expires_at,
            scopes: Vec::new(),
        }
    }

    /// OAC-47
    #[test]
    fn a_token_is_refreshed_shortly_before_it_expires() {
        let hour = tokens(1000, Some(4600));
        assert!(
            !hour.is_due(4539, 0) && hour.is_due(4540, 0) && !hour.is_expired(4599) && hour.is_expired(4600)
        );
        assert!(!hour.is_due(4554, 255) && hour.is_due(4555, 255));
        let short = tokens(1000, Some(1020));
        assert!(!short.is_due(1017, 0) && short.is_due(1018, 0));
        let endless = tokens(1000, None);
        assert!(!endless.is_due(u64::MAX, 0) && !endless.is_expired(u64::MAX));
    }

    /// OAC-93
    #[test]
    fn tokens_do_not_show_themselves() {
        let mut tokens = tokens(0, None);
        tokens.access = Secret::new("at-123");
        tokens.refresh = Some(Secret::new("rt-456"));
        let shown = format!("{tokens:?}");
        assert!(!shown.contains("at-123") && !shown.contains("rt-456"), "{shown}");
    }
}
