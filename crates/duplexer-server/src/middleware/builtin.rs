//! Middleware for common needs: timeouts, a concurrency limit, logging.

use std::sync::Arc;
use std::time::Duration;

use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Middleware, Next};
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
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(Timeout::new(Duration::from_secs(30))).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Timeout(Duration);

impl Timeout {
    /// Sets the maximum duration of a request.
    pub fn new(limit: Duration) -> Self {
        Self(limit)
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
        let limit = self.0;
        Box::pin(async move {
            let text = format!("Request '{}' timed out", message.method());
            match tokio::time::timeout(limit, next.run(cx, message)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(McpError::new(ErrorCode::REQUEST_TIMEOUT, text)),
            }
        })
    }
}

/// Returns whether the client decides how long a request takes.
fn is_long_lived(message: &Message) -> bool {
    message.known().is_some_and(Method::is_long_lived)
}

/// Limits the number of concurrent requests; further ones wait for a permit. Notifications and long-lived requests are
/// exempt.
///
/// ```
/// use duplexer::middleware::ConcurrencyLimit;
///
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(ConcurrencyLimit::new(64)).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

impl ConcurrencyLimit {
    /// Sets the limit, which is at least one.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit.max(1))))
    }
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
        let permits = Arc::clone(&self.0);
        Box::pin(async move {
            // The semaphore is never closed. Without a permit the message would run unlimited.
            let _permit = permits.acquire_owned().await.ok();
            next.run(cx, message).await
        })
    }
}

/// Logs every message with its outcome and duration, never with its payload.
///
/// ```
/// use duplexer::middleware::Logging;
///
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(Logging).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Logging;

impl Middleware for Logging {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        Box::pin(async move {
            let start = Instant::now();
            // Escaped: a peer chooses these texts, and a log entry must stay one line.
            let (method, id) = (message.method().to_owned(), cx.request_id().map(ToString::to_string));
            let outcome = next.run(cx, message).await;
            let elapsed = start.elapsed();
            match &outcome {
                Ok(done) => tracing::info!(?method, ?id, ?elapsed, tool_error = done.is_error(), "handled"),
                Err(McpError::Rpc(error)) => {
                    tracing::info!(?method, ?id, ?elapsed, code = error.code.0, "refused");
                }
                Err(error) => tracing::warn!(?method, ?id, ?elapsed, %error, "failed"),
            }
            outcome
        })
    }
}
