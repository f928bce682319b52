//! Keeps the connection alive while a handler computes without awaiting.
//!
//! A runtime thread that is busy in a handler may be the one that would have waited for input, and none of the
//! others knows. This thread notices that a poll does not end and wakes the connection's own task, which
//! makes another thread of the runtime run it, write what is queued, and wait for input. It ticks only while
//! handlers are being polled and costs no wake-up per request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::core::Core;

const TICK: Duration = Duration::from_millis(5);
/// After this many ticks without a poll in progress the thread sleeps until there is one.
const IDLE_TICKS: u32 = 20;

/// Owns the thread: it ends when this is dropped.
pub(super) struct Watchdog {
    stopped: Arc<AtomicBool>,
    thread: Thread,
}

impl Watchdog {
    /// Starts the thread, where there is more than one runtime thread to wake.
    pub(super) fn start(core: &Arc<Core>) -> Option<Self> {
        if Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
            return None;
        }
        let stopped = Arc::new(AtomicBool::new(false));
        let watch = {
            let (core, stopped) = (Arc::downgrade(core), Arc::clone(&stopped));
            move || watch(&core, &stopped)
        };
        let spawned = thread::Builder::new().name("duplexer-watchdog".into()).spawn(watch);
        match spawned {
            Ok(handle) => Some(Self { stopped, thread: handle.thread().clone() }),
            Err(error) => {
                tracing::warn!(%error, "no watchdog: a handler that computes without awaiting may delay others");
                None
            }
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

fn watch(core: &Weak<Core>, stopped: &AtomicBool) {
    let watched = || core.upgrade().filter(|_| !stopped.load(Ordering::Acquire));
    if let Some(core) = watched() {
        core.pulse.watched_by_this_thread();
    }
    let mut last = (0, 0);
    let mut idle = 0;
    loop {
        thread::park_timeout(TICK);
        let Some(core) = watched() else { return };
        let now = core.pulse.counts();
        if now.0 == now.1 {
            idle += 1;
            if idle >= IDLE_TICKS {
                core.pulse.sleep_until_there_is_a_poll();
                idle = 0;
            }
        } else {
            idle = 0;
            if now == last {
                core.outbox.wake_writer();
            }
        }
        last = now;
    }
}
