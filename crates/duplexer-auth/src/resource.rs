//! Authorization of a protected server (resource server).
//!
//! `bearer` finds the token of a request, `check` validates it, `challenge` builds `WWW-Authenticate`, `layer` wraps a
//! service with all of it, and `guard` requires further scopes for single tools or methods.

mod bearer;
mod builder;
mod challenge;
mod check;
mod guard;
mod layer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use duplexer_oauth_base::clock::Clock;
use serde::Serialize;

use crate::authorization_server::AuthorizationServer;
use crate::dpop::Proofs;
use crate::token::TokenVerifier;

pub use builder::AuthBuilder;
pub use guard::{ScopeGuard, ScopeGuardBuilder};
pub use layer::AuthService;

/// Authorization of one MCP server: a tower layer for its HTTP service, and guards for its tools.
///
/// Cheap to clone. Metadata and challenges are built from the settings, never from a request.
///
/// ```
/// use duplexer_auth::{Auth, StaticToken};
///
/// let url = "http://127.0.0.1:8000/mcp";
/// let ada = StaticToken::new("a-long-random-text").client_id("ada").audience(url).scopes(["notes"]);
/// let auth = Auth::static_tokens([ada]).audience(url).require_scopes(["notes"]).build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[doc(alias("bearer", "token", "oauth", "login"))]
#[derive(Clone)]
pub struct Auth(Arc<Rules>);

struct Rules {
    site: Site,
    verifier: Box<dyn TokenVerifier>,
    /// Accepted audiences in addition to the URL of this server.
    audiences: Vec<String>,
    /// Scopes that every request requires.
    required: Vec<String>,
    /// Scopes that imply others.
    implied: BTreeMap<String, Vec<String>>,
    /// Authorization server whose endpoints the layer serves.
    authorization_server: Option<AuthorizationServer>,
    clock: Clock,
    dpop: Binding,
}

/// How tokens that are bound to a key are checked.
struct Binding {
    proofs: Proofs,
    policy: BindingPolicy,
}

/// Which tokens are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindingPolicy {
    /// Bearer tokens, and bound ones with a proof.
    Any,
    /// Bound ones only.
    Required,
}

impl Binding {
    fn is_required(&self) -> bool {
        self.policy == BindingPolicy::Required
    }
}

/// Public description of the protected server.
struct Site {
    resource: String,
    /// Scheme, host and port of the resource.
    origin: String,
    /// URL of the metadata, for challenges. `None` if no authorization server issues the tokens.
    metadata_url: Option<String>,
    /// Paths of the metadata.
    paths: [String; 2],
    metadata: ResourceMetadata,
}

/// Protected resource metadata (RFC 9728).
#[derive(Debug, Serialize)]
struct ResourceMetadata {
    resource: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    authorization_servers: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scopes_supported: Vec<String>,
    bearer_methods_supported: [&'static str; 1],
    dpop_signing_alg_values_supported: [&'static str; 5],
    dpop_bound_access_tokens_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_name: Option<String>,
}

impl Auth {
    /// Returns the paths of the metadata, for routers: the path-specific one and the one at the root.
    pub fn metadata_paths(&self) -> &[String; 2] {
        &self.0.site.paths
    }

    /// Protects a service: requests without a valid token are rejected, and the metadata is served. In an application with
    /// other routes, mount the result at the path of the service and at [`Self::metadata_paths`].
    ///
    /// ```
    /// # fn example(auth: duplexer_auth::Auth, service: duplexer_http::StreamableHttp) {
    /// let service = auth.protect(service);
    /// let mut app = axum::Router::<()>::new().route_service("/mcp", service.clone());
    /// for path in auth.metadata_paths() {
    ///     app = app.route_service(path, service.clone());
    /// }
    /// # }
    /// ```
    pub fn protect<S>(&self, service: S) -> AuthService<S> {
        tower_layer::Layer::layer(self, service)
    }

    /// Returns a builder of a middleware that requires further scopes for single tools or methods.
    ///
    /// Install it before all other middleware, so that they do not answer a request before it is authorized.
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
