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
//!     let server = Server::builder("calculator").tool(add).build()?;
//!     Ok(run_stdio(&server)?)
//! }
//! ```
//!
//! - [`Server::builder`] begins a server; [`ServerExt`] is what can be offered: tools, resources, prompts.
//! - [`Context`] is what a handler gets beside its arguments.
//! - [`run_stdio`] serves it; [`testing`] tests it without a process; [`client`] is the other side.
//! - [`types`] are the messages of the protocol.
//!
//! This crate contains nothing of its own: it is one name for `duplexer-types`, `-core`, `-author` and `-macros`.

#[cfg(feature = "auth")]
pub use duplexer_auth as auth;
pub use duplexer_author::*;
pub use duplexer_core::server::{
    Middleware, Next, Outcome, Principal, Reply, Running, States, run_stdio, serve, serve_stdio,
};
pub use duplexer_core::{client, dispatch, error, server, testing, transport};
#[cfg(feature = "macros")]
pub use duplexer_macros::{prompt, resource, tool};
pub use duplexer_types as types;

/// What most servers need: `use duplexer::prelude::*;`.
pub mod prelude {
    pub use crate::{
        Answer, AskExt, BoxError, CallToolResult, Completing, Content, Context, FileContent, Json, McpError,
        Prompt, PromptMessage, Resource, ResourceError, Server, ServerExt, Tool, ToolError, run_stdio,
    };
    #[cfg(feature = "macros")]
    pub use crate::{prompt, resource, tool};
}
