//! The principal: the identity on whose behalf a request is made.

use std::time::SystemTime;

use duplexer_types::json::JsonObject;

/// The identity on whose behalf a request is made, as an authorization layer has established it.
///
/// The kernel only carries it. Sessions and sealed state are bound to [`Principal::identity`].
///
/// ```
/// use duplexer_server::Principal;
///
/// let ada = Principal::new("ada");
/// assert_eq!(ada.client_id, "ada");
/// assert!(!ada.has_scope("admin"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The OAuth client that acts.
    pub client_id: String,
    /// The issuer of the token.
    pub issuer: Option<String>,
    /// The user the client acts for.
    pub subject: Option<String>,
    /// The scopes of the token.
    pub scopes: Vec<String>,
    /// The expiry of the token. Long-lived requests should not outlive it.
    pub expires_at: Option<SystemTime>,
    /// All other claims of the token.
    pub claims: JsonObject,
}

impl Principal {
    /// Returns a principal with nothing but the client id.
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            issuer: None,
            subject: None,
            scopes: Vec::new(),
            expires_at: None,
            claims: JsonObject::new(),
        }
    }

    /// Returns whether the token grants `scope`.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| granted == scope)
    }

    /// Returns what identifies a principal: client, issuer and subject.
    pub fn identity(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.client_id, self.issuer.as_deref(), self.subject.as_deref())
    }
}
