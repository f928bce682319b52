//! The interface between an authorization server and its application: storage and users.

use bytes::Bytes;
use duplexer_core::dispatch::BoxFuture;
use http::Response;
use http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::client::RegisteredClient;
use super::store::Store;
use crate::error::OAuthError;

/// Users and storage of an authorization server.
///
/// It does not implement rules of OAuth: its arguments are validated.
///
/// ```
/// use bytes::Bytes;
/// use duplexer_auth::{AuthBackend, MemoryStore, Store, User};
/// use duplexer_core::dispatch::BoxFuture;
/// use http::Response;
/// use http::request::Parts;
///
/// /// Trusts a header that only our proxy can set.
/// struct BehindProxy(MemoryStore);
///
/// impl AuthBackend for BehindProxy {
///     fn store(&self) -> &dyn Store {
///         &self.0
///     }
///
///     fn user<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<User, Response<Bytes>>> {
///         let name = request.headers.get("x-user").and_then(|name| name.to_str().ok());
///         let user = name.map(User::new).ok_or_else(|| Response::new(Bytes::from("Sign in first.")));
///         Box::pin(std::future::ready(user))
///     }
/// }
/// # let (parts, ()) = http::Request::builder().header("x-user", "ada").body(()).unwrap().into_parts();
/// # let found = tokio::runtime::Builder::new_current_thread().build().unwrap()
/// #     .block_on(async { BehindProxy(MemoryStore::new()).user(&parts).await.unwrap() });
/// # assert_eq!(found.subject, "ada");
/// ```
pub trait AuthBackend: Send + Sync + 'static {
    /// Returns the store of clients, codes and tokens.
    fn store(&self) -> &dyn Store;

    /// Returns the user of the browser that sent this request. `Err` is sent to the browser instead: a sign-in page,
    /// or a redirect to one.
    fn user<'a>(&'a self, request: &'a Parts) -> BoxFuture<'a, Result<User, Response<Bytes>>>;

    /// Approves a grant before tokens are issued or renewed: the user may have been removed meanwhile.
    fn approve<'a>(
        &'a self,
        client: &'a RegisteredClient,
        grant: &'a Grant,
    ) -> BoxFuture<'a, Result<(), OAuthError>> {
        let _ = (client, grant);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Maps an identity assertion to a user. Its signature, time and audience are validated.
    fn assertion<'a>(
        &'a self,
        client: &'a RegisteredClient,
        assertion: &'a Assertion,
    ) -> BoxFuture<'a, Result<User, OAuthError>> {
        let _ = (client, assertion);
        let refusal = OAuthError::new("unauthorized_client", "identity assertions are not accepted here");
        Box::pin(std::future::ready(Err(refusal)))
    }
}

/// A user.
///
/// ```
/// use duplexer_auth::User;
///
/// let mut ada = User::new("ada");
/// ada.claims.insert("team".to_owned(), "data".into());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct User {
    /// Stable identifier of the user.
    pub subject: String,
    /// Further claims for handlers.
    #[serde(default)]
    pub claims: Map<String, Value>,
}

impl User {
    /// Creates a user without further claims.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), claims: Map::new() }
    }
}

/// Permission that a user has given to a client.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Grant {
    /// The client.
    pub client_id: String,
    /// The user.
    pub user: User,
    /// The granted scopes.
    pub scopes: Vec<String>,
    /// The protected server, by its URL.
    pub resource: String,
}

/// Validated identity assertion (ID-JAG) of another issuer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Assertion {
    /// The other issuer.
    pub issuer: String,
    /// The user at that issuer.
    pub subject: String,
    /// The requested scopes.
    pub scopes: Vec<String>,
    /// The protected server, by its URL, for which a token is requested.
    pub resource: String,
    /// All claims.
    pub claims: Map<String, Value>,
}
