//! Tools: a name, what the model is into_outcome, and a function.
//!
//! Types end here: a registered tool is a definition and something that can be run with JSON.

mod builder;
pub(crate) mod entry;
mod error;
mod middleware;
mod output;
mod run;
mod spec;
pub(crate) mod ui;

use std::fmt;
use std::sync::Arc;

use crate::registry::StateSlot;
use duplexer_types::tool as wire;

pub use super::content::FileContent;
pub use super::function::{AnyState, BlockingFunction, Function, NoArguments};
pub use builder::{FromType, HandWritten, ToolBuilder};
pub use error::ToolError;
pub(crate) use middleware::Chain;
pub use middleware::{ToolCall, ToolMiddleware};
pub use output::{OutputSchema, Returned, Settle, ToolOutput};
pub(crate) use run::{RunTool, into_outcome};
pub(crate) use spec::{ArgumentSchema, ToolSpec};

/// A tool that is ready to be registered with a server whose state is `S`.
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::tool::Tool;
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("add")
///     .description("Adds two numbers.")
///     .handler(|Add { a, b }| async move { a + b });
/// let server = Server::builder("calculator").tool(add).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a tool is offered once it is registered"]
pub struct Tool<S> {
    pub(crate) draft: ToolSpec,
    pub(crate) run: Arc<dyn RunTool<S>>,
}

impl Tool<()> {
    /// Begins a tool. Its name consists of letters, digits, `_`, `-` and `.`.
    #[expect(clippy::new_ret_no_self, reason = "a tool is complete once it has its function")]
    pub fn new(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder::named(name.into())
    }
}

impl<S> Tool<S> {
    /// The same tool under another name.
    pub fn rename(mut self, name: impl Into<String>) -> Self {
        self.draft.tool.name = name.into();
        self
    }

    /// How it is listed.
    pub fn definition(&self) -> &wire::Tool {
        &self.draft.tool
    }
}

impl<S> fmt::Debug for Tool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.draft.tool.name).finish_non_exhaustive()
    }
}

/// What can be registered as a tool: a [`Tool`], or a function marked with `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool for a server whose state is `{S}`",
    label = "not a tool",
    note = "a tool is a function with `#[tool]`, such as\n    #[tool]\n    async fn add(a: i64, b: i64) -> i64 {{ a + b }}\nor `Tool::new(\"add\").handler(|args: Add| async move {{ .. }})`",
    note = "if it takes a `Context<T>`, then `T` must be the state given with `.state(..)` or `.lifespan(..)` before `.tool(..)`"
)]
pub trait IntoTool<S> {
    /// The tool.
    fn into_tool(self) -> Tool<S>;
}

impl<S> IntoTool<S> for Tool<S> {
    fn into_tool(self) -> Self {
        self
    }
}

/// A tool and where its state is.
pub(crate) struct Bound<S> {
    pub(crate) run: Arc<dyn RunTool<S>>,
    pub(crate) slot: StateSlot<S>,
}
