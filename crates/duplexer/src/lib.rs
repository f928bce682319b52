//! A Rust SDK for the [Model Context Protocol](https://modelcontextprotocol.io): servers and clients, all revisions.
//!
//! ```no_run
//! use duplexer::prelude::*;
//!
//! /// Adds two numbers.
//! #[tool]
//! async fn add(a: i64, b: i64) -> i64 {
//!     a + b
//! }
//!
//! fn main() -> Result<(), BoxError> {
//!     let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
//!     Ok(run_stdio(&server)?)
//! }
//! ```
//!
//! That is a whole program. The description comes from the doc comment, the schemas from the types. It speaks all five
//! revisions of the protocol, in both eras; which one is decided by the client's first message.
//!
//! # Where to begin
//!
//! The [guide] goes from the [first server](guide::first_server) to [hosts](guide::hosts), HTTP and authorization, one task
//! each. By name:
//!
//! - [`Server::builder`] starts a server; [`ServerBuilder`] registers tools, resources and prompts.
//! - [`Context`] is the optional first argument of a handler: state, progress, logging, [questions to the user](elicit).
//! - [`run_stdio`] serves over standard input and output, `http` over HTTP.
//! - `client` connects to servers; `testing` connects to one in the same process.
//! - [`tool`](mod@tool), [`resource`](mod@resource), [`prompt`](mod@prompt), [`completion`], [`middleware`], [`elicit`] and [`tasks`] hold the types of one subject each.
//! - [`server`] is the low-level server: handlers of single methods, subscriptions, request state, and the
//!   [drivers](server::driver) that transports call.
//! - [`types`] are the messages of the protocol.
//! - [Troubleshooting](guide::troubleshooting) explains errors by their exact texts.
//!
//! # Features
//!
//! Features select crates and never change behaviour. No protocol revision is a feature.
//!
//! | Feature | For | Module | Brings |
//! |---|---|---|---|
//! | `macros` (default) | servers | | `#[tool]`, `#[prompt]`, `#[resource]` |
//! | `http` | servers | `http` | streamable HTTP: sessions, resumption, stateless; a tower service and a socket of its own |
//! | `client` | both | `client`, `testing` | clients of child processes and of servers in the same process, groups, `mcp.json`; tests of servers |
//! | `http-client` | clients | `http_client` | streamable HTTP with TLS, and HTTP+SSE |
//! | `auth` | servers | `auth` | OAuth 2.1: protected servers, scopes of tools, a small authorization server |
//! | `oauth` | clients | `oauth` | OAuth 2.1: login, refresh, step-up, machine grants, DPoP |
//! | `keyring` | clients | `oauth` | credentials in the keyring of the platform |
//! | `schema` | clients | `client` | results of tools are validated against their output schemas |
//! | `redis` | servers | `redis` | several nodes that share a Redis or Valkey |
//! | `skills` | both | `skills`, and `client` with that feature | skills: servers offer directories of instructions, clients verify what they read of them |
//! | `proxy` | both | `proxy` | remote servers as local ones, a bridge between the eras, gateways to many servers |
//! | `inspector` | clients | `inspector` | a page that shows a server and every message of its sessions |
//! | `otel` | both | `otel` | OpenTelemetry spans, with trace context in `_meta`, and metrics |
//! | `prometheus` | servers | `otel` | metrics on a port of their own, as the text of Prometheus |
//! | `log` | both | | `log_to_stderr`, a subscriber in one line |
//!
//! # Guarantees
//!
//! A panic in a handler is one failed call, unless the profile sets `panic = "abort"`. All input of a peer is limited:
//! lines, bodies, nesting, requests, sessions. A cancelled request is dropped at its next `await`. Shutdown takes at most
//! 15 seconds. Logs go through `tracing` and contain no payloads above `TRACE`; without a subscriber, errors of handlers
//! go to standard error.
//!
//! This crate re-exports the `duplexer-*` crates. Its own are `testing`, which needs server and client, the parts of
//! `client` that need several transports (targets, groups, `mcp.json` and skills), and `log_to_stderr`.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "log")]
mod log;

#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod client;
#[cfg(feature = "client")]
#[cfg_attr(docsrs, doc(cfg(feature = "client")))]
pub mod testing;

#[cfg(feature = "log")]
#[cfg_attr(docsrs, doc(cfg(feature = "log")))]
pub use crate::log::log_to_stderr;
#[cfg(feature = "auth")]
#[cfg_attr(docsrs, doc(cfg(feature = "auth")))]
#[doc(inline)]
pub use duplexer_auth as auth;
#[doc(inline)]
pub use duplexer_core::{dispatch, error, metrics, run, shutdown_signal, transport};
#[cfg(feature = "http")]
#[cfg_attr(docsrs, doc(cfg(feature = "http")))]
#[doc(inline)]
pub use duplexer_http as http;
#[cfg(feature = "http-client")]
#[cfg_attr(docsrs, doc(cfg(feature = "http-client")))]
#[doc(inline)]
pub use duplexer_http_client as http_client;
#[cfg(feature = "inspector")]
#[cfg_attr(docsrs, doc(cfg(feature = "inspector")))]
#[doc(inline)]
pub use duplexer_inspector as inspector;
#[cfg(feature = "macros")]
#[cfg_attr(docsrs, doc(cfg(feature = "macros")))]
pub use duplexer_macros::{prompt, resource, tool};
#[cfg(feature = "oauth")]
#[cfg_attr(docsrs, doc(cfg(feature = "oauth")))]
#[doc(inline)]
pub use duplexer_oauth as oauth;
#[cfg(feature = "otel")]
#[cfg_attr(docsrs, doc(cfg(feature = "otel")))]
#[doc(inline)]
pub use duplexer_otel as otel;
#[cfg(feature = "proxy")]
#[cfg_attr(docsrs, doc(cfg(feature = "proxy")))]
#[doc(inline)]
pub use duplexer_proxy as proxy;
#[cfg(feature = "redis")]
#[cfg_attr(docsrs, doc(cfg(feature = "redis")))]
#[doc(inline)]
pub use duplexer_redis as redis;
pub use duplexer_server::prompt::Prompt;
pub use duplexer_server::resource::{AsJson, Resource, ResourceError};
pub use duplexer_server::view_file;
// Its items are not ours, and would be found in our search.
#[doc(no_inline)]
pub use duplexer_server::schemars;
pub use duplexer_server::tool::{Tool, ToolError, WithText};
pub use duplexer_server::{
    BoxError, BuildError, CallError, Context, HandlerError, McpError, ResultExt, Server, ServerBuilder, apps,
    completion, elicit, middleware, prompt, resource, run_stdio, serve, serve_stdio, tasks, tool,
};
#[doc(inline)]
pub use duplexer_types as types;
pub use duplexer_types::json::Json;

#[cfg(feature = "skills")]
#[cfg_attr(docsrs, doc(cfg(feature = "skills")))]
#[doc(inline)]
pub use duplexer_skills as skills;

/// The low-level server: handlers of single methods, connections, subscriptions, sealed request state, and the drivers
/// that transports call.
pub mod server {
    pub use duplexer_server::{
        Amount, BuildError, Caller, Catalog, CatalogEdit, CatalogError, CatalogItem, ClientCapability,
        ClientProfile, Connection, ConnectionSnapshot, Context, Extension, Handler, InitializeOverride,
        IntoReply, Logger, Negotiated, NotInCatalog, NotificationOptions, Outcome, Principal, ProgressReport,
        ReadError, Reply, RunContext, RunningServer, Server, ServerBuilder, StartError, StateMap, StdioError,
        TypedParams, driver, request_state, run_stdio, run_stdio_with, serve, serve_stdio, serve_stdio_with,
        subscriptions,
    };
}

/// Names that most servers need: `use duplexer::prelude::*;`.
///
/// It has no name of axum or anyhow. Import [`Context`] and [`Json`] by name: `use duplexer::{Context, Json};`.
pub mod prelude {
    #[cfg(feature = "macros")]
    pub use duplexer_macros::{prompt, resource, tool};
    pub use duplexer_types::content::Content;
    pub use duplexer_types::prompt::PromptMessage;
    pub use duplexer_types::tool::CallToolResult;

    pub use crate::{
        BoxError, McpError, Prompt, Resource, ResourceError, ResultExt, Server, Tool, ToolError, run_stdio,
    };
}

#[doc(hidden)]
pub use duplexer_server::__private;

/// The snippets of the readme, as doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
