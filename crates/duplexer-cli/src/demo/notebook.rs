//! What the demo's handlers share: made when the server starts, put away when it ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer::prelude::BoxError;
use duplexer::server::subscriptions::{Event, MemoryBus};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::resources::CLOCK;

/// How many notes there may be.
const ROOM: usize = 100;
/// How often the clock changes.
const TICK: Duration = Duration::from_secs(1);

/// The number of notes taken, and a clock that tells its subscribers whenever it has moved on.
pub(super) struct Notebook {
    opened: Instant,
    notes: AtomicUsize,
    /// Ends when the notebook is put away.
    _ticking: JoinSet<()>,
}

impl Notebook {
    #[expect(clippy::unused_async, reason = "a lifespan is async, for those who open more than a notebook")]
    pub(super) async fn open(bus: MemoryBus) -> Result<Self, BoxError> {
        let mut ticking = JoinSet::new();
        ticking.spawn(async move {
            let mut ticks = interval(TICK);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
            loop {
                ticks.tick().await;
                bus.tell(&Event::resource_updated(CLOCK));
            }
        });
        Ok(Self { opened: Instant::now(), notes: AtomicUsize::new(0), _ticking: ticking })
    }

    /// How long the server has been there, in seconds.
    pub(super) fn age(&self) -> u64 {
        self.opened.elapsed().as_secs()
    }

    /// The number of a new note, if there is room for it.
    pub(super) fn next_note(&self) -> Option<usize> {
        let room = |taken: usize| (taken < ROOM).then_some(taken + 1);
        self.notes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, room).ok().map(|before| before + 1)
    }
}
