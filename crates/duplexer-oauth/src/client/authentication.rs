//! Client authentication at the token endpoint (RFC 6749, section 2.3; RFC 7523).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use duplexer_oauth_base::Secret;
use reqwest::header::HeaderValue;
use serde::{Deserialize, Serialize};
use url::form_urlencoded;
use zeroize::Zeroizing;

use crate::discovery::authority::Authority;
use crate::error::OAuthError;
use crate::jws;
use crate::key::Signer;

/// Names of the parameters whose values are secrets.
const SECRETS: [&str; 8] = [
    "code",
    "code_verifier",
    "refresh_token",
    "client_secret",
    "client_assertion",
    "assertion",
    "subject_token",
    "actor_token",
];

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// Authentication method of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Method {
    #[serde(rename = "none")]
    None,
    #[serde(rename = "client_secret_basic")]
    Basic,
    #[serde(rename = "client_secret_post")]
    Post,
    #[serde(rename = "private_key_jwt")]
    PrivateKeyJwt,
}

impl Method {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Basic => "client_secret_basic",
            Self::Post => "client_secret_post",
            Self::PrivateKeyJwt => "private_key_jwt",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::None, Self::Basic, Self::Post, Self::PrivateKeyJwt]
            .into_iter()
            .find(|method| method.name() == name)
    }

    /// Returns the method of a client with a secret: `Basic` if the server has it or does not say (OAC-27).
    pub(crate) fn with_secret(authority: &Authority) -> Self {
        let listed = authority.token_endpoint_auth_methods_supported.as_deref();
        let has = |name: &str| listed.is_none_or(|listed| listed.iter().any(|method| method == name));
        if has("client_secret_basic") || !has("client_secret_post") { Self::Basic } else { Self::Post }
    }

    /// Returns the method that a registration requests.
    pub(crate) fn to_register(authority: &Authority) -> Self {
        let listed = authority.token_endpoint_auth_methods_supported.as_deref();
        let has = |name: &str| listed.is_none_or(|listed| listed.iter().any(|method| method == name));
        if has("none") { Self::None } else { Self::with_secret(authority) }
    }
}

/// A client that is ready for token requests.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) id: String,
    pub(crate) method: Method,
    pub(crate) secret: Option<Secret>,
    pub(crate) key: Option<Arc<dyn Signer>>,
}

impl Client {
    /// Adds the client id and the authentication to a form. A secret of `Basic` is in the returned header instead.
    ///
    /// The id is in every form: the server of the official Python package looks the client up by it.
    pub(crate) async fn authenticate(
        &self,
        form: &mut Form,
        issuer: &str,
        now: u64,
    ) -> Result<Option<HeaderValue>, OAuthError> {
        form.add("client_id", &self.id);
        match (self.method, &self.secret, &self.key) {
            (Method::None, ..) => {}
            (Method::Post, Some(secret), _) => form.add("client_secret", secret.reveal()),
            (Method::Basic, Some(secret), _) => return Ok(Some(basic(&self.id, secret))),
            (Method::PrivateKeyJwt, _, Some(key)) => {
                form.add("client_assertion_type", ASSERTION_TYPE);
                form.add("client_assertion", &jws::client_assertion(&self.id, issuer, now, &**key).await?);
            }
            (Method::Basic | Method::Post | Method::PrivateKeyJwt, ..) => {
                let text = "the client has no secret or key for the method that it is registered with";
                return Err(OAuthError::Config(text.into()));
            }
        }
        Ok(None)
    }

    /// Rejects a signature algorithm that the server does not accept, before it is used.
    pub(crate) fn check(&self, authority: &Authority) -> Result<(), OAuthError> {
        let accepted = authority.token_endpoint_auth_signing_alg_values_supported.as_deref();
        let (Method::PrivateKeyJwt, Some(key), Some(accepted)) = (self.method, &self.key, accepted) else {
            return Ok(());
        };
        let name = key.algorithm().name();
        if accepted.iter().any(|algorithm| algorithm == name) {
            return Ok(());
        }
        let text =
            format!("the authorization server does not accept {name} signatures of clients: use another key");
        Err(OAuthError::Config(text.into()))
    }
}

/// Id and secret are form-encoded before they are joined (RFC 6749, section 2.3.1).
fn basic(id: &str, secret: &Secret) -> HeaderValue {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = Zeroizing::new(format!("{}:{}", encoded(id), encoded(secret.reveal())));
    let text = Zeroizing::new(format!("Basic {}", STANDARD.encode(&*pair)));
    // Base64 is valid in a header.
    let mut value = HeaderValue::try_from(&*text).unwrap_or(HeaderValue::from_static("Basic"));
    value.set_sensitive(true);
    value
}

/// Parameters of a request, zeroized on drop: some are secrets.
#[derive(Clone, Default)]
pub(crate) struct Form(Vec<(&'static str, Zeroizing<String>)>);

impl Form {
    pub(crate) fn new(grant_type: &str) -> Self {
        let mut form = Self::default();
        form.add("grant_type", grant_type);
        form
    }

    pub(crate) fn add(&mut self, name: &'static str, value: &str) {
        self.0.push((name, Zeroizing::new(value.to_owned())));
    }

    pub(crate) fn add_if(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// Returns the values that must not be shown.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(name, _)| SECRETS.contains(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn encoded(&self) -> String {
        let pairs = self.0.iter().map(|(name, value)| (*name, value.as_str()));
        form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authority(methods: Option<&[&str]>) -> Authority {
        let methods = methods.map(|methods| methods.iter().map(|method| (*method).to_owned()).collect());
        Authority { token_endpoint_auth_methods_supported: methods, ..Authority::default() }
    }

    /// OAC-27, P-AUC-15
    #[test]
    fn the_method_is_one_that_the_server_lists() {
        let check = |listed: Option<&[&str]>, registered: Method, with_secret: Method| {
            let authority = authority(listed);
            assert_eq!(Method::to_register(&authority), registered, "{listed:?}");
            assert_eq!(Method::with_secret(&authority), with_secret, "{listed:?}");
        };
        check(None, Method::None, Method::Basic);
        check(Some(&["none"]), Method::None, Method::Basic);
        check(Some(&["client_secret_post"]), Method::Post, Method::Post);
        check(Some(&["client_secret_post", "client_secret_basic"]), Method::Basic, Method::Basic);
        check(Some(&["private_key_jwt"]), Method::Basic, Method::Basic);
    }

    /// OAC-28
    #[tokio::test]
    async fn credentials_are_where_the_method_puts_them() {
        let client =
            |method| Client { id: "a b:c".into(), method, secret: Some(Secret::new("p%/+ä")), key: None };
        let mut form = Form::default();
        let header = client(Method::Basic).authenticate(&mut form, "https://i", 0).await.unwrap().unwrap();
        // `a+b%3Ac:p%25%2F%2B%C3%A4`
        assert_eq!(header, "Basic YStiJTNBYzpwJTI1JTJGJTJCJUMzJUE0");
        assert!(header.is_sensitive());
        assert_eq!(form.encoded(), "client_id=a+b%3Ac");
        let mut form = Form::default();
        let header = client(Method::Post).authenticate(&mut form, "https://i", 0).await.unwrap();
        assert!(header.is_none());
        assert_eq!(form.encoded(), "client_id=a+b%3Ac&client_secret=p%25%2F%2B%C3%A4");
        let mut form = Form::default();
        client(Method::None).authenticate(&mut form, "https://i", 0).await.unwrap();
        assert_eq!(form.encoded(), "client_id=a+b%3Ac");
        assert!(client(Method::PrivateKeyJwt).authenticate(&mut form, "https://i", 0).await.is_err());
    }
}
