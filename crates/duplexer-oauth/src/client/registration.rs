//! Dynamic client registration (RFC 7591).

use duplexer_oauth_base::Secret;
use duplexer_types::text::shown;
use serde::Deserialize;

use super::authentication::Method;
use super::document::ClientDocument;
use crate::discovery::authority::Authority;
use crate::error::OAuthError;
use crate::flow::exchange::read_error;
use crate::record::{ClientOrigin, StoredClient};
use crate::web::{Web, endpoint, unavailable};

/// Answer to a registration.
#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<u64>,
    token_endpoint_auth_method: Option<String>,
}

/// What a registration is about.
pub(crate) struct Registration<'a> {
    pub(crate) document: &'a ClientDocument,
    pub(crate) redirect_uri: &'a str,
    pub(crate) scope: Option<String>,
    /// Whether every token of the client is bound to a key.
    pub(crate) dpop: bool,
}

impl Registration<'_> {
    /// Registers the client. The answer is checked before anything is stored or a browser opens (OAC-26).
    pub(crate) async fn register(
        &self,
        web: &Web,
        authority: &Authority,
    ) -> Result<StoredClient, OAuthError> {
        let issuer = authority.issuer.as_str();
        let none = || OAuthError::NoRegistration { issuer: shown(issuer) };
        let url = endpoint(authority.registration_endpoint.as_deref().ok_or_else(none)?)?;
        let method = Method::to_register(authority);
        let mut body = self.document.body(method, &[self.redirect_uri]);
        if let Some(scope) = &self.scope {
            body.insert("scope".into(), scope.as_str().into());
        }
        if self.dpop {
            body.insert("dpop_bound_access_tokens".into(), true.into());
        }
        let body = serde_json::Value::Object(body).to_string();
        let answer =
            web.post(&url, |post| post.header("content-type", "application/json").body(body)).await?;
        let refused = |reason: String| OAuthError::RegistrationRefused { issuer: shown(issuer), reason };
        match answer.status {
            200 | 201 => {}
            429 | 500.. => return Err(unavailable(url.as_str(), answer.status)),
            404 | 405 | 410 => return Err(none()),
            status => {
                let reason = read_error(&answer.body, &[]).map(|error| error.to_string());
                return Err(refused(reason.unwrap_or_else(|| format!("status {status}"))));
            }
        }
        let malformed = |_| OAuthError::answer(url.as_str(), "it is not a registration");
        let registered: Registered = serde_json::from_slice(&answer.body).map_err(malformed)?;
        registered.checked(method, self.redirect_uri).map_err(|reason| refused(reason.to_owned()))
    }
}

impl Registered {
    /// The method in the answer applies, whatever was requested.
    fn checked(self, requested: Method, redirect_uri: &str) -> Result<StoredClient, &'static str> {
        if self.client_id.is_empty() {
            return Err("its answer has no client id");
        }
        let method = match self.token_endpoint_auth_method.as_deref() {
            None => requested,
            Some(name) => {
                Method::parse(name).ok_or("it requires an authentication method that is not supported")?
            }
        };
        let secret = self.client_secret.filter(|secret| !secret.is_empty()).map(Secret::new);
        match method {
            Method::PrivateKeyJwt => return Err("it requires a key that this client does not have"),
            Method::Basic | Method::Post if secret.is_none() => {
                return Err("its answer lacks the client secret");
            }
            _ => {}
        }
        Ok(StoredClient {
            id: self.client_id,
            method,
            // A secret that comes although none was requested is not used.
            secret: secret.filter(|_| method != Method::None),
            // 0 means that it does not expire.
            secret_expires_at: self.client_secret_expires_at.filter(|time| *time > 0),
            redirect_uri: Some(redirect_uri.to_owned()),
            origin: ClientOrigin::Registered,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-26, OAC-27
    #[test]
    fn the_answer_of_a_registration_is_checked() {
        let read = |text: &str| {
            let registered: Registered = serde_json::from_str(text).unwrap();
            registered.checked(Method::Basic, "http://127.0.0.1/cb")
        };
        let client = read(r#"{"client_id":"a","client_secret":"s","client_secret_expires_at":0}"#).unwrap();
        assert_eq!((client.method, client.secret_expires_at), (Method::Basic, None));
        let client = read(
            r#"{"client_id":"a","client_secret":"s","client_secret_expires_at":9,"token_endpoint_auth_method":"client_secret_post"}"#,
        )
        .unwrap();
        assert_eq!((client.method, client.secret_expires_at), (Method::Post, Some(9)));
        let client =
            read(r#"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"none"}"#).unwrap();
        assert!(client.method == Method::None && client.secret.is_none());
        for unusable in [
            r#"{"client_id":""}"#,
            r#"{"client_id":"a"}"#,
            r#"{"client_id":"a","token_endpoint_auth_method":"tls_client_auth"}"#,
            r#"{"client_id":"a","client_secret":"s","token_endpoint_auth_method":"private_key_jwt"}"#,
            r#"{"client_id":"a","client_secret":"","token_endpoint_auth_method":"client_secret_post"}"#,
        ] {
            assert!(read(unusable).is_err(), "{unusable}");
        }
    }
}
