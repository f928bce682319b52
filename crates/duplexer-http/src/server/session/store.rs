//! Calls of user-provided stores: repeated for a limited time, isolated from panics, and behind a breaker, so that no
//! request waits for a store that is known to be down.

use std::future::poll_fn;
use std::hash::{BuildHasher as _, RandomState};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{Chain, StoreError};
use duplexer_core::stderr_log;
use tokio::time::{Instant, sleep, timeout};

use crate::sync::{Mutex, lock};

/// Failed attempts in a row after which the breaker can open.
const FAILURES: u32 = 3;
/// Interval of the attempts while the breaker is open.
const PROBE: Duration = Duration::from_millis(250);
/// Pauses between the attempts of one operation, at least and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// How long operations of stores are tried.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) struct StoreTiming {
    /// For one operation with its repetitions.
    pub(in crate::server) patience: Duration,
    /// For one attempt.
    pub(in crate::server) attempt: Duration,
}

impl Default for StoreTiming {
    fn default() -> Self {
        Self { patience: Duration::from_secs(5), attempt: Duration::from_secs(1) }
    }
}

/// Runs the operations of the stores of one service.
pub(super) struct StoreGuard {
    timing: StoreTiming,
    breaker: Mutex<Breaker>,
    /// Whether the last operation succeeded.
    healthy: AtomicBool,
}

/// Opens once the store has not responded for the whole patience. Closed by the first response.
#[derive(Default)]
struct Breaker {
    /// Failed attempts in a row.
    failures: u32,
    /// Start of the first of them.
    since: Option<Instant>,
    /// Start of the last attempt while open.
    probed: Option<Instant>,
}

/// How often an operation can be tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempts {
    Many,
    /// Once, to find out whether the store is back.
    One,
    None,
}

impl Breaker {
    /// Returns how often an operation can be tried now.
    fn allows(&mut self, patience: Duration) -> Attempts {
        let now = Instant::now();
        let is_down = self.since.is_some_and(|since| now.duration_since(since) >= patience);
        if self.failures < FAILURES || !is_down {
            return Attempts::Many;
        }
        if self.probed.is_some_and(|probed| now.duration_since(probed) < PROBE) {
            return Attempts::None;
        }
        self.probed = Some(now);
        Attempts::One
    }

    fn failed(&mut self, start: Instant) {
        self.failures = self.failures.saturating_add(1);
        self.since.get_or_insert(start);
    }

    fn responded(&mut self) {
        *self = Self::default();
    }
}

impl StoreGuard {
    pub(super) fn new(timing: StoreTiming) -> Self {
        Self { timing, breaker: Mutex::default(), healthy: AtomicBool::new(true) }
    }

    /// Runs an operation, and repeats it while the store is unavailable and the patience lasts.
    pub(super) async fn run<'a, T>(
        &self,
        mut operation: impl FnMut() -> BoxFuture<'a, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let StoreTiming { patience, attempt } = self.timing;
        let (start, mut pause) = (Instant::now(), FIRST_PAUSE);
        loop {
            let attempts = lock(&self.breaker).allows(patience);
            if attempts == Attempts::None {
                return Err(StoreError::Unavailable("it has not responded for some time".into()));
            }
            let begun = Instant::now();
            let left = patience.saturating_sub(start.elapsed());
            let outcome = timeout(attempt.min(left), contained(&mut operation)).await;
            let error = match outcome {
                Ok(Err(StoreError::Unavailable(cause))) => StoreError::Unavailable(cause),
                Err(_) => StoreError::Unavailable("it takes too long".into()),
                Ok(responded) => {
                    lock(&self.breaker).responded();
                    match &responded {
                        Ok(_) => self.healthy.store(true, Ordering::Relaxed),
                        Err(error) => {
                            tracing::error!(error = %Chain(error), "a store has failed");
                            self.print(error);
                        }
                    }
                    return responded;
                }
            };
            lock(&self.breaker).failed(begun);
            if attempts == Attempts::One || start.elapsed() + pause >= patience {
                tracing::error!(error = %Chain(&error), "a store is unavailable");
                self.print(&error);
                return Err(error);
            }
            sleep(jittered(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Prints the first failure after a success, for programs without a log.
    fn print(&self, error: &StoreError) {
        if self.healthy.swap(false, Ordering::Relaxed) {
            stderr_log::error(format_args!("a store has failed: {}", Chain(error)));
        }
    }
}

/// Returns a random part of a pause, at least half, so that many callers do not repeat at the same moment.
pub(super) fn jittered(pause: Duration) -> Duration {
    let random = u32::try_from(RandomState::new().hash_one(0) % 1024).unwrap_or_default();
    pause / 2 + pause / 2 * random / 1024
}

/// Runs one attempt. A panic counts as a failure.
async fn contained<'a, T>(
    operation: &mut impl FnMut() -> BoxFuture<'a, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let panicked = || StoreError::Failed("it panicked".into());
    let mut attempt = catch_unwind(AssertUnwindSafe(operation)).map_err(|_| panicked())?;
    poll_fn(|cx| {
        catch_unwind(AssertUnwindSafe(|| attempt.as_mut().poll(cx)))
            .unwrap_or_else(|_| Poll::Ready(Err(panicked())))
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::sync::atomic::AtomicUsize;

    use super::*;

    type Attempt = BoxFuture<'static, Result<(), StoreError>>;

    fn down() -> Attempt {
        Box::pin(ready(Err(StoreError::Unavailable("refused".into()))))
    }

    fn up() -> Attempt {
        Box::pin(ready(Ok(())))
    }

    /// SCL-13, SCL-62: a store that is away for less than the patience costs time only.
    #[tokio::test(start_paused = true)]
    async fn a_short_pause_of_the_store_costs_time_only() {
        let guard = StoreGuard::new(StoreTiming::default());
        let start = Instant::now();
        let away = Duration::from_secs(4);
        let operation = || if start.elapsed() < away { down() } else { up() };
        let (one, two) = tokio::join!(guard.run(operation), guard.run(operation));
        assert!(one.is_ok() && two.is_ok());
        assert!(start.elapsed() >= away);
        let hangs = AtomicUsize::new(3);
        let operation = || {
            let is_hanging =
                hangs.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if is_hanging.is_ok() { Box::pin(pending()) } else { up() }
        };
        assert!(guard.run(operation).await.is_ok());
    }

    /// SCL-63: no operation waits for a store that is known to be down. One attempt per 250 ms finds out when it is back.
    #[tokio::test(start_paused = true)]
    async fn operations_fail_at_once_while_the_store_is_down() {
        let guard = StoreGuard::new(StoreTiming::default());
        let start = Instant::now();
        assert!(matches!(guard.run(down).await, Err(StoreError::Unavailable(_))));
        assert_eq!(start.elapsed().as_secs(), 4, "the patience, but for the last pause");
        tokio::time::advance(Duration::from_secs(1)).await;
        let attempts = AtomicUsize::new(0);
        let counted = || {
            attempts.fetch_add(1, Ordering::SeqCst);
            down()
        };
        let start = Instant::now();
        for _ in 0..100 {
            assert!(guard.run(counted).await.is_err());
            assert!(start.elapsed() < Duration::from_secs(6));
        }
        assert!(attempts.load(Ordering::SeqCst) <= 2, "{attempts:?}");
        tokio::time::advance(PROBE).await;
        assert!(guard.run(up).await.is_ok());
        assert!(guard.run(up).await.is_ok(), "the first success closes the breaker");
    }

    /// Only an unavailable store is tried again; a panic is contained.
    #[tokio::test(start_paused = true)]
    async fn other_failures_are_not_repeated() {
        let guard = StoreGuard::new(StoreTiming::default());
        let attempts = AtomicUsize::new(0);
        let full = || -> Attempt {
            attempts.fetch_add(1, Ordering::SeqCst);
            Box::pin(ready(Err(StoreError::Full)))
        };
        assert!(matches!(guard.run(full).await, Err(StoreError::Full)));
        assert_eq!(attempts.load(Ordering::SeqCst), 1);
        let panics = || -> Attempt { panic!("a store that fails badly") };
        assert!(matches!(guard.run(panics).await, Err(StoreError::Failed(_))));
    }
}
