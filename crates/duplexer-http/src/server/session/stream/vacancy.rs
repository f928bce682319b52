//! How long a stream has been without a reader.

use std::time::Duration;

use tokio::time::Instant;

use crate::server::event_queue::QueueState;

/// How long a stream has been without a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Vacancy {
    /// It has a reader, or has not had one yet.
    #[default]
    None,
    Since(Instant),
    /// For so long that its call has been cancelled.
    Abandoned,
}

impl Vacancy {
    /// Starts the vacancy of a stream whose reader has left. Once the response is known, no call waits for another.
    pub(super) fn begin(&mut self, response: QueueState) {
        if response == QueueState::Open {
            *self = Self::Since(Instant::now());
        }
    }

    /// Returns the time at which the stream counts as abandoned; `None` if it does now.
    pub(super) fn due(&mut self, limit: Duration) -> Option<Instant> {
        let now = Instant::now();
        match *self {
            Self::Abandoned => None,
            Self::Since(since) if now.duration_since(since) >= limit => {
                *self = Self::Abandoned;
                None
            }
            Self::Since(since) => Some(since + limit),
            Self::None => Some(now + limit),
        }
    }
}
