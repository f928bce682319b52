//! Tasks with an owner: what is spawned through a [`TaskTracker`] can be waited for.
//!
//! The same type of `tokio-util` brings six more crates into every server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::dispatch::BoxFuture;

/// Spawns tasks and waits until all of them have ended. Clones share the tasks.
#[derive(Clone, Debug, Default)]
pub struct TaskTracker(Arc<Tracked>);

#[derive(Debug, Default)]
struct Tracked {
    /// Twice the number of tasks, and one more after [`TaskTracker::close`].
    state: AtomicUsize,
    ended: Notify,
}

const CLOSED: usize = 1;
const TASK: usize = 2;

impl TaskTracker {
    /// Creates a tracker without tasks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns a task on the current runtime.
    ///
    /// # Panics
    ///
    /// Panics outside a runtime.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        self.spawn_boxed(Box::pin(work), &Handle::current())
    }

    /// Spawns a task on a runtime.
    pub fn spawn_on(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
        runtime: &Handle,
    ) -> JoinHandle<()> {
        self.spawn_boxed(Box::pin(work), runtime)
    }

    /// Spawns a task on a runtime. All tasks have one type: the runtime is compiled once per type of its tasks.
    pub fn spawn_boxed(&self, work: BoxFuture<'static, ()>, runtime: &Handle) -> JoinHandle<()> {
        self.0.state.fetch_add(TASK, Ordering::Relaxed);
        runtime.spawn(TrackedFuture { work, _token: Token(Arc::clone(&self.0)) })
    }

    /// Allows [`Self::wait`] to return. Tasks can still be spawned, and are waited for as well.
    pub fn close(&self) {
        if self.0.state.fetch_or(CLOSED, Ordering::AcqRel) == 0 {
            self.0.ended.notify_waiters();
        }
    }

    /// Waits until the tracker is closed and no task is left.
    pub async fn wait(&self) {
        loop {
            // Registered before the check, so that no end is missed.
            let ended = self.0.ended.notified();
            if self.0.state.load(Ordering::Acquire) == CLOSED {
                return;
            }
            ended.await;
        }
    }
}

/// Counts a task until it is dropped.
struct Token(Arc<Tracked>);

impl Drop for Token {
    fn drop(&mut self) {
        if self.0.state.fetch_sub(TASK, Ordering::AcqRel) == TASK | CLOSED {
            self.0.ended.notify_waiters();
        }
    }
}

/// A future that is dropped before its token.
struct TrackedFuture {
    work: BoxFuture<'static, ()>,
    _token: Token,
}

impl Future for TrackedFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.work.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;

    use tokio::runtime::Handle;
    use tokio::sync::Notify;

    use super::TaskTracker;

    /// Polls a future once: whether it is ready.
    async fn is_ready(future: impl Future) -> bool {
        tokio::select! {
            biased;
            _ = future => true,
            () = std::future::ready(()) => false,
        }
    }

    #[tokio::test]
    async fn waiting_ends_when_the_tracker_is_closed_and_the_last_task_has_ended() {
        let tracker = TaskTracker::new();
        let release = Arc::new(Notify::new());
        let released = Arc::clone(&release);
        let task = tracker.spawn(async move { released.notified().await });
        assert!(!is_ready(tracker.wait()).await);
        tracker.close();
        assert!(!is_ready(tracker.wait()).await);
        release.notify_one();
        tracker.wait().await;
        assert!(task.is_finished() || task.await.is_ok());
    }

    #[tokio::test]
    async fn an_empty_tracker_is_waited_for_until_it_is_closed() {
        let tracker = TaskTracker::new();
        let waiting = Handle::current().spawn({
            let tracker = tracker.clone();
            async move { tracker.wait().await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        tracker.close();
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn a_task_that_is_aborted_or_panics_has_ended() {
        let tracker = TaskTracker::new();
        let aborted = tracker.spawn(pending::<()>());
        let panicked = tracker.spawn(async { panic!("expected by the test") });
        tracker.close();
        aborted.abort();
        tracker.wait().await;
        assert!(aborted.await.is_err() && panicked.await.is_err());
    }

    #[tokio::test]
    async fn a_task_counts_until_what_it_owns_is_dropped() {
        struct Order(TaskTracker, Arc<std::sync::atomic::AtomicBool>);
        impl Drop for Order {
            fn drop(&mut self) {
                let is_counted = self.0.0.state.load(std::sync::atomic::Ordering::Acquire) >= super::TASK;
                self.1.store(is_counted, std::sync::atomic::Ordering::Release);
            }
        }
        let tracker = TaskTracker::new();
        let was_counted = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let owned = Order(tracker.clone(), Arc::clone(&was_counted));
        let task = tracker.spawn(async move {
            pending::<()>().await;
            drop(owned);
        });
        tracker.close();
        task.abort();
        tracker.wait().await;
        assert!(was_counted.load(std::sync::atomic::Ordering::Acquire));
    }
}
