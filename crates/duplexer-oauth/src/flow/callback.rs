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
            // A browser may show the URL without its scheme.
            Err(_) => match text.split_once('?') {
                Some((before, query)) if !before.contains(['=', '&']) => query.to_owned(),
                _ => text.to_owned(),
            },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientIdentity;
    use crate::client::authentication::Method;
    use crate::record::{Endpoints, Entry};

    fn pending(iss: IssRule) -> Pending {
        let entry = Entry {
            issuer: "https://a.example".into(),
            resource: None,
            client: ClientIdentity::public("c").stored(Method::None, None),
            endpoints: Endpoints::default(),
            tokens: None,
            requested: Vec::new(),
            dpop_key: None,
        };
        Pending {
            server: "https://mcp.example/mcp".into(),
            state: Secret::new("s"),
            verifier: Secret::new("v"),
            iss,
            redirect_uri: "http://127.0.0.1/callback".into(),
            entry,
            started_at: 0,
        }
    }

    fn code(query: &str, iss: IssRule) -> Result<Secret, OAuthError> {
        Callback::parse(query)?.code(&pending(iss))
    }

    /// OAC-40: the issuer is compared as text, before a code or an error counts. Only a server that does not announce `iss`
    /// can leave it out.
    #[test]
    fn the_issuer_is_checked_before_code_and_error() {
        for (iss, advertised, accepted) in [
            ("&iss=https://a.example", IssRule::Required, true),
            ("&iss=https://a.example", IssRule::Optional, true),
            ("", IssRule::Optional, true),
            ("", IssRule::Required, false),
            ("&iss=", IssRule::Optional, false),
            ("&iss=https://a.example/", IssRule::Required, false),
            ("&iss=https://A.example", IssRule::Required, false),
            ("&iss=https://evil.example", IssRule::Optional, false),
        ] {
            let found = code(&format!("code=c&state=s{iss}"), advertised);
            assert_eq!(found.is_ok(), accepted, "{iss} {advertised:?}");
            let denied = code(&format!("error=access_denied&state=s{iss}"), advertised);
            let is_denied = matches!(denied, Err(OAuthError::LoginDenied));
            assert_eq!(is_denied, accepted, "{iss} {advertised:?}");
        }
    }

    /// OAC-39, OAC-41: the state comes first, and no parameter is repeated.
    #[test]
    fn a_redirect_is_for_one_login_and_has_one_meaning() {
        let fails = |query: &str| code(query, IssRule::Optional).unwrap_err();
        for wrong in
            ["code=c", "code=c&state=x", "error=access_denied&state=x", "state=s", "code=&state=s", ""]
        {
            assert!(matches!(fails(wrong), OAuthError::Callback(_)), "{wrong}");
        }
        for repeated in ["code=a&code=b&state=s", "code=a&state=s&state=s", "code=a&state=s&iss=x&iss=x"] {
            assert!(matches!(fails(repeated), OAuthError::Callback(_)), "{repeated}");
        }
        let failed = fails("error=server_error&error_description=down&state=s");
        assert!(
            matches!(&failed, OAuthError::Authority { error, .. } if error == "server_error"),
            "{failed:?}"
        );
        assert!(matches!(fails(&format!("state={}", "x".repeat(MAX_QUERY))), OAuthError::Callback(_)));
        for pasted in [
            " http://127.0.0.1/callback?code=c%2F1&state=s\n",
            "127.0.0.1:3118/callback?code=c%2F1&state=s",
            "localhost:3118/callback?code=c%2F1&state=s",
            "?code=c%2F1&state=s",
            "code=c%2F1&state=s",
        ] {
            assert_eq!(code(pasted, IssRule::Optional).unwrap().reveal(), "c/1", "{pasted}");
        }
        assert_eq!(code("code=a?b&state=s", IssRule::Optional).unwrap().reveal(), "a?b");
    }
}
