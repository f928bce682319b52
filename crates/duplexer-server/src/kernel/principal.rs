//! On whose behalf a request is made.

use std::time::SystemTime;

use duplexer_types::json::JsonObject;

/// Who a request is made for, as an authorization layer has established it.
///
/// The kernel only carries it. Sessions and sealed state are bound to [`Principal::identity`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The OAuth client that acts.
    pub client_id: String,
    /// Who issued the token.
    pub issuer: Option<String>,
    /// The user the client acts for.
    pub subject: Option<String>,
    /// What the token allows.
    pub scopes: Vec<String>,
    /// When the token ends; what stands for long should not outlive it.
    pub expires_at: Option<SystemTime>,
    /// Everything else the token says.
    pub claims: JsonObject,
}

impl Principal {
    /// A principal of which nothing but the client is known.
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

    /// Whether the token allows `scope`.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|granted| granted == scope)
    }

    /// What makes two principals the same: client, issuer and subject.
    pub fn identity(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.client_id, self.issuer.as_deref(), self.subject.as_deref())
    }
}
