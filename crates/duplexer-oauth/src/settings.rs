//! Settings of an [`OAuth`](crate::OAuth), after they have been checked.

use std::sync::Arc;

use url::Url;

use crate::dpop::Dpop;
use crate::event::Event;
use crate::grant::Grant;

/// Settings of one OAuth client.
pub(crate) struct Settings {
    pub(crate) owner: Owner,
    pub(crate) grant: Grant,
    pub(crate) issuers: IssuerRules,
    pub(crate) scopes: Vec<String>,
    pub(crate) dpop: Dpop,
    pub(crate) step_up: StepUp,
    pub(crate) network: Network,
}

/// Whose credentials they are.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) application: String,
    pub(crate) account: String,
}

/// Addresses that a server can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Network {
    /// No more private than the server itself.
    LikeServer,
    Any,
}

/// What happens when a request needs scopes that were not granted.
///
/// ```
/// use duplexer_oauth::{OAuth, StepUp};
///
/// let login = OAuth::login_with_browser("my-program").step_up(StepUp::Never).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StepUp {
    /// They are requested, by another login if a person has to grant them.
    #[default]
    Ask,
    /// The request fails with [`OAuthError::InsufficientScope`](crate::OAuthError::InsufficientScope).
    Never,
}

/// Function that receives events.
pub(crate) type OnEvent = Arc<dyn Fn(&Event) + Send + Sync>;

/// Which issuers are accepted, and how they are compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct IssuerRules {
    pub(crate) pinned: Option<String>,
    pub(crate) comparison: Comparison,
    /// Issuers of servers, and the other names under which their metadata describes them.
    pub(crate) trusted: Vec<(String, String)>,
    /// Issuers that need not declare PKCE.
    pub(crate) without_pkce: Vec<String>,
}

/// How issuers are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// As text, except that an issuer without a path can end with a slash: both spellings have the same metadata.
    #[default]
    Lenient,
    Strict,
}

impl IssuerRules {
    /// Returns whether two texts name one issuer.
    pub(crate) fn is_same(&self, one: &str, other: &str) -> bool {
        if one == other {
            return true;
        }
        let (one, other) = (one.strip_suffix('/').unwrap_or(one), other.strip_suffix('/').unwrap_or(other));
        let has_no_path = || Url::parse(one).is_ok_and(|url| url.path() == "/" && url.query().is_none());
        self.comparison == Comparison::Lenient && one == other && has_no_path()
    }

    /// Returns whether metadata with the issuer `found` is accepted for the issuer `expected`.
    pub(crate) fn accepts(&self, expected: &str, found: &str) -> bool {
        let is_trusted = |(from, to): &(String, String)| from == expected && to == found;
        self.is_same(expected, found) || self.trusted.iter().any(is_trusted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-18
    #[test]
    fn issuers_are_compared_as_text_but_for_a_last_slash_without_a_path() {
        let mut rules = IssuerRules::default();
        for (expected, found, accepted) in [
            ("https://a", "https://a", true),
            ("https://a", "https://a/", true),
            ("https://a/", "https://a", true),
            ("https://a", "https://a//", false),
            ("https://a/t", "https://a/t/", false),
            ("https://a", "https://A", false),
            ("https://a", "https://a:443", false),
            ("https://a", "http://a", false),
            ("https://a", "https://attacker.example", false),
        ] {
            assert_eq!(rules.accepts(expected, found), accepted, "{expected} {found}");
        }
        rules.comparison = Comparison::Strict;
        assert!(!rules.accepts("https://a", "https://a/"));
        rules.trusted.push(("https://a".into(), "https://b".into()));
        assert!(rules.accepts("https://a", "https://b") && !rules.accepts("https://b", "https://a"));
    }
}
