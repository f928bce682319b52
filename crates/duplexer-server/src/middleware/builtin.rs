//! Middleware that most servers want at some time.

use std::sync::Arc;
use std::time::Duration;

use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Invocation};
use duplexer_core::error::McpError;

/// Ends requests that take too long: their handler is dropped and the client told. What stands for long may.
#[derive(Clone, Copy, Debug)]
pub struct Timeout(Duration);

impl Timeout {
    /// Requests may take this long.
    pub fn new(limit: Duration) -> Self {
        Self(limit)
    }
}

impl Middleware for Timeout {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if stands(&message) {
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

/// Whether the client decides how long a request takes.
fn stands(message: &Invocation) -> bool {
    message.known().is_some_and(Method::is_long_lived)
}

/// Lets so many requests run at the same time; further ones wait their turn. Notifications pass,
/// and so do requests that stand for as long as the client likes.
#[derive(Clone, Debug)]
pub struct ConcurrencyLimit(Arc<Semaphore>);

impl ConcurrencyLimit {
    /// At most this many, and at least one.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Semaphore::new(limit.max(1))))
    }
}

impl Middleware for ConcurrencyLimit {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if cx.request_id().is_none() || stands(&message) {
            return next.run(cx, message);
        }
        let places = Arc::clone(&self.0);
        Box::pin(async move {
            // The semaphore is never closed; without a permit the message would only run unlimited.
            let _place = places.acquire_owned().await.ok();
            next.run(cx, message).await
        })
    }
}

/// Logs every message with its outcome and duration, never with its payload.
#[derive(Clone, Copy, Debug, Default)]
pub struct Logging;

impl Middleware for Logging {
    fn handle(
        &self,
        cx: Context,
        message: Invocation,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        Box::pin(async move {
            let start = Instant::now();
            // Escaped: a peer chooses these texts, and a log line is one line.
            let (method, id) = (message.method().to_owned(), cx.request_id().map(ToString::to_string));
            let outcome = next.run(cx, message).await;
            let elapsed = start.elapsed();
            match &outcome {
                Ok(done) => tracing::info!(?method, ?id, ?elapsed, tool_error = done.is_error(), "handled"),
                Err(McpError::Refused(error)) => {
                    tracing::info!(?method, ?id, ?elapsed, code = error.code.0, "refused");
                }
                Err(error) => tracing::warn!(?method, ?id, ?elapsed, %error, "failed"),
            }
            outcome
        })
    }
}
