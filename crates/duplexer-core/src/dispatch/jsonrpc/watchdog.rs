//! Keeps the connection going while handlers compute without awaiting.
//!
//! A runner that is busy in a handler is the one that would have read on, and its thread may be the one that would
//! have waited for input. This thread notices that polls take long and wakes the connection's own task, which
//! makes another thread of the runtime run it, write what is queued, and provide another runner. It ticks only
//! while handlers are being polled and costs no wake-up per request.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use super::core::Core;
use crate::dispatch::lock;

const TICK: Duration = Duration::from_millis(2);
/// After this many ticks without a poll in progress the thread sleeps until there is one.
const IDLE_TICKS: u32 = 10;
/// When fewer polls end within a tick, what is waiting is worth another thread's while.
const QUICK_POLLS: u64 = 20;

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
    let (mut before, mut unattended) = (0, None);
    let mut idle = 0;
    loop {
        thread::park_timeout(TICK);
        let Some(core) = watched() else { return };
        let (started, ended) = core.pulse.counts();
        if started == ended {
            idle += 1;
            if idle >= IDLE_TICKS {
                core.pulse.sleep_until_there_is_a_poll();
                idle = 0;
            }
        } else {
            idle = 0;
            let now = lock(&core.table).crew.unattended();
            // Few polls have ended, or many of others while nobody came to read.
            if ended - before < QUICK_POLLS || (now.is_some() && now == unattended) {
                core.slow.notify_one();
            }
            unattended = now;
        }
        before = ended;
    }
}
