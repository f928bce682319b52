//! Tools, resources and prompts of an MCP server from plain functions.
//!
//! ```
//! use duplexer_author::{Server, ServerExt, Tool};
//!
//! let server = Server::builder("greeter")
//!     .tool(Tool::new("hello").description("Says hello.").handler(|| async { "Hello!" }))
//!     .build()?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`ServerExt`] adds to the builder of `duplexer-core`; everything else is what can be registered there.

mod apps;
mod asking;
mod catalog;
mod completion;
mod content;
mod extension;
mod function;
mod intercept;
mod name;
mod path;
mod prompt;
mod resource;
mod schema;
mod server;
mod tool;
mod uri_template;
mod validate;
mod words;

pub use apps::{Apps, Permission, View};
pub use asking::{Answer, AskExt};
pub use catalog::{Catalog, CatalogError, CatalogExt, Edit, NotOffered, Offered};
pub use completion::{Completing, CompletionOutput};
pub use content::FileContent;
pub use duplexer_core::error::{BoxError, CallError, McpError};
pub use duplexer_core::server::{Context, ReadError, Server, ServerBuilder};
pub use duplexer_types::content::Content;
pub use duplexer_types::json::Json;
pub use duplexer_types::prompt::{GetPromptResult, PromptMessage};
pub use duplexer_types::resource::{ReadResourceResult, ResourceContents};
pub use duplexer_types::tool::CallToolResult;
pub use extension::Extension;
pub use function::{AnyState, BlockingFunction, Function, NoArguments};
pub use intercept::{Interceptor, ToolCall};
pub use prompt::{IntoPrompt, Prompt, PromptBuilder, PromptOutput};
pub use resource::{
    About, AsJson, IntoResource, Resource, ResourceBuilder, ResourceError, ResourceOutput, Single, Template,
};
pub use schemars;
pub use server::ServerExt;
pub use tool::{Declared, FromType, HandWritten, IntoTool, Tool, ToolBuilder, ToolError, ToolOutput};

#[doc(hidden)]
pub mod __private;
