//! Code around calls of tools: below the kernel's middleware, around nothing but the tool.

use std::sync::Arc;

use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::json::{Json, JsonObject};

use crate::catalog::ToolEntry;

/// Code around calls of tools. Any `async fn(Context, ToolCall) -> Result<Outcome, McpError>` is one.
///
/// ```
/// # use duplexer_server::{Context, McpError, Server};
/// # use duplexer_server::tool::{Tool, ToolCall};
/// let server = Server::builder("careful")
///     .tool(Tool::new("delete").handler(|| async { "deleted" }))
///     .tool_middleware(|cx: Context, call: ToolCall| async move {
///         println!("{} {}", call.name(), call.arguments());
///         call.run(cx).await
///     })
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait ToolMiddleware: Send + Sync + 'static {
    /// Handles the call, by running it or otherwise.
    fn handle(&self, cx: Context, call: ToolCall) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

impl<F, Fut> ToolMiddleware for F
where
    F: Fn(Context, ToolCall) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, McpError>> + Send + 'static,
{
    fn handle(&self, cx: Context, call: ToolCall) -> BoxFuture<'static, Result<Outcome, McpError>> {
        Box::pin(self(cx, call))
    }
}

/// Interceptors, outermost first, and how much of a name is not known to each.
pub(crate) type Chain = Arc<[(usize, Arc<dyn ToolMiddleware>)]>;

/// A call of a tool that is offered and that the caller may see. Its arguments have not been looked at yet.
pub struct ToolCall {
    tool: Arc<ToolEntry>,
    arguments: Json,
    chain: Chain,
    depth: usize,
}

impl ToolCall {
    pub(crate) fn new(tool: Arc<ToolEntry>, arguments: Json, chain: Chain) -> Self {
        Self { tool, arguments, chain, depth: 0 }
    }

    /// The tool's name, as the server knows it that the interceptor was given to.
    pub fn name(&self) -> &str {
        let around = self.depth.checked_sub(1).and_then(|at| self.chain.get(at));
        let unknown = around.map_or(0, |(unknown, _)| *unknown);
        self.tool.tool.name.get(unknown..).unwrap_or_default()
    }

    /// What the tool's definition holds as `_meta`.
    pub fn meta(&self) -> Option<&JsonObject> {
        self.tool.tool.meta.as_ref()
    }

    /// The arguments: an object.
    pub fn arguments(&self) -> &Json {
        &self.arguments
    }

    /// The same call with other arguments. They are checked like any.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl Into<Json>) -> Self {
        self.arguments = arguments.into();
        self
    }

    /// Goes on with the call: the next interceptor, and in the end the tool. What the tool gets are these arguments, whatever
    /// the message of the context says.
    pub fn run(mut self, cx: Context) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let next = self.chain.get(self.depth).map(|(_, next)| Arc::clone(next));
        match next {
            Some(next) => {
                self.depth += 1;
                next.handle(cx, self)
            }
            None => self.tool.run(cx, self.arguments.as_str()),
        }
    }
}

impl std::fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall").field("name", &self.name()).finish_non_exhaustive()
    }
}
