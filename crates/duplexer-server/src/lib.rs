//! MCP servers: tools, resources and prompts from plain functions, on a low-level server that serves both eras.
//!
//! ```
//! use duplexer_server::{Server, tool::Tool};
//!
//! let server = Server::builder("greeter", "0")
//!     .tool(Tool::new("hello", || async { "Hello!" }).description("Says hello."))
//!     .build()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! Layers, lowest first; each sees only those before it:
//!
//! - `registry` and `kernel`: an immutable table of handlers, and the code that runs them for one connection.
//!   [`driver`] holds the entry points for transports, [`middleware`] the code around every message.
//! - `features`: [`subscriptions`], sealed [`request_state`], input rounds, the engine of tasks.
//! - `catalog`: [`tool`]s, [`resource`]s, [`prompt`]s and [`completion`]s behind a snapshot; [`elicit`].
//! - `builder`: [`ServerBuilder`], the composition root. [`apps`] and [`tasks`] are extensions on top.

pub mod apps;
mod builder;
mod catalog;
mod features;
mod kernel;
pub mod middleware;
mod registry;
mod schema;
pub mod tasks;

pub use builder::{BuildError, Extension, ServerBuilder};
pub use catalog::{
    Catalog, CatalogEdit, CatalogError, CatalogItem, HandlerError, NotInCatalog, ResultExt, completion,
    elicit, prompt, resource, tool,
};
pub use duplexer_core::error::{BoxError, CallError, McpError};
pub use features::{request_state, subscriptions};
pub use kernel::connection::{
    Caller, ClientCapability, ClientProfile, Connection, ConnectionSnapshot, Negotiated,
};
pub use kernel::context::{Amount, Context, Logger, ProgressReport, ReadError, StateMap, TypedParams};
pub use kernel::driver;
pub use kernel::driver::{StdioError, run_stdio, run_stdio_with, serve, serve_stdio, serve_stdio_with};
pub use kernel::handler::{Handler, IntoReply, Reply};
pub use kernel::outcome::Outcome;
pub use kernel::principal::Principal;
pub use registry::{InitializeOverride, NotificationOptions, RunContext, RunningServer, Server, StartError};
pub use schemars;

#[doc(hidden)]
pub mod __private;
