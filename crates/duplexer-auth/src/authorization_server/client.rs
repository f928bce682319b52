//! Clients: their metadata, their origin and their authentication method.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redirect;
use crate::error::OAuthError;
use crate::secret;

/// Authentication method of a client at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthMethod {
    /// None: a public client, which cannot keep a secret.
    None,
    /// A secret in the request body.
    #[default]
    ClientSecretPost,
    /// A secret in the `Authorization` header.
    ClientSecretBasic,
    /// An assertion that the client signs (RFC 7523).
    PrivateKeyJwt,
}

/// Client metadata (RFC 7591).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the names are those of RFC 7591")]
pub struct ClientMetadata {
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    #[serde(default)]
    pub token_endpoint_auth_method: AuthMethod,
    #[serde(default = "code_and_refresh")]
    pub grant_types: Vec<String>,
    #[serde(default = "code")]
    pub response_types: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_type: Option<String>,
    /// Other members, which are returned unchanged and not used: contacts, policies, keys, software names. A registration
    /// with more than 2 KiB of them keeps none.
    #[serde(flatten)]
    pub others: serde_json::Map<String, Value>,
}

fn code_and_refresh() -> Vec<String> {
    vec![AUTHORIZATION_CODE.into(), REFRESH_TOKEN.into()]
}

fn code() -> Vec<String> {
    vec!["code".into()]
}

pub(super) const AUTHORIZATION_CODE: &str = "authorization_code";
pub(super) const REFRESH_TOKEN: &str = "refresh_token";
pub(super) const CLIENT_CREDENTIALS: &str = "client_credentials";
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A known client.
///
/// ```
/// use duplexer_auth::RegisteredClient;
///
/// let desktop = RegisteredClient::public("desktop", ["http://127.0.0.1/callback"]).name("Our desktop application");
/// let nightly_job = RegisteredClient::service("nightly-job", "a-long-random-text", ["mcp"]);
/// assert_eq!(nightly_job.id(), "nightly-job");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RegisteredClient {
    id: String,
    /// Digest of the secret, if it has one.
    secret: Option<String>,
    origin: Origin,
    #[serde(default)]
    consent: Consent,
    pub(super) metadata: ClientMetadata,
}

/// Whether users are asked before a client gets a token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Consent {
    #[default]
    Asked,
    Skipped,
}

/// Origin of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Origin {
    Configuration,
    Registration,
    Document,
}

impl RegisteredClient {
    /// Creates a public client, which cannot keep a secret.
    pub fn public(id: impl Into<String>, redirect_uris: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let metadata = ClientMetadata {
            redirect_uris: redirect_uris.into_iter().map(Into::into).collect(),
            token_endpoint_auth_method: AuthMethod::None,
            grant_types: code_and_refresh(),
            response_types: code(),
            ..ClientMetadata::default()
        };
        Self { id: id.into(), secret: None, origin: Origin::Configuration, consent: Consent::Asked, metadata }
    }

    /// Creates a confidential client, which sends its secret in the request body.
    pub fn confidential(
        id: impl Into<String>,
        secret: &str,
        redirect_uris: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let mut client = Self::public(id, redirect_uris);
        client.secret = Some(secret::digest(secret));
        client.metadata.token_endpoint_auth_method = AuthMethod::ClientSecretPost;
        client
    }

    /// Creates a client that acts for itself (client credentials), with these scopes at most. It has no redirect URI.
    pub fn service(
        id: impl Into<String>,
        secret: &str,
        scopes: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let mut client = Self::confidential(id, secret, Vec::<String>::new());
        client.metadata.grant_types = vec![CLIENT_CREDENTIALS.into()];
        let scopes: Vec<String> = scopes.into_iter().map(Into::into).collect();
        client.metadata.scope = Some(scopes.join(" "));
        client.metadata.token_endpoint_auth_method = AuthMethod::ClientSecretBasic;
        client
    }

    /// Replaces the secret by a public key (JWK): the client signs an assertion for each token request
    /// (`private_key_jwt`).
    #[must_use]
    pub fn public_key(mut self, jwk: &Value) -> Self {
        self.secret = None;
        self.metadata.token_endpoint_auth_method = AuthMethod::PrivateKeyJwt;
        self.metadata.others.insert("jwks".into(), serde_json::json!({"keys": [jwk]}));
        self
    }

    /// Returns the public keys with which assertions of the client are verified.
    pub(super) fn public_keys(&self) -> &[Value] {
        let keys = self.metadata.others.get("jwks").and_then(|keys| keys.get("keys"));
        keys.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// Sets the authentication method.
    #[must_use]
    pub fn auth_method(mut self, method: AuthMethod) -> Self {
        self.metadata.token_endpoint_auth_method = method;
        self
    }

    /// Skips the consent page: a signed-in user of this client is not asked. Only for an application of the operator of this
    /// server, whose redirect URIs no other program can receive: with a loopback address, any program of the user's
    /// machine could get a token unnoticed.
    #[must_use]
    pub fn first_party(mut self) -> Self {
        self.consent = Consent::Skipped;
        self
    }

    /// Sets the name on the consent page.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata.client_name = Some(name.into());
        self
    }

    /// Allows identity assertions (ID-JAG) of this client.
    #[must_use]
    pub fn identity_assertions(mut self) -> Self {
        self.metadata.grant_types.push(JWT_BEARER.into());
        self
    }

    pub(super) fn registered(id: String, secret: Option<&str>, metadata: ClientMetadata) -> Self {
        let secret = secret.map(secret::digest);
        Self { id, secret, origin: Origin::Registration, consent: Consent::Asked, metadata }
    }

    /// Creates a client from its metadata document. It has no secret.
    pub(super) fn documented(id: &str, mut metadata: ClientMetadata) -> Self {
        metadata.token_endpoint_auth_method = AuthMethod::None;
        Self { id: id.to_owned(), secret: None, origin: Origin::Document, consent: Consent::Asked, metadata }
    }

    /// Returns the client id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the metadata.
    pub fn metadata(&self) -> &ClientMetadata {
        &self.metadata
    }

    pub(super) fn is_registered(&self) -> bool {
        self.origin == Origin::Registration
    }

    /// Returns whether users are not asked. Only the configuration can say so, whatever a store holds.
    pub(super) fn skips_consent(&self) -> bool {
        self.consent == Consent::Skipped && self.origin == Origin::Configuration
    }

    /// Returns whether its id is the URL of its metadata document.
    pub(super) fn is_documented(&self) -> bool {
        self.origin == Origin::Document
    }

    pub(super) fn allows(&self, grant_type: &str) -> bool {
        self.metadata.grant_types.iter().any(|allowed| allowed == grant_type)
    }

    /// Compares the secret in constant time. Always false for a client without a secret.
    pub(super) fn has_secret(&self, presented: &str) -> bool {
        secret::matches(presented, self.secret.as_deref().unwrap_or_default())
    }

    /// Returns the redirect URI: the requested one if it is registered, or the only registered one.
    pub(super) fn redirect(&self, requested: Option<&str>) -> Result<String, OAuthError> {
        let known = &self.metadata.redirect_uris;
        match (requested, known.as_slice()) {
            (Some(requested), known) => {
                let fits = known.iter().any(|known| redirect::is_same(known, requested));
                let refusal =
                    || OAuthError::invalid_request("redirect_uri is not registered for this client");
                fits.then(|| requested.to_owned()).ok_or_else(refusal)
            }
            (None, [only]) => Ok(only.clone()),
            (None, _) => {
                let text = "redirect_uri must be given: not exactly one is registered for this client";
                Err(OAuthError::invalid_request(text))
            }
        }
    }

    /// Returns the scopes of its registration.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        self.metadata.scope.as_deref().map(|scope| scope.split_ascii_whitespace().map(Into::into).collect())
    }
}
