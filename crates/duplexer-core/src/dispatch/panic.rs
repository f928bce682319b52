//! Panic isolation for user code.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::outbound::BoxFuture;
use crate::error::McpError;

/// Runs `code` and turns a panic into a failure.
pub(crate) fn contain<R>(code: impl FnOnce() -> R) -> Result<R, McpError> {
    catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let failure = McpError::panicked(&*payload);
        // The payload of a panic may panic when it is dropped; that panic has no receiver.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        failure
    })
}

/// A future whose panics are failures, while it is polled and when it is dropped.
///
/// For drivers that poll handlers themselves: a panic becomes an error response and never ends the connection.
pub struct Contained<T>(Option<BoxFuture<'static, T>>);

impl<T> Contained<T> {
    /// Wraps the future that `make` returns. Catches a panic of `make` too.
    pub fn new(make: impl FnOnce() -> BoxFuture<'static, T>) -> Result<Self, McpError> {
        contain(make).map(|future| Self(Some(future)))
    }

    /// Wraps a future.
    pub fn of(future: BoxFuture<'static, T>) -> Self {
        Self(Some(future))
    }

    fn end(&mut self) -> Result<(), McpError> {
        let future = self.0.take();
        contain(|| drop(future))
    }
}

impl<T> Future for Contained<T> {
    type Output = Result<T, McpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = match contain(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(failure) => Err(failure),
        };
        Poll::Ready(self.end().and(output))
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        if let Err(failure) = self.end() {
            tracing::error!(%failure, "a handler panicked while it was dropped");
        }
    }
}

impl<T> std::fmt::Debug for Contained<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contained").field("ended", &self.0.is_none()).finish()
    }
}
