//! What an application brings to an authorization server: where things are kept, and who its users are.

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use http::Response;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::Client;
use super::store::Store;
use crate::error::OAuthError;

/// Who the users of an authorization server are, and where it keeps what it must remember.
///
/// The rules of OAuth are not its business: what comes here has been checked.
pub trait AuthBackend: Send + Sync + 'static {
    /// Where clients, codes and tokens are kept.
    fn store(&self) -> &dyn Store;

    /// Who sits before the browser that sent this request. `Err` is shown instead: a page to sign in, or a redirect
    /// to one.
    fn user<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<User, Response<Bytes>>>;

    /// The last word before tokens are issued, also when they are renewed: perhaps the user is gone by now.
    fn approve<'a>(&'a self, client: &'a Client, grant: &'a Grant) -> BoxFuture<'a, Result<(), OAuthError>> {
        let _ = (client, grant);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Whose user another issuer's statement is about. Its signature, time and addressee have been checked.
    fn assertion<'a>(
        &'a self,
        client: &'a Client,
        assertion: &'a Assertion,
    ) -> BoxFuture<'a, Result<User, OAuthError>> {
        let _ = (client, assertion);
        let refusal = OAuthError::new("unauthorized_client", "identity assertions are not accepted here");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// A user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// What never changes about a user.
    pub subject: String,
    /// What handlers may want to know.
    #[serde(default)]
    pub claims: Map<String, Value>,
}

impl User {
    /// A user of whom nothing else is known.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), claims: Map::new() }
    }
}

/// What a user has allowed a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// The client.
    pub client_id: String,
    /// The user.
    pub user: User,
    /// What is allowed.
    pub scopes: Vec<String>,
    /// The server for which it is allowed.
    pub resource: String,
}

/// A statement of another issuer about one of its users (ID-JAG).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assertion {
    /// The other issuer.
    pub issuer: String,
    /// Its user.
    pub subject: String,
    /// What is asked for.
    pub scopes: Vec<String>,
    /// The server that it is asked for.
    pub resource: String,
    /// All that the statement says.
    pub claims: Map<String, Value>,
}
