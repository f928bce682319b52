//! A small authorization server: metadata, authorize, token, register, revoke, as one service beside the MCP endpoint.
//!
//! The rules of OAuth have their home here, one endpoint per file; where things are kept and who the user is is the
//! business of a [`AuthBackend`]. Tokens and codes are random texts that are kept as digests.

mod authorize;
mod backend;
mod builder;
mod client;
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
use url::Url;

use self::client_metadata_document::ClientDocuments;
use self::records::Records;
use crate::clock::Clock;
use crate::token::jwt::Jwt;
use crate::token::{AccessToken, TokenVerifier};

pub use backend::{Assertion, AuthBackend, Grant, User};
pub use builder::AuthorizationServerBuilder;
pub use client::{AuthMethod, Client, ClientMetadata};
pub use memory::{DevBackend, MemoryStore};
pub use store::{Record, RecordKey, RecordKind, Store, StoreError};

/// An authorization server as a service. Cheap to clone.
///
/// It answers at the paths its metadata names. Mount it in a router, or give it to [`crate::Auth::authorization_server`], which
/// serves it beside the protected server and takes its tokens.
#[derive(Clone)]
pub struct AuthorizationServer(Arc<Inner>);

struct Inner {
    issuer: Issuer,
    records: Records,
    settings: Settings,
    /// Clients from the configuration.
    clients: HashMap<String, Client>,
    /// Clients that describe themselves under their own URL.
    documents: Option<ClientDocuments>,
    /// Signed statements of another issuer about who its users are.
    assertions: Option<Jwt>,
    clock: Clock,
}

/// Who issues, and under which paths.
struct Issuer {
    /// As it was written: clients compare it as text.
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
    lifetimes: Lifetimes,
}

/// Whether anybody may register a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registration {
    Open,
    Closed,
}

/// Under which names the pages for people are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hosts {
    /// Under the issuer's: a page of somebody else's name must not be able to give consent.
    Issuer,
    Any,
}

#[derive(Clone, Copy, Debug)]
struct Lifetimes {
    code: Duration,
    access: Duration,
    refresh: Duration,
    /// Of a client that has registered itself and was never used.
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
    /// The issuer, as clients compare it.
    pub fn issuer(&self) -> &str {
        &self.0.issuer.text
    }

    /// The paths it answers at, for routers.
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
    /// The path of an endpoint.
    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// The URL of an endpoint.
    fn url_of(&self, name: &str) -> String {
        format!("{}{}", crate::urls::origin(&self.url), self.at(name))
    }
}

/// The tokens of this very server.
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
