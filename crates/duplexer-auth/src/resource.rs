//! The protected server: who may come in, what they are told if not, and where they learn how to get a token.
//!
//! `bearer` finds the token in a request, `check` judges it, `challenge` says what is missing, `layer` puts all of it
//! around a service, and `guard` asks for more rights where single tools need them.

mod bearer;
mod builder;
mod challenge;
mod check;
mod guard;
mod layer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use crate::authorization_server::AuthorizationServer;
use crate::clock::Clock;
use crate::token::TokenVerifier;

pub use builder::AuthBuilder;
pub use guard::{ScopeGuard, ScopeGuardBuilder};
pub use layer::AuthService;

/// Authorization of one MCP server: a tower layer for its HTTP service, and a guard for its tools.
///
/// Cheap to clone. Everything it tells about the server comes from its settings, never from a request.
#[derive(Clone)]
pub struct Auth(Arc<Rules>);

struct Rules {
    site: Site,
    verifier: Box<dyn TokenVerifier>,
    /// Names of this server in tokens, beside its URL.
    audiences: Vec<String>,
    /// What every request needs.
    required: Vec<String>,
    /// Scopes that contain others.
    implied: BTreeMap<String, Vec<String>>,
    /// An authorization server that is served beside the protected one.
    authorization_server: Option<AuthorizationServer>,
    clock: Clock,
}

/// The protected server as the world sees it.
struct Site {
    resource: String,
    /// Where its metadata is, as challenges tell it.
    metadata_url: String,
    /// The paths at which the metadata is served.
    paths: [String; 2],
    metadata: ResourceMetadata,
}

/// The metadata of a protected resource (RFC 9728).
#[derive(Debug, Serialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<String>,
}

impl Auth {
    /// The paths of the metadata, for routers: that of this server, and the root's.
    pub fn metadata_paths(&self) -> &[String; 2] {
        &self.0.site.paths
    }

    /// A middleware that asks for further scopes where single tools or methods need them.
    ///
    /// It belongs before every other middleware, so that nothing is told before it has been asked.
    pub fn guard(&self) -> ScopeGuardBuilder {
        ScopeGuardBuilder::new(self.clone())
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Auth")
            .field("resource", &self.0.site.resource)
            .field("required", &self.0.required)
            .finish_non_exhaustive()
    }
}
