//! Shared state of the demo's handlers: created when the server starts, dropped when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer::prelude::BoxError;
use duplexer::server::subscriptions::{Event, SubscriptionBus};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::resources::CLOCK;

/// Maximum number of notes.
const ROOM: usize = 100;
/// Interval of the clock.
const TICK: Duration = Duration::from_secs(1);

/// Counter of notes, and a clock that notifies its subscribers of every tick.
pub(super) struct Notebook {
    opened: Instant,
    notes: AtomicUsize,
    /// Aborted when the notebook is dropped.
    _ticking: JoinSet<()>,
}

impl Notebook {
    #[expect(clippy::unused_async, reason = "a lifespan is async, for those who open more than a notebook")]
    pub(super) async fn open(bus: Arc<dyn SubscriptionBus>) -> Result<Self, BoxError> {
        let mut ticking = JoinSet::new();
        ticking.spawn(async move {
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                // A tick that cannot be published is followed by another one.
                let _ = bus.publish(Event::resource_updated(CLOCK)).await;
            }
        });
        Ok(Self { opened: Instant::now(), notes: AtomicUsize::new(0), _ticking: ticking })
    }

    /// Returns the uptime in seconds.
    pub(super) fn age(&self) -> u64 {
        self.opened.elapsed().as_secs()
    }

    /// Returns the number of a new note, unless the limit is reached.
    pub(super) fn next_note(&self) -> Option<usize> {
        let room = |taken: usize| (taken < ROOM).then_some(taken + 1);
        self.notes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room).ok().map(|before| before + 1)
    }
}
