//! Process-wide watchdog: keeps connections going while handlers compute without awaiting.
//!
//! A busy worker is the one that would have read on, and its thread may hold the runtime's I/O driver. One thread for all
//! connections notices polls that take long and wakes the connection's task, so that another runtime thread writes what is
//! queued and adds a worker. It ticks only while handlers are being polled, and costs no wake-up per request.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Weak;
use std::time::Duration;

use crate::dispatch::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Thread, lock, thread};

/// Interval between two checks.
const TICK: Duration = Duration::from_millis(2);
/// Number of ticks without a poll in progress after which a connection is no longer watched.
const IDLE_TICKS: u32 = 10;
/// Minimum number of polls that end within a tick on a connection that needs no further worker.
const QUICK_POLLS: u64 = 20;

/// A connection, as the watchdog sees it.
pub(crate) trait Watched: Send + Sync {
    /// Returns the counter of the connection's handler polls.
    fn polls(&self) -> &PollCounter;

    /// Returns how often the reader was taken so far, if no worker holds it although there is input to read.
    fn idle_reader_turn(&self) -> Option<u64>;

    /// Wakes the connection's task, because its handlers take long.
    fn stalled(&self);
}

/// Counts the handler polls of one connection, and has it watched while there are any.
#[derive(Debug, Default)]
pub(crate) struct PollCounter {
    started: AtomicU64,
    ended: AtomicU64,
    watched: AtomicBool,
}

impl PollCounter {
    /// Runs one poll of a handler and counts it. Calls `watch` first if the connection is not watched.
    pub(crate) fn track<R>(&self, watch: impl FnOnce(), poll: impl FnOnce() -> R) -> R {
        // `release` uses the same total order: either this thread sees the flag cleared, or `release` sees the poll.
        self.started.fetch_add(1, Ordering::SeqCst);
        if !self.watched.load(Ordering::SeqCst) && !self.watched.swap(true, Ordering::SeqCst) {
            watch();
        }
        let result = poll();
        self.ended.fetch_add(1, Ordering::Release);
        result
    }

    /// Returns how many polls were started and how many have ended; never more ended than started.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let ended = self.ended.load(Ordering::Acquire);
        (self.started.load(Ordering::SeqCst), ended)
    }

    /// Ends the watch, unless a poll has started that relies on it. Returns whether the watch has ended.
    pub(crate) fn release(&self) -> bool {
        self.watched.store(false, Ordering::SeqCst);
        let (started, ended) = self.counts();
        // If the flag is set again, the poll has registered the connection anew.
        started == ended || self.watched.swap(true, Ordering::SeqCst)
    }
}

/// The watchdog. Its thread starts with the first connection that registers, and never ends.
#[derive(Default)]
pub(crate) struct Watchdog {
    registry: Mutex<Registry>,
}

#[derive(Default)]
struct Registry {
    /// Connections that the thread has not taken over yet.
    new: Vec<Weak<dyn Watched>>,
    thread: WatchdogThread,
    /// The thread is parked, or about to park, until a connection registers.
    is_parked: bool,
}

#[derive(Default)]
enum WatchdogThread {
    #[default]
    NotStarted,
    /// The program starts it soon.
    Announced,
    Running(Thread),
}

impl Registry {
    fn ensure_thread(&mut self, start: impl FnOnce() -> io::Result<Thread>) -> io::Result<()> {
        if matches!(self.thread, WatchdogThread::NotStarted) {
            self.thread = WatchdogThread::Running(start()?);
        }
        Ok(())
    }
}

/// A watched connection and what the thread saw of it at the last tick.
///
/// It is dropped when the connection has ended or is idle, so there are never more than there are connections.
pub(crate) struct Entry {
    connection: Weak<dyn Watched>,
    ended: u64,
    reader_turn: Option<u64>,
    idle_ticks: u32,
}

impl Watchdog {
    /// Watches a connection until it ends or is idle. Calls `start` if there is no thread yet.
    pub(crate) fn watch(&self, connection: Weak<dyn Watched>, start: impl FnOnce() -> io::Result<Thread>) {
        let mut registry = lock(&self.registry);
        if let Err(error) = registry.ensure_thread(start) {
            tracing::warn!(%error, "no watchdog: a handler that computes without awaiting may delay others");
            return;
        }
        registry.new.push(connection);
        // A thread that ticks is not woken: an early check would take a short tick for stalled handlers.
        if std::mem::take(&mut registry.is_parked)
            && let WatchdogThread::Running(thread) = &registry.thread
        {
            thread.unpark();
        }
    }

    /// Announces that [`Self::prepare`] will start the thread soon, so that the first handler does not.
    pub(crate) fn announce(&self) {
        let mut registry = lock(&self.registry);
        if matches!(registry.thread, WatchdogThread::NotStarted) {
            registry.thread = WatchdogThread::Announced;
        }
    }

    /// Starts the thread, unless it runs.
    pub(crate) fn prepare(&'static self) {
        self.withdraw();
        // If it fails, the next handler tries again and reports it.
        let _ = lock(&self.registry).ensure_thread(|| self.start());
    }

    /// Withdraws an announcement: the next handler starts the thread.
    pub(crate) fn withdraw(&self) {
        let mut registry = lock(&self.registry);
        if matches!(registry.thread, WatchdogThread::Announced) {
            registry.thread = WatchdogThread::NotStarted;
        }
    }

    /// Starts the thread.
    pub(crate) fn start(&'static self) -> io::Result<Thread> {
        let spawned = thread::Builder::new().name("duplexer-watchdog".into()).spawn(|| self.run());
        spawned.map(|handle| handle.thread().clone())
    }

    fn run(&self) {
        let mut entries = Vec::new();
        loop {
            if self.collect(&mut entries) {
                thread::park();
                continue;
            }
            thread::park_timeout(TICK);
            // The last reference to a connection may be dropped here, and with it values of the program that panic.
            // The entry of such a connection is removed at the next tick.
            let _ = catch_unwind(AssertUnwindSafe(|| entries.retain_mut(Entry::check)));
        }
    }

    /// Takes over the connections that have registered. Returns whether there are none to watch, so that the thread can
    /// park: the next registration unparks it.
    pub(crate) fn collect(&self, entries: &mut Vec<Entry>) -> bool {
        let mut registry = lock(&self.registry);
        let new = std::mem::take(&mut registry.new);
        registry.is_parked = entries.is_empty() && new.is_empty();
        let is_parked = registry.is_parked;
        drop(registry);
        entries.extend(new.into_iter().map(Entry::new));
        is_parked
    }
}

impl Entry {
    fn new(connection: Weak<dyn Watched>) -> Self {
        let ended = connection.upgrade().map_or(0, |connection| connection.polls().counts().1);
        Self { connection, ended, reader_turn: None, idle_ticks: 0 }
    }

    /// Checks a connection after a tick. Returns whether it is still to be watched.
    pub(crate) fn check(&mut self) -> bool {
        let Some(connection) = self.connection.upgrade() else { return false };
        let (started, ended) = connection.polls().counts();
        let ended_in_tick = ended - std::mem::replace(&mut self.ended, ended);
        if started == ended {
            self.idle_ticks += 1;
            return self.idle_ticks < IDLE_TICKS || !connection.polls().release();
        }
        self.idle_ticks = 0;
        let turn = connection.idle_reader_turn();
        // Few polls have ended, or many of other requests while no worker came to read.
        if ended_in_tick < QUICK_POLLS || (turn.is_some() && turn == self.reader_turn) {
            connection.stalled();
        }
        self.reader_turn = turn;
        true
    }
}
