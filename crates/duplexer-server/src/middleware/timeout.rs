//! A time limit for requests, and limits of their own for single tools.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll, ready};
use std::time::Duration;

use duplexer_types::error::ErrorCode;
use tokio::time::{Instant, Sleep, sleep_until};

use super::call::{ByTool, is_long_lived};
use super::{Middleware, Next};
use crate::features::input_rounds::InputRoundFuture;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Ends requests that take too long: drops the handler and answers with an error. Long-lived requests are exempt.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer::middleware::Timeout;
///
/// let timeout = Timeout::new(Duration::from_secs(30)).tool("render", Duration::from_secs(300));
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(timeout).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Timeout {
    limit: Duration,
    tools: ByTool<Duration>,
}

impl Timeout {
    /// Sets the maximum duration of a request.
    pub fn new(limit: Duration) -> Self {
        Self { limit, tools: ByTool::new() }
    }

    /// Sets another maximum duration for the calls of one tool.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, limit: Duration) -> Self {
        self.tools.set(name, limit);
        self
    }
}

impl Middleware for Timeout {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if is_long_lived(&message) {
            return next.run(cx, message);
        }
        let limit = self.tools.of(&message).map_or(self.limit, |(_, limit)| *limit);
        let Some(deadline) = Instant::now().checked_add(limit) else { return next.run(cx, message) };
        Box::pin(Limited { work: next.future(cx, &message), deadline, timer: None, message })
    }
}

/// A request with a deadline. Its timer is made when the request first has to wait: most never do.
struct Limited {
    work: InputRoundFuture,
    deadline: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    message: Message,
}

impl Future for Limited {
    type Output = Result<Outcome, McpError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut TaskContext<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(outcome) = Pin::new(&mut self.work).poll(task) {
            return Poll::Ready(outcome);
        }
        let deadline = self.deadline;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        ready!(timer.as_mut().poll(task));
        let text = format!("Request '{}' timed out", self.message.method());
        Poll::Ready(Err(McpError::new(ErrorCode::REQUEST_TIMEOUT, text)))
    }
}
