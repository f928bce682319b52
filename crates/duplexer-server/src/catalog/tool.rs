//! Tools: a definition that clients list, and a function that runs.
//!
//! The types of arguments and results end here: a registered tool takes JSON and returns an outcome.

pub(crate) mod entry;
mod error;
mod input;
mod middleware;
mod output;
mod result_cache;
mod run;
mod settings;
mod spec;
mod tool_scopes;
pub(crate) mod ui;

use std::fmt;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::json::Json;
use duplexer_types::tool as wire;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::erased::{ErasedHandler, Forwarded, Typed};
use super::function::{Constructor, Direct, Impossible, OnThread, Unmatched};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;

pub use super::content::FileContent;
pub use super::function::{AnyState, BlockingFunction, Function, NoArguments};
pub use error::ToolError;
pub(crate) use middleware::Chain;
pub use middleware::{ToolCall, ToolMiddleware};
use output::Fallible;
#[doc(hidden)]
pub use output::{PassThrough, Returned};
pub use output::{ToolOutput, WithText};
pub use result_cache::ResultCache;
pub(crate) use run::{CallTool, into_outcome};
pub(crate) use spec::{Execution, ToolContract, ToolSpec};
pub use tool_scopes::ToolScopes;

/// A tool that can be registered with a server whose state is `S`: its definition and its function.
///
/// (The definition alone, as `tools/list` sends it, is [`duplexer_types::tool::ToolDefinition`].)
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
/// let add = Tool::new("add", |Add { a, b }| async move { a + b }).description("Adds two numbers.");
/// let server = Server::builder("calculator", "0").tool(add).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("function", "command"))]
#[must_use = "a tool is offered once it is registered"]
pub struct Tool<S> {
    pub(crate) spec: ToolSpec,
    run: Arc<dyn ErasedHandler<S, CallTool>>,
}

impl<S: Send + Sync + 'static> Tool<S> {
    /// Creates a tool from an async function of its arguments, optionally with a [`Context`](crate::Context) before
    /// them.
    ///
    /// The name consists of 1 to 128 letters, digits, `_`, `-` and `.`. The input schema is derived from the type of
    /// the arguments, the output schema from the return type (see [`ToolOutput`]). An invalid name fails
    /// [`build`](crate::ServerBuilder::build), and so does an invalid schema in debug builds and after
    /// [`check_schemas`](crate::ServerBuilder::check_schemas).
    pub fn new<A, H, Shape, Via>(name: impl Into<String>, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        Shape: 'static,
        Via: 'static,
    {
        Self::typed(ToolSpec::derived::<A>(name.into()), handler)
    }

    /// Creates a tool from a function that blocks its thread: a plain `fn` of the same shapes.
    ///
    /// Calls run on a bounded pool of threads and do not delay other requests.
    pub fn blocking<A, H, Shape, Via>(name: impl Into<String>, function: H) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: BlockingFunction<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        Shape: 'static,
        Via: 'static,
    {
        let mut spec = ToolSpec::derived::<A>(name.into());
        spec.execution.blocking = true;
        Self::typed::<A, _, OnThread<Shape>, Fallible<Via>>(spec, OnThread::new(function))
    }

    /// Creates a tool with a hand-written input schema, which is listed verbatim.
    ///
    /// Arguments are validated against the schema before the function runs. They are decoded into any type;
    /// [`Json`] takes them unchanged.
    ///
    /// ```
    /// # use duplexer_server::Server;
    /// # use duplexer_server::tool::Tool;
    /// # use duplexer_types::json::Json;
    /// # use serde_json::json;
    /// let schema = json!({"type": "object", "properties": {"words": {"type": "array"}}});
    /// let count = Tool::with_schema("count", schema, |arguments: Json| async move { arguments.as_str().len() });
    /// let server = Server::builder("counter", "0").tool(count).build()?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_schema<A, H, Shape, Via>(name: impl Into<String>, schema: impl Into<Json>, handler: H) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        Shape: 'static,
        Via: 'static,
    {
        Self::typed(ToolSpec::custom(name.into(), schema.into()), handler)
    }

    /// Creates a tool that another server runs: neither arguments nor results are checked here. For proxies.
    #[doc(hidden)]
    pub fn forwarded(
        definition: wire::ToolDefinition,
        handler: impl Fn(Context<S>) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static,
    ) -> Self {
        Self { spec: ToolSpec::forwarded(definition), run: Arc::new(Forwarded(handler)) }
    }

    fn typed<A, H, Shape, Via>(spec: ToolSpec, handler: H) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        Shape: 'static,
        Via: 'static,
    {
        let spec = spec.returning(H::Output::schema());
        Self { spec, run: Arc::new(Typed::<H, A, Shape, Via>::new(handler)) }
    }
}

impl<S> Tool<S> {
    /// Returns the definition that `tools/list` sends.
    pub fn definition(&self) -> wire::ToolDefinition {
        self.spec.definition()
    }
}

impl<S> fmt::Debug for Tool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.spec.tool.name).finish_non_exhaustive()
    }
}

/// Values that can be registered as a tool: a [`Tool`], or a function marked with `#[tool]`.
///
/// A marked function becomes a function that returns a [`Tool`]; any such function can be registered. `Via` distinguishes
/// the two and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool for a server whose state is `{S}`",
    label = "not a tool",
    note = "a tool is a function with `#[tool]`, such as\n    #[tool]\n    async fn add(a: i64, b: i64) -> i64 {{ a + b }}\nor `Tool::new(\"add\", |args: Add| async move {{ .. }})`",
    note = "if it takes a `Context<T>`, then `T` must be the state given with `.state(..)` or `.lifespan(..)` before `.tool(..)`"
)]
pub trait IntoTool<S, Via = Direct> {
    /// Converts into the tool.
    fn into_tool(self) -> Tool<S>;
}

impl<S> IntoTool<S> for Tool<S> {
    fn into_tool(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, F: FnOnce() -> Tool<S>> IntoTool<S, Constructor> for F {
    fn into_tool(self) -> Tool<S> {
        self()
    }
}

#[diagnostic::do_not_recommend]
impl<S, T: Impossible> IntoTool<S, Unmatched> for T {
    fn into_tool(self) -> Tool<S> {
        self.never()
    }
}
