//! A small authorization server: metadata, authorize, token, register and revoke endpoints in one service.
//!
//! This module implements the rules of OAuth, one endpoint per file. An [`AuthBackend`] provides storage and
//! identifies users. Tokens and codes are random texts that are stored as digests.

mod authorize;
mod backend;
mod builder;
mod client;
mod client_assertion;
mod client_auth;
mod client_metadata_document;
mod consent;
mod form;
mod identity_assertion;
pub(crate) mod memory;
mod metadata;
mod records;
mod redirect;
mod register;
mod revoke;
mod service;
mod store;
#[cfg(test)]
mod tests;
mod token;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_oauth_base::clock::Clock;
use url::Url;

use self::client_metadata_document::ClientDocuments;
use self::records::Records;
use crate::dpop::Proofs;
use crate::token::jwt::Jwt;
use crate::token::{AccessToken, TokenVerifier};

pub use backend::{Assertion, AuthBackend, Grant, User};
pub use builder::AuthorizationServerBuilder;
pub use client::{AuthMethod, ClientMetadata, RegisteredClient};
pub use memory::{DevBackend, MemoryStore};
pub use store::{Record, RecordKey, RecordKind, Retention, Store, Swapped, When};

/// Authorization server as a tower service. Cheap to clone.
///
/// It serves the paths that its metadata names. Mount it in a router, or pass it to
/// [`crate::Auth::authorization_server`], which serves it next to the protected server and accepts its tokens.
///
/// ```
/// use duplexer_auth::{Auth, AuthorizationServer, DevBackend};
///
/// let here = "http://127.0.0.1:8000";
/// let resource = format!("{here}/mcp");
/// let issuer = AuthorizationServer::builder(here, DevBackend::new("ada")).resource(&resource).scopes(["mcp"]).build()?;
/// assert_eq!(issuer.issuer(), here);
/// let auth = Auth::authorization_server(issuer).audience(resource).build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[derive(Clone)]
pub struct AuthorizationServer(Arc<Inner>);

struct Inner {
    issuer: Issuer,
    records: Records,
    settings: Settings,
    /// Clients from the configuration.
    clients: HashMap<String, RegisteredClient>,
    /// Clients whose id is the URL of their metadata document.
    documents: Option<ClientDocuments>,
    /// Verifier of identity assertions of another issuer.
    assertions: Option<Jwt>,
    clock: Clock,
    /// Proofs of keys, and assertions of clients, that have been used.
    proofs: Proofs,
}

/// The issuer and its paths.
struct Issuer {
    /// Verbatim: clients compare it as text.
    text: String,
    url: Url,
    /// The path of the issuer, without a trailing slash.
    path: String,
    /// The path of its metadata.
    metadata_path: String,
}

struct Settings {
    scopes: Vec<String>,
    resources: Vec<String>,
    registration: Registration,
    hosts: Hosts,
    iss: IssParameter,
    lifetimes: Lifetimes,
    body_timeout: Duration,
}

/// Whether clients can register themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registration {
    Open,
    Closed,
}

/// Host names under which the consent page is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    /// Only the host of the issuer: under another name a foreign page could submit the consent form.
    Issuer,
    Any,
}

/// Whether redirects to the client name the issuer (RFC 9207).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IssParameter {
    Sent,
    Omitted,
}

#[derive(Clone, Copy, Debug)]
struct Lifetimes {
    code: Duration,
    access: Duration,
    refresh: Duration,
    /// Lifetime of a registered client that was never used.
    client: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            code: seconds(60),
            access: seconds(3600),
            refresh: seconds(30 * 24 * 3600),
            client: seconds(24 * 3600),
        }
    }
}

impl AuthorizationServer {
    /// Returns the issuer, verbatim: clients compare it as text.
    pub fn issuer(&self) -> &str {
        &self.0.issuer.text
    }

    /// Returns the paths that it serves, for routers.
    pub fn paths(&self) -> Vec<String> {
        let at = |name: &str| self.0.issuer.at(name);
        let endpoints = ["authorize", "authorize/consent", "token", "register", "revoke"];
        endpoints.into_iter().map(at).chain([self.0.issuer.metadata_path.clone()]).collect()
    }

    pub(crate) fn issues_for(&self, resource: &str) -> bool {
        self.0.settings.resources.iter().any(|known| crate::urls::is_same(known, resource))
    }
}

impl Issuer {
    /// Returns the path of an endpoint.
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Returns the URL of an endpoint.
    fn url_of(&self, name: &str) -> String {
        format!("{}{}", crate::urls::origin(&self.url), self.at(name))
    }
}

/// Verifies the tokens that this server has issued.
impl TokenVerifier for AuthorizationServer {
    fn verify<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<AccessToken>, BoxError>> {
        Box::pin(async move { Ok(self.access_token(token).await?) })
    }
}

impl fmt::Debug for AuthorizationServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizationServer").field("issuer", &self.0.issuer.text).finish_non_exhaustive()
    }
}
