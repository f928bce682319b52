//! OAuth 2.1 for Duplexer servers.
//!
//! Three parts, each usable without the others:
//!
//! - [`Auth`] protects a server: a tower layer for its HTTP service that verifies bearer tokens, answers requests without
//!   one with a challenge, and puts the [`Principal`](duplexer_server::Principal) of each request into its context.
//! - [`ScopeGuard`] is a middleware that requires further scopes for single tools or methods.
//! - [`AuthorizationServer`] is a small authorization server that runs next to the protected server.
//!
//! # A server that accepts the tokens of an issuer
//!
//! The keys of the issuer are discovered. The audience of every token must be the URL of this server.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_auth::Auth;
//! use duplexer_server::Server;
//! use duplexer_http::StreamableHttp;
//!
//! let auth = Auth::jwt("https://login.example.com")
//!     .audience("https://mcp.example.com/mcp")
//!     .require_scopes(["mcp"])
//!     .build()?;
//! let guard = auth.guard().tool("delete", ["notes:write"]).build()?;
//! let server = Server::builder("notes", "1.0.0").middleware(guard).build()?;
//! let service = StreamableHttp::builder(server).public_url("https://mcp.example.com").build()?;
//! service.bind("127.0.0.1:8000").await?.layer(auth).serve().await?;
//! # Ok(()) }
//! ```
//!
//! Handlers read the caller from their context: `cx.principal()`. In an application with other routes, mount
//! `auth.protect(service)` at the path of the server and at [`Auth::metadata_paths`].
//!
//! Other ways to verify tokens: [`Auth::introspection`] queries the issuer, [`Auth::static_tokens`] takes a list, and
//! [`Auth::verifier`] takes a [`TokenVerifier`] of the application.
//!
//! # A server that issues its own tokens
//!
//! ```no_run
//! # async fn example(server: duplexer_server::Server) -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_auth::{Auth, AuthorizationServer, DevBackend};
//! use duplexer_http::StreamableHttp;
//!
//! let here = "http://127.0.0.1:8000";
//! let resource = format!("{here}/mcp");
//! let issuer = AuthorizationServer::builder(here, DevBackend::new("ada")).resource(&resource).scopes(["mcp"]).build()?;
//! let auth = Auth::authorization_server(issuer).audience(resource).require_scopes(["mcp"]).build()?;
//! StreamableHttp::new(server).bind("127.0.0.1:8000").await?.layer(auth).serve().await?;
//! # Ok(()) }
//! ```
//!
//! [`DevBackend`] has one user and stores everything in memory. A real service implements [`AuthBackend`] (it identifies
//! the user of a browser) over its own [`Store`] (two operations); this crate implements the rules of OAuth.
//!
//! # Guarantees
//!
//! A token is read from the `Authorization` header only, and never reaches a handler. Audience, issuer and time are
//! checked for every request. Metadata and challenges are built from the settings, never from the headers of a request.
//! Secrets, codes and tokens are compared in constant time, stored as digests, and not logged.

mod authorization_server;
pub mod dev;
mod dpop;
mod error;
mod fetch;
mod reply;
mod resource;
mod secret;
mod token;
mod urls;

pub use authorization_server::{
    Assertion, AuthBackend, AuthMethod, AuthorizationServer, AuthorizationServerBuilder, ClientMetadata,
    DevBackend, Grant, MemoryStore, Record, RecordKey, RecordKind, RegisteredClient, Retention, Store,
    Swapped, User, When,
};
pub use duplexer_core::error::StoreError;
pub use duplexer_oauth_base::Secret;
pub use error::{AuthConfigError, OAuthError};
pub use resource::{Auth, AuthBuilder, AuthService, ScopeGuard, ScopeGuardBuilder};
pub use token::introspection::Introspection;
pub use token::jwt::Jwt;
pub use token::static_tokens::StaticToken;
pub use token::{AccessToken, TokenVerifier};
