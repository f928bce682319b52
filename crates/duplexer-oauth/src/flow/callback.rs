//! The answer of the authorization server, as the query of the redirect URI.

use duplexer_oauth_base::Secret;
use duplexer_types::text::shown;
use url::{Url, form_urlencoded};

use super::pending::{IssRule, Pending};
use crate::error::OAuthError;

/// Maximum length of the query.
const MAX_QUERY: usize = 16 * 1024;

/// Parameters of a redirect, each at most once.
#[derive(Clone, Default)]
pub(crate) struct Callback {
    pub(crate) state: Option<Secret>,
    iss: Option<String>,
    code: Option<Secret>,
    error: Option<String>,
    error_description: Option<String>,
}

impl Callback {
    /// Reads the query of a redirect. A whole URL is accepted too: people paste one.
    pub(crate) fn parse(text: &str) -> Result<Self, OAuthError> {
        let text = text.trim();
        let query = match Url::parse(text) {
            Ok(url) => url.query().unwrap_or_default().to_owned(),
            Err(_) => text.strip_prefix('?').unwrap_or(text).to_owned(),
        };
        if query.len() > MAX_QUERY {
            return Err(OAuthError::Callback("it is too long".into()));
        }
        let mut callback = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let is_repeated = match &*name {
                "state" => callback.state.replace(Secret::new(value)).is_some(),
                "code" => callback.code.replace(Secret::new(value)).is_some(),
                "iss" => callback.iss.replace(value).is_some(),
                "error" => callback.error.replace(value).is_some(),
                "error_description" => callback.error_description.replace(value).is_some(),
                _ => false,
            };
            if is_repeated {
                return Err(OAuthError::Callback("a parameter is given more than once".into()));
            }
        }
        Ok(callback)
    }

    /// Returns whether it answers this login. The comparison takes constant time.
    pub(crate) fn is_for(&self, pending: &Pending) -> bool {
        self.state.as_ref() == Some(&pending.state)
    }

    /// Returns the code. State and issuer are checked before anything else is read (OAC-39, OAC-40).
    pub(crate) fn code(self, pending: &Pending) -> Result<Secret, OAuthError> {
        if !self.is_for(pending) {
            return Err(OAuthError::Callback("it belongs to another login".into()));
        }
        let issuer = &pending.entry.issuer;
        match (&self.iss, pending.iss) {
            (Some(found), _) if found != issuer => {
                let (expected, found) = (shown(issuer), shown(found));
                return Err(OAuthError::IssuerMismatch {
                    expected,
                    found,
                    place: "the redirect after the login",
                });
            }
            (None, IssRule::Required) => {
                return Err(OAuthError::Callback(
                    "it does not name the issuer, which sends its name always".into(),
                ));
            }
            _ => {}
        }
        match (self.error.as_deref(), self.code) {
            (Some("access_denied"), _) => Err(OAuthError::LoginDenied),
            (Some(error), _) => Err(OAuthError::Authority {
                error: shown(error),
                description: self.error_description.as_deref().map(shown),
            }),
            (None, Some(code)) if !code.reveal().is_empty() => Ok(code),
            (None, _) => Err(OAuthError::Callback("it has neither a code nor an error".into())),
        }
    }
}
