//! Middleware for tool calls. It runs inside the server's middleware and wraps only the tool.

use std::sync::{Arc, Weak};

use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::json::{Json, JsonObject};

use crate::catalog::ToolEntry;

/// Middleware for tool calls, registered with [`ServerBuilder::tool_middleware`](crate::ServerBuilder::tool_middleware).
///
/// Every `async fn(Context, ToolCall) -> Result<Outcome, McpError>` implements it.
///
/// ```
/// # use duplexer_server::{Context, McpError, Server};
/// # use duplexer_server::tool::{Tool, ToolCall};
/// let server = Server::builder("careful", "0")
///     .tool(Tool::new("delete", || async { "deleted" }))
///     .tool_middleware(|cx: Context, call: ToolCall| async move {
///         println!("{} {}", call.name(), call.arguments());
///         call.run(cx).await
///     })
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub trait ToolMiddleware: Send + Sync + 'static {
    /// Handles the call, usually by running it.
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

/// Middleware, outermost first, each with the length of the name prefix that it does not see.
pub(crate) type Chain = Arc<[(usize, Arc<dyn ToolMiddleware>)]>;

/// Call of a tool that exists and is visible to the caller. Its arguments are not validated yet.
///
/// ```
/// use duplexer::server::Outcome;
/// use duplexer::tool::ToolCall;
/// use duplexer::types::tool::CallToolResult;
/// use duplexer::{Context, McpError, Server};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// async fn no_secrets(cx: Context, call: ToolCall) -> Result<Outcome, McpError> {
///     if call.arguments().as_str().contains("secret") {
///         return Ok(Outcome::of(CallToolResult::error("Secrets are not available.")));
///     }
///     call.run(cx).await
/// }
///
/// let server = Server::builder("library", "1.0.0").tool_middleware(no_secrets).build()?;
/// # Ok(())
/// # }
/// ```
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

    /// Returns the tool's name, as the server that the middleware was registered with knows it.
    pub fn name(&self) -> &str {
        let current = self.depth.checked_sub(1).and_then(|at| self.chain.get(at));
        let hidden = current.map_or(0, |(hidden, _)| *hidden);
        self.tool.tool.name.get(hidden..).unwrap_or_default()
    }

    /// Returns the `_meta` of the tool's definition.
    pub fn meta(&self) -> Option<&JsonObject> {
        self.tool.tool.meta.as_ref()
    }

    /// Returns whether the tool declares that it only reads.
    pub fn is_read_only(&self) -> bool {
        let annotations = self.tool.tool.annotations.as_ref();
        annotations.is_some_and(|annotations| annotations.read_only_hint == Some(true))
    }

    /// Returns the tool itself, to tell it from a later one with its name.
    pub(crate) fn entry(&self) -> Weak<ToolEntry> {
        Arc::downgrade(&self.tool)
    }

    /// Returns the arguments, a JSON object.
    pub fn arguments(&self) -> &Json {
        &self.arguments
    }

    /// Replaces the arguments. They are validated like those of the client.
    #[must_use]
    pub fn with_arguments(mut self, arguments: impl Into<Json>) -> Self {
        self.arguments = arguments.into();
        self
    }

    /// Runs the next middleware, or the tool. The tool receives these arguments, whatever the message of the context
    /// contains.
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
