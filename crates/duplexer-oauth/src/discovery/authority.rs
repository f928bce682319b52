//! Metadata of authorization servers (RFC 8414, OpenID Connect Discovery).

use duplexer_oauth_base::address::origin;
use duplexer_types::text::shown;
use serde::Deserialize;
use url::Url;

use super::or_default;
use crate::error::OAuthError;
use crate::settings::IssuerRules;
use crate::web::{Document, Web, check_protected, endpoint};

const MAX_DOCUMENT: usize = 256 * 1024;

/// An authorization server, with the members of its metadata that a client uses.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Authority {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    pub(crate) registration_endpoint: Option<String>,
    pub(crate) revocation_endpoint: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) scopes_supported: Vec<String>,
    pub(crate) code_challenge_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(crate) token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) dpop_signing_alg_values_supported: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) authorization_response_iss_parameter_supported: bool,
    #[serde(deserialize_with = "or_default")]
    pub(crate) client_id_metadata_document_supported: bool,
}

impl Authority {
    /// Returns the token endpoint.
    pub(crate) fn token_endpoint(&self) -> Result<Url, OAuthError> {
        self.required(self.token_endpoint.as_deref(), "it has no token endpoint")
    }

    /// Returns the authorization endpoint.
    pub(crate) fn authorization_endpoint(&self) -> Result<Url, OAuthError> {
        self.required(self.authorization_endpoint.as_deref(), "it has no authorization endpoint")
    }

    fn required(&self, text: Option<&str>, missing: &str) -> Result<Url, OAuthError> {
        endpoint(text.ok_or_else(|| OAuthError::answer(&self.issuer, missing))?)
    }

    /// Checks that the server declares PKCE with S256 (OAC-20).
    pub(crate) fn check_pkce(&self, rules: &IssuerRules) -> Result<(), OAuthError> {
        let declared = self.code_challenge_methods_supported.as_deref().unwrap_or_default();
        if declared.iter().any(|method| method == "S256") || rules.without_pkce.contains(&self.issuer) {
            return Ok(());
        }
        Err(OAuthError::NoPkce { issuer: shown(&self.issuer) })
    }

    /// Checks the endpoints of a document, before any of them is used.
    fn checked(self) -> Result<Self, OAuthError> {
        let endpoints = [&self.authorization_endpoint, &self.token_endpoint, &self.registration_endpoint];
        endpoints.into_iter().flatten().try_for_each(|text| endpoint(text).map(drop))?;
        Ok(self)
    }
}

/// Result of a search for metadata.
pub(crate) enum Found {
    Metadata(Box<Authority>),
    Nothing,
}

/// Fetches the metadata of an issuer (OAC-17). The issuer in it must be the same text (OAC-18).
pub(crate) async fn fetch(web: &Web, issuer: &str, rules: &IssuerRules) -> Result<Found, OAuthError> {
    let insecure = |_| OAuthError::InsecureEndpoint { url: shown(issuer) };
    let url = Url::parse(issuer).map_err(insecure)?;
    check_protected(&url)?;
    for candidate in candidates(&url) {
        let Document::Found(body) = web.document(&candidate, MAX_DOCUMENT).await? else { continue };
        let Ok(authority) = serde_json::from_slice::<Authority>(&body) else { continue };
        if !rules.accepts(issuer, &authority.issuer) {
            return Err(OAuthError::IssuerMismatch {
                expected: shown(issuer),
                found: shown(&authority.issuer),
                place: "its metadata",
            });
        }
        return authority.checked().map(|authority| Found::Metadata(Box::new(authority)));
    }
    Ok(Found::Nothing)
}

/// Returns the authorization server of a server of 2025-03-26: its own origin (OAC-80), without metadata its default
/// endpoints (OAC-81).
pub(crate) async fn of_origin(web: &Web, server: &Url, rules: &IssuerRules) -> Result<Authority, OAuthError> {
    let issuer = origin(server);
    let insecure = |_| OAuthError::InsecureEndpoint { url: shown(&issuer) };
    let url = Url::parse(&format!("{issuer}/.well-known/oauth-authorization-server")).map_err(insecure)?;
    match web.document(&url, MAX_DOCUMENT).await? {
        Document::Found(body) => {
            let malformed =
                |_| OAuthError::answer(url.as_str(), "it is not the metadata of an authorization server");
            let authority: Authority = serde_json::from_slice(&body).map_err(malformed)?;
            if !rules.accepts(&issuer, &authority.issuer) {
                return Err(OAuthError::IssuerMismatch {
                    expected: issuer,
                    found: shown(&authority.issuer),
                    place: "its metadata",
                });
            }
            authority.checked()
        }
        Document::Absent => Ok(Authority {
            authorization_endpoint: Some(format!("{issuer}/authorize")),
            token_endpoint: Some(format!("{issuer}/token")),
            registration_endpoint: Some(format!("{issuer}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            issuer,
            ..Authority::default()
        }),
        Document::Refused(status) => Err(OAuthError::answer(url.as_str(), format!("status {status}"))),
    }
}

/// Returns the URLs of the metadata, in order. With a path, those at the root belong to another issuer.
fn candidates(issuer: &Url) -> Vec<Url> {
    let origin = origin(issuer);
    let path = issuer.path().trim_end_matches('/');
    let mut texts = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        texts.push(format!("{origin}{path}/.well-known/openid-configuration"));
    }
    texts.iter().filter_map(|text| Url::parse(text).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-17, P-AUC-2
    #[test]
    fn the_metadata_of_an_issuer_with_a_path_is_not_looked_for_at_the_root() {
        let texts = |issuer: &str| -> Vec<String> {
            candidates(&Url::parse(issuer).unwrap()).into_iter().map(String::from).collect()
        };
        assert_eq!(
            texts("https://a/"),
            [
                "https://a/.well-known/oauth-authorization-server",
                "https://a/.well-known/openid-configuration"
            ]
        );
        assert_eq!(
            texts("https://a/t/1"),
            [
                "https://a/.well-known/oauth-authorization-server/t/1",
                "https://a/.well-known/openid-configuration/t/1",
                "https://a/t/1/.well-known/openid-configuration"
            ]
        );
    }

    /// OAC-21: what later steps need is read; unknown members are ignored.
    #[test]
    fn metadata_is_read_for_the_whole_flow() {
        let authority: Authority = serde_json::from_value(serde_json::json!({
            "issuer": "https://a", "unknown": {"x": 1},
            "authorization_endpoint": "https://a/authorize", "token_endpoint": "https://a/token",
            "registration_endpoint": "https://a/register", "revocation_endpoint": "https://a/revoke",
            "scopes_supported": ["offline_access"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
            "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
            "dpop_signing_alg_values_supported": ["ES256"],
        }))
        .unwrap();
        let authority = authority.checked().unwrap();
        assert_eq!(authority.token_endpoint().unwrap().as_str(), "https://a/token");
        let read = format!("{authority:?}");
        for part in
            ["/authorize", "/register", "/revoke", "offline_access", "S256", "client_secret_post", "ES256"]
        {
            assert!(read.contains(part), "{part} in {read}");
        }
        assert_eq!(read.matches("ES256").count(), 2, "{read}");
        assert_eq!(read.matches("true").count(), 2, "{read}");
    }

    /// OAC-17: `null` is a member that is not there, and does not make the document unreadable.
    #[test]
    fn members_without_a_value_are_absent() {
        let text = r#"{"issuer": "https://a", "token_endpoint": "https://a/token", "registration_endpoint": null,
            "scopes_supported": null, "dpop_signing_alg_values_supported": null,
            "authorization_response_iss_parameter_supported": null, "client_id_metadata_document_supported": null,
            "code_challenge_methods_supported": null}"#;
        let authority: Authority = serde_json::from_str(text).unwrap();
        assert!(authority.scopes_supported.is_empty() && authority.registration_endpoint.is_none());
        assert!(!authority.authorization_response_iss_parameter_supported);
    }

    /// OAC-20, P-AUC-4
    #[test]
    fn without_pkce_there_is_no_login() {
        let mut authority = Authority { issuer: "https://a".into(), ..Authority::default() };
        let mut rules = IssuerRules::default();
        assert!(matches!(authority.check_pkce(&rules), Err(OAuthError::NoPkce { .. })));
        authority.code_challenge_methods_supported = Some(vec!["plain".into()]);
        assert!(authority.check_pkce(&rules).is_err());
        rules.without_pkce.push("https://b".into());
        assert!(authority.check_pkce(&rules).is_err());
        rules.without_pkce.push("https://a".into());
        assert!(authority.check_pkce(&rules).is_ok());
        authority.code_challenge_methods_supported = Some(vec!["plain".into(), "S256".into()]);
        assert!(authority.check_pkce(&IssuerRules::default()).is_ok());
    }

    /// OAC-19: an endpoint that reaches a program of the machine makes the whole document unusable.
    #[test]
    fn a_document_with_a_dangerous_endpoint_is_not_used() {
        for dangerous in
            ["javascript:alert(1)", "file:///bin/sh", "http://a.example/authorize", "https://u:p@a/"]
        {
            let authority =
                Authority { authorization_endpoint: Some(dangerous.into()), ..Authority::default() };
            assert!(matches!(authority.checked(), Err(OAuthError::InsecureEndpoint { .. })), "{dangerous}");
        }
    }
}
