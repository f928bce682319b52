//! OAuth 2.1 for Duplexer servers.
//!
//! Three parts, each usable without the others:
//!
//! - [`Auth`] protects a server: a tower layer for its HTTP service that takes bearer tokens, tells everybody else
//!   where to get one, and puts the [`Principal`](duplexer_core::server::Principal) of each request into its context.
//! - [`Guard`] is a middleware that asks for more scopes where single tools need them.
//! - [`Authority`] is a small authorization server, to be served beside.
//!
//! # A server that takes the tokens of an issuer
//!
//! The issuer's keys are found by themselves. Every token must be meant for this server, by its URL.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_auth::Auth;
//! use duplexer_core::server::Server;
//! use duplexer_http::StreamableHttp;
//!
//! let auth = Auth::jwt("https://login.example.com", "https://mcp.example.com/mcp").require(["mcp"]).build()?;
//! let server = Server::builder("notes").middleware(auth.guard().tool("delete", ["notes:write"])?).build()?;
//! let service = StreamableHttp::builder(server).public_url("https://mcp.example.com").build()?;
//! service.bind("127.0.0.1:8000").await?.layer(auth).serve_until(std::future::pending()).await;
//! # Ok(()) }
//! ```
//!
//! Handlers ask their context who calls: `cx.principal()`. In an application with routes of its own, put
//! `auth.layer(service)` at the path of the server and at [`Auth::metadata_paths`].
//!
//! Other ways to verify tokens: [`Auth::introspection`] asks the issuer about each, [`Auth::static_tokens`] takes a
//! list, and [`Auth::verifier`] takes your own [`TokenVerifier`].
//!
//! # A server that gives out its own tokens
//!
//! ```no_run
//! # async fn example(server: duplexer_core::server::Server) -> Result<(), Box<dyn std::error::Error>> {
//! use duplexer_auth::{Auth, Authority, Development};
//! use duplexer_http::StreamableHttp;
//!
//! let here = "http://127.0.0.1:8000";
//! let authority = Authority::builder(here, Development::new("ada"))
//!     .resource(format!("{here}/mcp"))
//!     .scopes(["mcp"])
//!     .build()?;
//! let auth = Auth::authority(authority, &format!("{here}/mcp")).require(["mcp"]).build()?;
//! StreamableHttp::new(server).bind("127.0.0.1:8000").await?.layer(auth).serve_until(std::future::pending()).await;
//! # Ok(()) }
//! ```
//!
//! [`Development`] knows one user and keeps everything in memory. A real service implements [`Provider`] (who sits
//! before the browser) over its own [`Store`] (two operations); the rules of OAuth stay here.
//!
//! # What is always so
//!
//! A token is taken from the `Authorization` header only, and never reaches a handler. Audience, issuer and time are
//! checked for every request. What is told about the server comes from its settings, never from a request's headers.
//! Secrets, codes and tokens are compared in constant time, kept as digests, and not logged.

mod address;
mod authority;
mod clock;
pub mod dev;
mod error;
mod fetch;
mod reply;
mod resource;
mod secret;
mod token;

pub use authority::{
    Assertion, AuthMethod, Authority, AuthorityBuilder, Client, ClientMetadata, Development, Entry, Grant,
    Key, Kind, MemoryStore, Provider, Store, StoreError, User,
};
pub use error::{ConfigError, OAuthError};
pub use resource::{Auth, AuthBuilder, Guard, Protected};
pub use secret::Secret;
pub use token::introspection::Introspection;
pub use token::jwt::Jwt;
pub use token::static_tokens::StaticToken;
pub use token::{AccessToken, TokenVerifier};
