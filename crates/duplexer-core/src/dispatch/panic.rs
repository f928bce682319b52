//! Panic isolation for user code.

use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::task::{Context, Poll};

use super::outbound::BoxFuture;
use crate::error::McpError;

/// Runs `code`.
///
/// # Errors
///
/// Fails if `code` panics.
pub fn catch_unwind<R>(code: impl FnOnce() -> R) -> Result<R, McpError> {
    panic::catch_unwind(AssertUnwindSafe(code)).map_err(|payload| {
        let failure = McpError::panicked(&*payload);
        // The payload of a panic may panic when it is dropped; that panic has no receiver.
        let _ = panic::catch_unwind(AssertUnwindSafe(|| drop(payload)));
        failure
    })
}

/// A future whose panics are failures, while it is polled and when it is dropped.
///
/// For drivers that poll handlers themselves: a panic becomes an error response and never ends the connection.
pub struct CatchUnwind<T>(Option<BoxFuture<'static, T>>);

impl<T> CatchUnwind<T> {
    /// Wraps the future that `make` returns.
    ///
    /// # Errors
    ///
    /// Fails if `make` panics.
    pub fn new(make: impl FnOnce() -> BoxFuture<'static, T>) -> Result<Self, McpError> {
        catch_unwind(make).map(|future| Self(Some(future)))
    }

    /// Wraps a future.
    pub fn of(future: BoxFuture<'static, T>) -> Self {
        Self(Some(future))
    }

    fn end(&mut self) -> Result<(), McpError> {
        let future = self.0.take();
        catch_unwind(|| drop(future))
    }
}

impl<T> Future for CatchUnwind<T> {
    type Output = Result<T, McpError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let output = match catch_unwind(|| future.as_mut().poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(failure) => Err(failure),
        };
        Poll::Ready(self.end().and(output))
    }
}

impl<T> Drop for CatchUnwind<T> {
    fn drop(&mut self) {
        if let Err(failure) = self.end() {
            tracing::error!(%failure, "a handler panicked while it was dropped");
        }
    }
}

impl<T> std::fmt::Debug for CatchUnwind<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatchUnwind").field("ended", &self.0.is_none()).finish()
    }
}
