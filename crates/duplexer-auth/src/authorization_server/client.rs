//! Clients: what they say about themselves, and how they show who they are.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::redirect;
use crate::error::OAuthError;
use crate::secret;

/// How a client shows who it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AuthMethod {
    /// It cannot keep a secret.
    None,
    /// With a secret in the body of its request.
    #[default]
    ClientSecretPost,
    /// With a secret in the `Authorization` header.
    ClientSecretBasic,
}

/// What a client says about itself (RFC 7591).
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
    /// What is echoed and has no meaning here: contacts, policies, keys, names of software.
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
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

/// A client that is known.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Client {
    id: String,
    /// The digest of its secret, if it has one.
    secret: Option<String>,
    origin: Origin,
    pub(super) metadata: ClientMetadata,
}

/// Where a client is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Origin {
    Configuration,
    Registration,
    Document,
}

impl Client {
    /// A client that cannot keep a secret.
    pub fn public(id: impl Into<String>, redirect_uris: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let metadata = ClientMetadata {
            redirect_uris: redirect_uris.into_iter().map(Into::into).collect(),
            token_endpoint_auth_method: AuthMethod::None,
            grant_types: code_and_refresh(),
            response_types: code(),
            ..ClientMetadata::default()
        };
        Self { id: id.into(), secret: None, origin: Origin::Configuration, metadata }
    }

    /// A client with a secret, which it may send in the body.
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

    /// How it shows who it is.
    #[must_use]
    pub fn auth_method(mut self, method: AuthMethod) -> Self {
        self.metadata.token_endpoint_auth_method = method;
        self
    }

    /// What people read when it asks for something.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.metadata.client_name = Some(name.into());
        self
    }

    /// It may come with statements of another issuer about its users (ID-JAG).
    #[must_use]
    pub fn identity_assertions(mut self) -> Self {
        self.metadata.grant_types.push(JWT_BEARER.into());
        self
    }

    pub(super) fn registered(id: String, secret: Option<&str>, metadata: ClientMetadata) -> Self {
        Self { id, secret: secret.map(secret::digest), origin: Origin::Registration, metadata }
    }

    /// A client that describes itself under its own URL has no secret.
    pub(super) fn documented(id: &str, mut metadata: ClientMetadata) -> Self {
        metadata.token_endpoint_auth_method = AuthMethod::None;
        Self { id: id.to_owned(), secret: None, origin: Origin::Document, metadata }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it says about itself.
    pub fn metadata(&self) -> &ClientMetadata {
        &self.metadata
    }

    pub(super) fn is_registered(&self) -> bool {
        self.origin == Origin::Registration
    }

    /// Whether its id is a URL that vouches for it.
    pub(super) fn is_documented(&self) -> bool {
        self.origin == Origin::Document
    }

    pub(super) fn allows(&self, grant_type: &str) -> bool {
        self.metadata.grant_types.iter().any(|allowed| allowed == grant_type)
    }

    /// Whether this is its secret. In constant time; a client without a secret has none that fits.
    pub(super) fn has_secret(&self, presented: &str) -> bool {
        secret::matches(presented, self.secret.as_deref().unwrap_or_default())
    }

    /// Where its user is sent: what it asks for if that is registered, or the only one that is.
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

    /// The scopes it has registered with.
    pub(super) fn scopes(&self) -> Option<Vec<String>> {
        self.metadata.scope.as_deref().map(|scope| scope.split_ascii_whitespace().map(Into::into).collect())
    }
}
