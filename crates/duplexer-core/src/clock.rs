//! A timeout clock that can be paused while a person is busy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// Clock of a call's timeout. It is paused while a pause is held. Clones share the clock.
///
/// ```
/// use duplexer_core::dispatch::{CallClock, CallOptions};
///
/// let clock = CallClock::new();
/// let options = CallOptions::new().clock(clock.clone());
/// let pause = clock.pause();
/// // A person is asked. The timeout of the call does not run.
/// drop(pause);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CallClock(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    pauses: Mutex<Pauses>,
    /// Notified at the end of a pause.
    resumed: Notify,
}

#[derive(Debug, Default)]
struct Pauses {
    held: usize,
    /// Start of the current pause.
    since: Option<Instant>,
    /// Total length of all earlier pauses.
    total: Duration,
}

impl Shared {
    fn pauses(&self) -> MutexGuard<'_, Pauses> {
        self.pauses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallClock {
    /// Creates a clock that runs.
    pub fn new() -> Self {
        Self::default()
    }

    /// Pauses the clock until the guard is dropped. Pauses nest.
    pub fn pause(&self) -> ClockPause {
        let mut pauses = self.0.pauses();
        pauses.held += 1;
        pauses.since.get_or_insert_with(Instant::now);
        drop(pauses);
        ClockPause(Arc::clone(&self.0))
    }

    /// Returns how long the clock has been paused in total.
    pub(crate) fn paused(&self) -> Duration {
        let pauses = self.0.pauses();
        pauses.total + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// Resolves when the clock has run for `duration`. Time during which it is paused does not count.
    pub async fn run_for(&self, duration: Duration) {
        let (start, paused) = (Instant::now(), self.paused());
        let mut left = duration;
        // Pauses are added up afterwards: most calls end before their timeout, and wait for nothing but a timer.
        while !left.is_zero() {
            sleep(left).await;
            // Boxed: few calls take so long.
            Box::pin(self.running()).await;
            let run = start.elapsed().saturating_sub(self.paused().saturating_sub(paused));
            left = duration.saturating_sub(run);
        }
    }

    /// Waits until no pause is held.
    async fn running(&self) {
        loop {
            let resumed = self.0.resumed.notified();
            tokio::pin!(resumed);
            resumed.as_mut().enable();
            if self.0.pauses().held == 0 {
                return;
            }
            resumed.await;
        }
    }
}

/// Guard that pauses a [`CallClock`].
#[derive(Debug)]
pub struct ClockPause(Arc<Shared>);

impl Drop for ClockPause {
    fn drop(&mut self) {
        let mut pauses = self.0.pauses();
        pauses.held = pauses.held.saturating_sub(1);
        if pauses.held == 0
            && let Some(since) = pauses.since.take()
        {
            pauses.total += since.elapsed();
        }
        drop(pauses);
        self.0.resumed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// DISP-08: time in a pause is not charged, and pauses nest.
    #[tokio::test(start_paused = true)]
    async fn a_paused_clock_does_not_run() {
        let clock = CallClock::new();
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let waits = {
            let clock = clock.clone();
            async move {
                sleep(second / 2).await;
                let outer = clock.pause();
                let inner = clock.pause();
                sleep(second * 10).await;
                drop(inner);
                sleep(second * 10).await;
                drop(outer);
            }
        };
        tokio::join!(clock.run_for(second), waits);
        assert_eq!(start.elapsed(), second * 21);
    }
}
