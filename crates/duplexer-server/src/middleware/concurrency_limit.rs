//! A limit on concurrent requests, and limits of their own for single tools.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::call::{ByTool, is_long_lived};
use super::{Middleware, Next};
use crate::features::input_rounds::InputRoundFuture;
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
        // The tool's first: a call that waits for it must not take one of all.
        let tool = self.tools.of(&message).map(|(_, permits)| permits);
        let free = |permits: &Arc<Semaphore>| Arc::clone(permits).try_acquire_owned().ok();
        let of_tool = tool.and_then(free);
        let waits_for_tool = tool.is_some() && of_tool.is_none();
        if !waits_for_tool && let Some(of_all) = free(&self.all) {
            return Box::pin(Permitted { work: next.future(cx, &message), _permits: (of_tool, of_all) });
        }
        let (tool, all) = (tool.map(Arc::clone), Arc::clone(&self.all));
        Box::pin(async move {
            // The semaphores are never closed.
            let _of_tool = match (of_tool, tool) {
                (None, Some(tool)) => tool.acquire_owned().await.ok(),
                (free, _) => free,
            };
            let _of_all = all.acquire_owned().await.ok();
            next.future(cx, &message).await
        })
    }
}

/// A request that got its permits at once, as most do.
struct Permitted {
    work: InputRoundFuture,
    _permits: (Option<OwnedSemaphorePermit>, OwnedSemaphorePermit),
}

impl Future for Permitted {
    type Output = Result<Outcome, McpError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.work).poll(task)
    }
}
