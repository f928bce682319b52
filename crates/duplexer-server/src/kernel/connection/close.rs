//! Close hooks of a connection.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use duplexer_core::dispatch::{BoxFuture, CatchUnwind, lock};

/// Maximum duration of all close hooks of one connection.
pub(crate) const CLOSE_BUDGET: Duration = Duration::from_secs(5);

type Hook = Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>;

/// Hooks that run when a connection closes, in reverse order.
#[derive(Default)]
pub(crate) struct CloseStack {
    hooks: Mutex<Vec<Hook>>,
    /// Set with the first hook. Connections of one request are asked twice, and few have hooks.
    is_used: AtomicBool,
}

impl CloseStack {
    /// Registers a hook.
    pub(crate) fn push<F>(&self, hook: impl FnOnce() -> F + Send + 'static)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        lock(&self.hooks).push(Box::new(move || Box::pin(hook())));
        self.is_used.store(true, Ordering::Release);
    }

    /// Runs all hooks within the budget. A hook that panics does not prevent the others from running.
    pub(crate) async fn unwind(&self) {
        self.unwind_within(CLOSE_BUDGET).await;
    }

    pub(crate) async fn unwind_within(&self, budget: Duration) {
        if self.is_empty() {
            return;
        }
        let all = async {
            while let Some(hook) = self.pop() {
                contained(Box::pin(async move { hook().await })).await;
            }
        };
        if timeout(budget, all).await.is_err() {
            tracing::warn!("the hooks at the end of a connection took too long and were cut");
            lock(&self.hooks).clear();
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.is_used.load(Ordering::Acquire) || lock(&self.hooks).is_empty()
    }

    fn pop(&self) -> Option<Hook> {
        lock(&self.hooks).pop()
    }
}

/// Runs user code. A panic is logged and ends nothing else.
pub(crate) async fn contained(work: BoxFuture<'static, ()>) {
    if let Err(failure) = CatchUnwind::of(work).await {
        tracing::error!(%failure, "a hook panicked");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// CONN-05: last in, first out; failures and slowness are contained.
    #[tokio::test(start_paused = true)]
    async fn hooks_run_backwards_and_none_holds_up_the_end() {
        let stack = CloseStack::default();
        let seen = Arc::new(Mutex::new(Vec::new()));
        for index in 0..3 {
            let seen = Arc::clone(&seen);
            stack.push(move || async move {
                assert!(index != 1, "a hook that fails");
                lock(&seen).push(index);
            });
        }
        stack.unwind().await;
        assert_eq!(*lock(&seen), [2, 0]);
        let start = tokio::time::Instant::now();
        stack.push(std::future::pending);
        stack.unwind().await;
        assert_eq!(start.elapsed(), CLOSE_BUDGET);
    }
}
