//! Settings of a protected server, validated by `build`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use duplexer_oauth_base::clock::Clock;

use super::{Auth, Binding, BindingPolicy, ResourceMetadata, Rules, Site};
use crate::authorization_server::AuthorizationServer;
use crate::dpop::{self, Proofs};
use crate::error::AuthConfigError;
use crate::token::TokenVerifier;
use crate::token::introspection::Introspection;
use crate::token::jwt::Jwt;
use crate::token::static_tokens::{StaticToken, StaticTokens};
use crate::urls;

const WELL_KNOWN: &str = "oauth-protected-resource";

impl Auth {
    /// Accepts tokens that `issuer` signs. Its keys are discovered through its metadata.
    ///
    /// ```
    /// use duplexer_auth::Auth;
    ///
    /// let auth = Auth::jwt("https://login.example.com").audience("https://mcp.example.com/mcp").build()?;
    /// # Ok::<_, duplexer_auth::AuthConfigError>(())
    /// ```
    pub fn jwt(issuer: &str) -> AuthBuilder {
        match Jwt::new(issuer) {
            Ok(jwt) => Self::verifier(issuer, jwt),
            Err(fault) => AuthBuilder::new(vec![issuer.into()], Err(fault)),
        }
    }

    /// Accepts tokens of `issuer` that its introspection endpoint confirms. A response that names another issuer is
    /// refused.
    pub fn introspection(issuer: &str, introspection: Introspection) -> AuthBuilder {
        Self::verifier(issuer, introspection.issued_by(issuer))
    }

    /// Accepts tokens from a list. The metadata then names no authorization server, and challenges name no metadata: none
    /// issues these tokens.
    pub fn static_tokens(tokens: impl IntoIterator<Item = StaticToken>) -> AuthBuilder {
        let verifier = StaticTokens::new(tokens).map(|tokens| Box::new(tokens) as Box<dyn TokenVerifier>);
        AuthBuilder::new(Vec::new(), verifier)
    }

    /// Accepts tokens of `issuer` that a verifier of the application confirms: an async function, or a [`TokenVerifier`].
    ///
    /// ```
    /// # use duplexer_auth::{AccessToken, Auth, AuthConfigError};
    /// # use duplexer_server::{BoxError, Principal};
    /// async fn verify(token: String) -> Result<Option<AccessToken>, BoxError> {
    ///     let user = if token == "a-long-random-text" { "ada" } else { return Ok(None) };
    ///     Ok(Some(AccessToken::new(Principal::new(user), vec!["https://mcp.example.com/mcp".to_owned()])))
    /// }
    ///
    /// let auth = Auth::verifier("https://login.example.com", verify).audience("https://mcp.example.com/mcp").build()?;
    /// # Ok::<_, AuthConfigError>(())
    /// ```
    pub fn verifier(issuer: &str, verifier: impl TokenVerifier) -> AuthBuilder {
        AuthBuilder::new(vec![issuer.into()], Ok(Box::new(verifier)))
    }

    /// Accepts tokens of an authorization server in this process, and serves its endpoints next to the protected ones.
    pub fn authorization_server(server: AuthorizationServer) -> AuthBuilder {
        let issuer = server.issuer().to_owned();
        let mut builder = Self::verifier(&issuer, server.clone());
        builder.authorization_server = Some(server);
        builder
    }
}

/// Builder of [`Auth`]. [`Self::audience`] is required.
///
/// ```
/// use duplexer_auth::Auth;
///
/// let auth = Auth::jwt("https://login.example.com")
///     .audience("https://mcp.example.com/mcp")
///     .require_scopes(["mcp"])
///     .scope_implies("admin", ["mcp", "notes:write"])
///     .build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[must_use = "nothing is protected until it is built"]
pub struct AuthBuilder {
    issuers: Vec<String>,
    verifier: Result<Box<dyn TokenVerifier>, AuthConfigError>,
    names: Names,
    implied: BTreeMap<String, Vec<String>>,
    authorization_server: Option<AuthorizationServer>,
    clock: Clock,
}

#[derive(Default)]
struct Names {
    /// URL of the protected server.
    audience: Option<String>,
    /// Further accepted audiences.
    also_accepted: Vec<String>,
    required: Vec<String>,
    title: Option<String>,
    dpop: DpopSettings,
}

#[derive(Default)]
struct DpopSettings {
    policy: Option<BindingPolicy>,
    nonces: Nonces,
}

/// Whether proofs need a nonce of this server.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Nonces {
    #[default]
    None,
    Demanded,
}

impl AuthBuilder {
    fn new(issuers: Vec<String>, verifier: Result<Box<dyn TokenVerifier>, AuthConfigError>) -> Self {
        Self {
            issuers,
            verifier,
            names: Names::default(),
            implied: BTreeMap::new(),
            authorization_server: None,
            clock: Clock::default(),
        }
    }

    /// Sets the URL of this server, which every token must name as its audience.
    pub fn audience(mut self, url: impl Into<String>) -> Self {
        self.names.audience = Some(url.into());
        self
    }

    /// Requires these scopes for every request.
    pub fn require_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.required.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Declares that `scope` includes these scopes.
    pub fn scope_implies(
        mut self,
        scope: impl Into<String>,
        others: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.implied.entry(scope.into()).or_default().extend(others.into_iter().map(Into::into));
        self
    }

    /// Accepts another audience in addition to the URL: some issuers use identifiers that are not URLs.
    pub fn accept_audience(mut self, name: impl Into<String>) -> Self {
        self.names.also_accepted.push(name.into());
        self
    }

    /// Accepts only tokens that are bound to a key (DPoP). By default bearer tokens are accepted too; a token that is bound
    /// always needs a proof of its key.
    pub fn require_dpop(mut self) -> Self {
        self.names.dpop.policy = Some(BindingPolicy::Required);
        self
    }

    /// Demands a nonce of this server in every proof of a key, which limits proofs that were made in advance. Each process
    /// gives out its own nonces.
    pub fn dpop_nonces(mut self) -> Self {
        self.names.dpop.nonces = Nonces::Demanded;
        self
    }

    /// Sets the name of the server in its metadata.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.title = Some(name.into());
        self
    }

    /// Sets the source of the current time. For tests.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    /// Builds the layer.
    ///
    /// # Errors
    /// Fails if the audience is missing, or if a URL, a scope or a token of the settings is invalid.
    pub fn build(self) -> Result<Auth, AuthConfigError> {
        let verifier = self.verifier?;
        let resource = self.names.audience.ok_or(AuthConfigError::NoAudience)?;
        let url = urls::resource(&resource)?;
        if self.authorization_server.as_ref().is_some_and(|server| !server.issues_for(&resource)) {
            return Err(AuthConfigError::UnknownResource(resource));
        }
        for issuer in &self.issuers {
            urls::issuer(issuer)?;
        }
        let implied = self.implied.iter().flat_map(|(scope, others)| others.iter().chain([scope]));
        for scope in self.names.required.iter().chain(implied) {
            check_required(scope)?;
        }
        let root = format!("/.well-known/{WELL_KNOWN}");
        let path = urls::well_known(WELL_KNOWN, &url);
        let policy = self.names.dpop.policy.unwrap_or(BindingPolicy::Any);
        let proofs = match self.names.dpop.nonces {
            Nonces::None => Proofs::new(),
            Nonces::Demanded => Proofs::with_nonces(),
        };
        let site = Site {
            origin: urls::origin(&url),
            metadata_url: (!self.issuers.is_empty()).then(|| format!("{}{path}", urls::origin(&url))),
            paths: [path, root],
            metadata: ResourceMetadata {
                resource: resource.clone(),
                authorization_servers: self.issuers,
                scopes_supported: self.names.required.clone(),
                bearer_methods_supported: ["header"],
                dpop_signing_alg_values_supported: dpop::ALGORITHMS,
                dpop_bound_access_tokens_required: policy == BindingPolicy::Required,
                resource_name: self.names.title,
            },
            resource,
        };
        Ok(Auth(Arc::new(Rules {
            site,
            verifier,
            audiences: self.names.also_accepted,
            required: self.names.required,
            implied: self.implied,
            authorization_server: self.authorization_server,
            clock: self.clock,
            dpop: Binding { proofs, policy },
        })))
    }
}

/// Validates a scope that a challenge names.
pub(super) fn check_required(scope: &str) -> Result<(), AuthConfigError> {
    urls::check_scope(scope)?;
    if scope == "offline_access" {
        return Err(AuthConfigError::OfflineAccess(scope.to_owned()));
    }
    Ok(())
}

impl std::fmt::Debug for AuthBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthBuilder").field("audience", &self.names.audience).finish_non_exhaustive()
    }
}
