//! Threads for blocking functions, and for checks that may take long.
//!
//! A runtime waits for its own blocking threads when it is dropped, so a slow function there delays the end of the
//! process. The threads of this pool are detached: they never delay it.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, LazyLock, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};

/// Permits for blocking functions: the maximum that run at once in a process. Further calls wait.
pub(super) static BLOCKING: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Semaphore::new((cores * 8).max(32))
});

/// Permits for checks of large values: the maximum that run at once in a process. Half of the cores remain for others.
/// Further checks wait in order of arrival, each within its request, whose number is limited. Dropping the request
/// removes it from the queue.
static CHECKS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(max_checks()));

fn max_checks() -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).max(1)
}

/// Maximum time that a thread waits for its next job before it ends.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The pool. It has no limit of its own: every job holds a permit of [`BLOCKING`] or [`CHECKS`].
static POOL: Pool =
    Pool { queue: Mutex::new(Queue { jobs: VecDeque::new(), idle: 0 }), queued: Condvar::new() };

struct Pool {
    queue: Mutex<Queue>,
    queued: Condvar,
}

struct Queue {
    /// Jobs for waiting threads. There are never more of them than waiting threads.
    jobs: VecDeque<Job>,
    /// Number of waiting threads that no queued job is meant for.
    idle: usize,
}

/// Runs `work` on a thread, within the context of the current runtime. A panic of `work` continues in the caller.
///
/// If the caller is dropped, `work` runs to its end and its result is dropped.
///
/// # Errors
///
/// Fails if no thread can be started.
pub(super) async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, McpError> {
    // The job holds the permit: a cancelled call counts until its thread is free.
    let permit = BLOCKING.acquire().await.map_err(McpError::internal)?;
    run_with(permit, work).await
}

/// Runs a check that computes for long, like [`run`], within a limit of its own: blocking functions do not delay it.
///
/// # Errors
///
/// Fails if no thread can be started.
pub(super) async fn check<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, McpError> {
    let permit = CHECKS.acquire().await.map_err(McpError::internal)?;
    run_with(permit, work).await
}

/// Runs `work` without waiting for a permit. Drops `permit` when `work` has ended.
async fn run_with<T: Send + 'static>(
    permit: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, McpError> {
    let runtime = Handle::try_current().ok();
    let (sender, receiver) = oneshot::channel();
    POOL.submit(Box::new(move || {
        let entered = runtime.as_ref().map(Handle::enter);
        let done = catch_unwind(AssertUnwindSafe(work));
        drop((entered, permit));
        drop(sender.send(done));
    }))?;
    match receiver.await.map_err(McpError::internal)? {
        Ok(output) => Ok(output),
        Err(panic) => resume_unwind(panic),
    }
}

impl Pool {
    fn submit(&'static self, job: Job) -> Result<(), McpError> {
        let mut queue = lock(&self.queue);
        if queue.idle > 0 {
            queue.idle -= 1;
            queue.jobs.push_back(job);
            self.queued.notify_one();
            return Ok(());
        }
        drop(queue);
        let builder = thread::Builder::new().name("duplexer-blocking".to_owned());
        builder.spawn(move || self.work(job)).map(drop).map_err(McpError::internal)
    }

    fn work(&self, first: Job) {
        let mut next = Some(first);
        while let Some(job) = next {
            // The job catches the panics of its function. This catches those of dropped values.
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!("the result of a blocking function panicked while it was dropped");
            }
            next = self.wait();
        }
    }

    /// Waits for a job. Returns `None` if there was none for a while.
    fn wait(&self) -> Option<Job> {
        let mut queue = lock(&self.queue);
        queue.idle += 1;
        let waited = self.queued.wait_timeout_while(queue, KEEP_ALIVE, |queue| queue.jobs.is_empty());
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let job = queue.jobs.pop_front();
        if job.is_none() {
            queue.idle -= 1;
        }
        job
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// A runtime ends while a blocking function runs.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test measures the time of the machine")]
    fn a_blocking_function_does_not_delay_the_end_of_a_runtime() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (begun, begins) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(run_with((), move || {
            begun.send(()).unwrap();
            thread::sleep(Duration::from_secs(20));
        }));
        begins.recv().unwrap();
        let start = Instant::now();
        drop(runtime);
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[tokio::test]
    async fn a_function_runs_on_a_named_thread_inside_the_runtime() {
        let name = run_with((), || {
            Handle::current();
            thread::current().name().map(str::to_owned)
        });
        assert_eq!(name.await.unwrap().as_deref(), Some("duplexer-blocking"));
    }

    #[tokio::test]
    async fn a_panic_continues_in_the_caller_and_spares_the_pool() {
        for _ in 0..3 {
            let panicking = run_with((), || panic!("a function that fails"));
            let caught = duplexer_core::dispatch::CatchUnwind::<Result<(), _>>::of(Box::pin(panicking)).await;
            assert!(caught.is_err());
            assert_eq!(run_with((), || 7).await.unwrap(), 7);
        }
    }

    #[tokio::test]
    async fn many_functions_run_at_once() {
        let barrier = std::sync::Arc::new(std::sync::Barrier::new(16));
        let mut running = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let barrier = std::sync::Arc::clone(&barrier);
            running.spawn(run_with((), move || barrier.wait().is_leader()));
        }
        for done in running.join_all().await {
            done.unwrap();
        }
    }
    /// A check waits for a permit, and leaves the queue when its caller is dropped.
    #[tokio::test]
    async fn a_dropped_check_leaves_the_queue() {
        let taken = CHECKS.acquire_many(u32::try_from(max_checks()).unwrap()).await.unwrap();
        let mut dropped = Box::pin(check(|| panic!("a check that was dropped runs")));
        let mut waiting = Box::pin(check(|| 7));
        assert!(is_pending(&mut dropped).await && is_pending(&mut waiting).await);
        drop((dropped, taken));
        assert_eq!(waiting.await.unwrap(), 7);
    }

    async fn is_pending(future: &mut (impl Future + Unpin)) -> bool {
        std::future::poll_fn(|cx| {
            std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())
        })
        .await
    }
}
