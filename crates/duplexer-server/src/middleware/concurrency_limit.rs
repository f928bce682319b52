//! A limit on concurrent requests, and limits of their own for single tools.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::call::{ByTool, is_long_lived};
use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Limits the number of concurrent requests; further ones wait for a permit. Notifications and long-lived requests are
/// exempt. A call of a tool with a limit of its own needs a permit of both limits.
///
/// ```
/// use duplexer::middleware::ConcurrencyLimit;
///
/// // At most 64 requests, and at most 2 of them render.
/// let limit = ConcurrencyLimit::new(64).tool("render", 2);
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(limit).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit {
    all: Arc<Semaphore>,
    tools: ByTool<Arc<Semaphore>>,
}

impl ConcurrencyLimit {
    /// Sets the limit of all requests together, which is at least one.
    pub fn new(limit: usize) -> Self {
        Self { all: semaphore(limit), tools: ByTool::new() }
    }

    /// Limits nothing but the tools that get a limit of their own.
    pub fn of_tools() -> Self {
        Self::new(Semaphore::MAX_PERMITS)
    }

    /// Sets the limit of the calls of one tool, which is at least one.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, limit: usize) -> Self {
        self.tools.set(name, semaphore(limit));
        self
    }
}

fn semaphore(limit: usize) -> Arc<Semaphore> {
    Arc::new(Semaphore::new(limit.clamp(1, Semaphore::MAX_PERMITS)))
}

impl Middleware for ConcurrencyLimit {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if cx.request_id().is_none() || is_long_lived(&message) {
            return next.run(cx, message);
        }
        let all = Arc::clone(&self.all);
        let tool = self.tools.of(&message).map(|(_, permits)| Arc::clone(permits));
        Box::pin(async move {
            // The tool's first: a call that waits for it must not take one of all. The semaphores are never closed.
            let _tool = match &tool {
                Some(permits) => permits.acquire().await.ok(),
                None => None,
            };
            let _all = all.acquire().await.ok();
            next.run(cx, message).await
        })
    }
}
