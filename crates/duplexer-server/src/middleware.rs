//! Middleware: code around every message, requests and notifications alike. It can observe, rewrite, answer by itself,
//! or veto. The first registered is outermost. It also sees the handshake, unknown methods, and params that do not fit.

mod access_log;
mod audit_log;
mod call;
mod concurrency_limit;
mod rate_limit;
mod redaction;
mod response_limit;
mod timeout;

use std::sync::Arc;

use crate::features::input_rounds::InputRoundFuture;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::runner;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;

pub use crate::kernel::observer::{Ending, Observed, Observer};
pub use crate::kernel::outcome::Outcome;
pub use access_log::AccessLog;
pub use audit_log::{AuditLog, AuditLogBuilder};
pub use concurrency_limit::ConcurrencyLimit;
pub use duplexer_core::dispatch::Message;
pub use rate_limit::{
    Deciding, Decision, LocalRateLimiter, Quota, RateCaller, RateLimit, RateLimiter, RateRequest, RefusedBy,
};
pub use redaction::{Redaction, RedactionBuilder, RedactionError};
pub use response_limit::ResponseLimit;
pub use timeout::Timeout;

/// Code around every message. Implemented for every `async fn(Context, Message, Next) -> Result<Outcome, McpError>`.
///
/// ```
/// use duplexer::dispatch::Message;
/// use duplexer::middleware::Next;
/// use duplexer::server::Outcome;
/// use duplexer::types::error::ErrorCode;
/// use duplexer::{Context, McpError, Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// async fn refuse_deletions(cx: Context, message: Message, next: Next) -> Result<Outcome, McpError> {
///     if message.params().is_some_and(|params| params.contains("delete")) {
///         return Err(McpError::new(ErrorCode(-32050), "Nothing is deleted here"));
///     }
///     next.run(cx, message).await
/// }
///
/// let delete = Tool::new("delete", || async {});
/// let server = Server::builder("archive", "1.0.0").middleware(refuse_deletions).tool(delete).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # assert_eq!(client.call_tool("delete", ()).await.unwrap_err().to_string(), "Nothing is deleted here");
/// # Ok(())
/// # }
/// ```
pub trait Middleware: Send + Sync + 'static {
    /// Decides whether [`Self::handle`] is called at all. Middleware that only admits and refuses messages can do so here, without a
    /// future and a copy of the message; `handle` then does the same for other middleware that calls it. Default: it is called.
    fn gate(&self, _cx: &Context, _message: &Message) -> Gate {
        Gate::Handle
    }

    /// Handles the message, usually by calling `next`. The outcome of a notification is ignored.
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

/// What happens to a message at one middleware: see [`Middleware::gate`].
///
/// ```
/// use duplexer::dispatch::{BoxFuture, Message};
/// use duplexer::middleware::{Gate, Middleware, Next};
/// use duplexer::server::Outcome;
/// use duplexer::types::error::ErrorCode;
/// use duplexer::{Context, McpError, Server, Tool};
///
/// struct Closed;
///
/// impl Middleware for Closed {
///     fn gate(&self, _: &Context, message: &Message) -> Gate {
///         match message.method() {
///             "tools/call" => Gate::Refuse(McpError::new(ErrorCode(-32050), "Closed on Sundays")),
///             _ => Gate::Pass,
///         }
///     }
///
///     fn handle(&self, cx: Context, message: Message, next: Next) -> BoxFuture<'static, Result<Outcome, McpError>> {
///         next.run(cx, message)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("shop", "1.0.0").middleware(Closed).tool(Tool::new("buy", || async {})).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # assert_eq!(client.list_tools().await?.tools.len(), 1);
/// # assert_eq!(client.call_tool("buy", ()).await.unwrap_err().to_string(), "Closed on Sundays");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub enum Gate {
    /// The middleware handles it.
    Handle,
    /// It goes to the next middleware, or to its handler.
    Pass,
    /// It fails.
    Refuse(McpError),
}

impl<F, Fut> Middleware for F
where
    F: Fn(Context, Message, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, McpError>> + Send + 'static,
{
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        Box::pin(self(cx, message, next))
    }
}

/// The rest of the chain: the next middleware, and finally the handler.
#[derive(Debug)]
pub struct Next {
    depth: usize,
}

impl Next {
    pub(crate) fn outermost() -> Self {
        Self { depth: 0 }
    }

    /// Runs the rest of the chain with this message, which can differ from the original.
    #[expect(clippy::needless_pass_by_value, reason = "middleware owns its message, and gives it away here")]
    pub fn run(
        self,
        cx: Context<StateMap>,
        message: Message,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        self.future(cx, &message).boxed()
    }

    /// Does the same without a box of its own.
    pub(crate) fn future(self, cx: Context<StateMap>, message: &Message) -> InputRoundFuture {
        // Most middleware changes nothing. The context already holds such a message.
        if message.is_same(cx.message()) {
            return self.enter(cx);
        }
        self.enter(cx.with_message(Arc::new(message.clone())))
    }

    /// Runs the rest of the chain with the message of the context. Only middleware gets a copy of it.
    pub(crate) fn enter(self, cx: Context<StateMap>) -> InputRoundFuture {
        let mut depth = self.depth;
        loop {
            let Some(layer) = cx.server().registry().middleware.get(depth) else {
                return runner::innermost(cx);
            };
            depth += 1;
            match layer.gate(&cx, cx.message()) {
                Gate::Handle => {
                    let (layer, message) = (Arc::clone(layer), cx.message().clone());
                    return layer.handle(cx, message, Self { depth }).into();
                }
                Gate::Pass => {}
                Gate::Refuse(error) => return refused(error),
            }
        }
    }
}

#[cold]
fn refused(error: McpError) -> InputRoundFuture {
    let refused: BoxFuture<'static, _> = Box::pin(std::future::ready(Err(error)));
    refused.into()
}

#[cfg(test)]
mod tests;
