//! Settings of a protected server, checked when it is built.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Auth, ResourceMetadata, Rules, Site};
use crate::authorization_server::AuthorizationServer;
use crate::clock::Clock;
use crate::error::ConfigError;
use crate::token::TokenVerifier;
use crate::token::introspection::Introspection;
use crate::token::jwt::Jwt;
use crate::token::static_tokens::{StaticToken, StaticTokens};
use crate::urls;

const WELL_KNOWN: &str = "oauth-protected-resource";

impl Auth {
    /// Tokens that `issuer` signs for `audience`, the URL of this server. The issuer's keys are found by themselves.
    pub fn jwt(issuer: &str, audience: &str) -> AuthBuilder {
        match Jwt::new(issuer) {
            Ok(jwt) => Self::verifier(issuer, audience, jwt),
            Err(fault) => AuthBuilder::new(vec![issuer.into()], audience, Err(fault)),
        }
    }

    /// Tokens that `issuer` is asked about, each time or for a moment.
    pub fn introspection(issuer: &str, audience: &str, introspection: Introspection) -> AuthBuilder {
        Self::verifier(issuer, audience, introspection)
    }

    /// Tokens from a list. There is nobody to get one from, so none is named.
    pub fn static_tokens(tokens: impl IntoIterator<Item = StaticToken>, audience: &str) -> AuthBuilder {
        AuthBuilder::new(Vec::new(), audience, Ok(Box::new(StaticTokens::new(tokens))))
    }

    /// Tokens of `issuer` that somebody else verifies.
    pub fn verifier(issuer: &str, audience: &str, verifier: impl TokenVerifier) -> AuthBuilder {
        AuthBuilder::new(vec![issuer.into()], audience, Ok(Box::new(verifier)))
    }

    /// Tokens of an authorization server in this process. Its endpoints are served beside the protected ones.
    pub fn authorization_server(authorization_server: AuthorizationServer, audience: &str) -> AuthBuilder {
        let issuer = authorization_server.issuer().to_owned();
        let known = authorization_server.issues_for(audience);
        let mut builder = Self::verifier(&issuer, audience, authorization_server.clone());
        if !known {
            builder.fault(ConfigError::UnknownResource(audience.to_owned()));
        }
        builder.authorization_server = Some(authorization_server);
        builder
    }
}

/// Authorization being described.
#[must_use = "nothing is protected until it is built"]
pub struct AuthBuilder {
    resource: String,
    issuers: Vec<String>,
    verifier: Result<Box<dyn TokenVerifier>, ConfigError>,
    names: Names,
    implied: BTreeMap<String, Vec<String>>,
    authorization_server: Option<AuthorizationServer>,
    clock: Clock,
}

#[derive(Default)]
struct Names {
    required: Vec<String>,
    audiences: Vec<String>,
    title: Option<String>,
}

impl AuthBuilder {
    fn new(
        issuers: Vec<String>,
        resource: &str,
        verifier: Result<Box<dyn TokenVerifier>, ConfigError>,
    ) -> Self {
        Self {
            resource: resource.to_owned(),
            issuers,
            verifier,
            names: Names::default(),
            implied: BTreeMap::new(),
            authorization_server: None,
            clock: Clock::default(),
        }
    }

    /// Every request needs these scopes.
    pub fn require_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names.required.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Whoever has `scope` has these too.
    pub fn scope_implies(
        mut self,
        scope: impl Into<String>,
        others: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.implied.entry(scope.into()).or_default().extend(others.into_iter().map(Into::into));
        self
    }

    /// Tokens may name this server so, beside its URL: some issuers have names of their own for it.
    pub fn accept_audience(mut self, name: impl Into<String>) -> Self {
        self.names.audiences.push(name.into());
        self
    }

    /// What the server is called in its metadata.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.names.title = Some(name.into());
        self
    }

    /// Where the time comes from. For tests.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    fn fault(&mut self, fault: ConfigError) {
        if self.verifier.is_ok() {
            self.verifier = Err(fault);
        }
    }

    /// Checks everything.
    pub fn build(self) -> Result<Auth, ConfigError> {
        let verifier = self.verifier?;
        let url = urls::resource(&self.resource)?;
        for issuer in &self.issuers {
            urls::issuer(issuer)?;
        }
        let implied = self.implied.iter().flat_map(|(scope, others)| others.iter().chain([scope]));
        for scope in self.names.required.iter().chain(implied) {
            check_required(scope)?;
        }
        let root = format!("/.well-known/{WELL_KNOWN}");
        let path = urls::well_known(WELL_KNOWN, &url);
        let site = Site {
            metadata_url: format!("{}{path}", urls::origin(&url)),
            paths: [path, root],
            metadata: ResourceMetadata {
                resource: self.resource.clone(),
                authorization_servers: self.issuers,
                scopes_supported: self.names.required.clone(),
                bearer_methods_supported: ["header"],
                resource_name: self.names.title,
            },
            resource: self.resource,
        };
        Ok(Auth(Arc::new(Rules {
            site,
            verifier,
            audiences: self.names.audiences,
            required: self.names.required,
            implied: self.implied,
            authorization_server: self.authorization_server,
            clock: self.clock,
        })))
    }
}

/// A scope that a challenge may name.
pub(super) fn check_required(scope: &str) -> Result<(), ConfigError> {
    urls::check_scope(scope)?;
    if scope == "offline_access" {
        return Err(ConfigError::OfflineAccess(scope.to_owned()));
    }
    Ok(())
}

impl std::fmt::Debug for AuthBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthBuilder").field("resource", &self.resource).finish_non_exhaustive()
    }
}
