//! How long the caller of an own request waits.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::outbound::{CallOptions, ProgressCallback};
use crate::clock::CallClock;

/// The timeouts of a call, without its other options: a call that waits is kept small.
pub(crate) struct CallTimeout {
    total: Option<Duration>,
    idle: Option<Duration>,
    clock: Option<CallClock>,
    reports: Option<ProgressCallback>,
}

impl CallTimeout {
    pub(crate) fn of(options: CallOptions) -> Self {
        let CallOptions { timeout: total, idle_timeout: idle, clock, on_progress: reports, .. } = options;
        Self { total, idle, clock, reports }
    }

    /// Resolves with the timeout that has elapsed on the clock of the call; never, if there is none.
    pub(crate) async fn elapsed(&self) -> Duration {
        let Some(limit) = shorter(self.total, self.idle) else {
            return std::future::pending().await;
        };
        if let Some((idle, reports)) = self.idle.zip(self.reports.as_ref()) {
            // Boxed: few calls listen to progress.
            return Box::pin(self.extended(idle, reports)).await;
        }
        match &self.clock {
            Some(clock) => clock.run_for(limit).await,
            None => sleep(limit).await,
        }
        limit
    }

    /// As [`Self::elapsed`], where reports of progress extend the time.
    async fn extended(&self, idle: Duration, reports: &ProgressCallback) -> Duration {
        let (total, clock) = (self.total, self.clock.clone().unwrap_or_default());
        let (start, paused) = (Instant::now(), clock.paused());
        loop {
            let running = start.elapsed().saturating_sub(clock.paused().saturating_sub(paused));
            let left = total.map(|total| total.saturating_sub(running));
            let next = shorter(left, Some(idle)).unwrap_or(idle);
            tokio::select! {
                biased;
                () = clock.run_for(next) => return if left == Some(next) { total.unwrap_or(idle) } else { idle },
                () = reports.reported() => {}
            }
        }
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}
