//! Leader/follower workers: the task that reads a request also runs its handler, on the same thread.
//!
//! One worker (the leader) holds the reader. It reads one message, releases the reader for another worker (a follower) and
//! runs the handler itself. That saves a spawn and a wake-up per request, which cost as much as the rest of the path. While
//! handlers are quick, one worker does everything. A worker whose handler waits is replaced, by an idle one if there is one;
//! the watchdog adds workers.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, MutexGuard};
use std::task::{Poll, Waker};

use tokio::task::{JoinHandle, coop};

use super::Connection;
use super::admission::{Accepted, Finished, Job};
use super::read::FrameSource;
use super::shared::Table;
use crate::dispatch::call_table::Phase;
use crate::dispatch::{Inbound, lock};

/// Maximum number of workers that are kept without work.
const MAX_IDLE: usize = 64;

/// The workers of a connection, and the work that is ready for them.
#[derive(Default)]
pub(super) struct Workers {
    /// Workers whose handler does not wait: at least one while there is work.
    active: usize,
    /// Workers without work, in the order of their numbers.
    idle: Vec<IdleWorker>,
    /// How often a worker became idle.
    idled: u64,
    reader: ReaderSlot,
    /// How often the reader was taken.
    turns: u64,
    /// Admitted requests, and notifications, that wait for a worker.
    ready: VecDeque<Job>,
}

/// The reader, which one worker holds at a time.
#[derive(Default)]
enum ReaderSlot {
    /// Free for the next worker.
    Idle(FrameSource),
    /// Held by a worker that reads.
    Held,
    /// Nothing is read any more.
    #[default]
    Closed,
}

enum Work {
    Handle(Job),
    Read(FrameSource),
}

/// A worker without work. It is taken out of the table when it is needed.
struct IdleWorker {
    number: u64,
    waker: Waker,
}

/// What becomes of a worker that had no work.
enum Standby {
    Needed,
    Superfluous,
}

impl Workers {
    /// Takes the next work. Ready messages take precedence over reading further ones.
    fn take_work(&mut self, phase: Phase) -> Option<Work> {
        if let Some(job) = self.ready.pop_front() {
            return Some(Work::Handle(job));
        }
        if phase == Phase::Running && matches!(self.reader, ReaderSlot::Idle(_)) {
            let slot = std::mem::replace(&mut self.reader, ReaderSlot::Held);
            if let ReaderSlot::Idle(source) = slot {
                self.turns += 1;
                return Some(Work::Read(source));
            }
        }
        None
    }

    fn has_work(&self) -> bool {
        !self.ready.is_empty() || matches!(self.reader, ReaderSlot::Idle(_))
    }

    pub(super) fn add_ready(&mut self, job: Job) {
        self.ready.push_back(job);
    }

    /// Returns how often the reader was taken, if no worker holds it although reading has not ended.
    pub(super) fn idle_reader_turn(&self) -> Option<u64> {
        matches!(self.reader, ReaderSlot::Idle(_)).then_some(self.turns)
    }

    /// Ends reading. Returns what is to be dropped outside the lock.
    pub(super) fn close_reader(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.reader)
    }

    /// Counts a suspended worker as active again.
    pub(super) fn resume(&mut self) {
        self.active += 1;
    }

    /// Makes all idle workers active. The caller wakes them.
    pub(super) fn activate_idle(&mut self) -> impl Iterator<Item = Waker> + use<> {
        let idle = std::mem::take(&mut self.idle);
        self.active += idle.len();
        idle.into_iter().map(|worker| worker.waker)
    }

    /// Polls an idle worker. `number` is its number among the idle ones, once it has one. What makes it active takes it out
    /// of the table, and counts it.
    fn poll_idle(&mut self, number: &mut Option<u64>, phase: Phase, waker: &Waker) -> Poll<Standby> {
        let Some(number) = *number else {
            if phase != Phase::Running || self.idle.len() >= MAX_IDLE {
                return Poll::Ready(Standby::Superfluous);
            }
            self.idled += 1;
            *number = Some(self.idled);
            self.idle.push(IdleWorker { number: self.idled, waker: waker.clone() });
            return Poll::Pending;
        };
        match self.idle.binary_search_by_key(&number, |worker| worker.number) {
            Ok(at) => {
                self.idle[at].waker.clone_from(waker);
                Poll::Pending
            }
            Err(_) => Poll::Ready(Standby::Needed),
        }
    }
}

impl Table {
    /// Releases the reader, if it is held, for another worker.
    pub(super) fn release_reader(&mut self, held: &mut Option<FrameSource>) {
        if self.calls.phase == Phase::Running
            && let Some(source) = held.take()
        {
            self.workers.reader = ReaderSlot::Idle(source);
        }
    }
}

impl<I: Inbound> Connection<I> {
    /// Starts to read, with one worker.
    pub(super) fn open(self: &Arc<Self>, source: FrameSource) {
        let mut table = lock(&self.shared.table);
        table.workers.reader = ReaderSlot::Idle(source);
        self.spawn_worker_if_needed(table, 1);
    }

    /// Releases the reader for another worker while this one handles the message it has read.
    pub(super) fn release_reader(&self, source: FrameSource) {
        // Dropped outside the lock if the connection ends.
        let mut held = Some(source);
        lock(&self.shared.table).release_reader(&mut held);
    }

    /// Adds a worker and flushes the outbox whenever the watchdog reports that handlers take long.
    ///
    /// There can be more workers than the runtime has threads: it starts others while handlers block in place.
    pub(super) async fn grow_on_stall(self: &Arc<Self>) {
        loop {
            self.shared.stalled.notified().await;
            self.shared.outbox.flush();
            let table = lock(&self.shared.table);
            let max = self.runtime_threads + self.shared.options.limits.running;
            let wanted = (table.workers.active + 1).min(max);
            self.spawn_worker_if_needed(table, wanted);
        }
    }

    /// Marks this worker as waiting: its handler is pending, so another worker takes over the rest.
    pub(super) fn suspend(self: &Arc<Self>) {
        let mut table = lock(&self.shared.table);
        table.workers.active -= 1;
        // One to read, and one for what is ready: the one that reads can wait for long.
        let wanted = 1 + usize::from(!table.workers.ready.is_empty());
        self.spawn_worker_if_needed(table, wanted);
    }

    /// Marks this worker as active again: its handler has ended.
    pub(super) fn resume(&self) {
        lock(&self.shared.table).workers.resume();
    }

    /// Hands a message to another worker while this one continues to read.
    pub(super) fn make_ready(self: &Arc<Self>, job: Job) {
        let mut table = lock(&self.shared.table);
        table.workers.add_ready(job);
        self.spawn_worker_if_needed(table, 2);
    }

    /// Runs a request that the reader waits for.
    pub(super) fn start_inline(self: &Arc<Self>, accepted: Accepted) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        lock(&self.shared.table).workers.active += 1;
        self.tasks.spawn(async move {
            let finished = connection.handle(Job::Request(accepted)).await;
            let mut table = lock(&connection.shared.table);
            connection.release(&mut table, &finished);
            table.workers.active -= 1;
            connection.spawn_worker_if_needed(table, 2);
        })
    }

    /// Adds a worker if fewer than `wanted` are active and there is work.
    fn spawn_worker_if_needed(self: &Arc<Self>, mut table: MutexGuard<'_, Table>, wanted: usize) {
        if table.workers.active >= wanted || !table.workers.has_work() {
            return;
        }
        table.workers.active += 1;
        // The memory of the last one is most likely still cached.
        let idle = table.workers.idle.pop();
        drop(table);
        if let Some(worker) = idle {
            worker.waker.wake();
            return;
        }
        self.tasks.spawn(Arc::clone(self).work());
    }

    /// The task of one worker: handles and reads in turn until it is not needed any more.
    async fn work(self: Arc<Self>) {
        let mut finished = None;
        loop {
            let job = match self.next_work(finished.take()) {
                Some(Work::Handle(job)) => Some(job),
                Some(Work::Read(source)) => self.read(source).await,
                None => {
                    self.shared.flush_before_waiting(0);
                    match self.wait_for_work().await {
                        Standby::Needed => continue,
                        Standby::Superfluous => return,
                    }
                }
            };
            if let Some(job) = job {
                finished = Some(self.handle(job).await);
                self.yield_if_out_of_budget().await;
            }
        }
    }

    /// Waits as an idle worker until there is work again. The task that wakes it has counted it as active.
    async fn wait_for_work(&self) -> Standby {
        let mut number = None;
        poll_fn(|cx| {
            let mut table = lock(&self.shared.table);
            let phase = table.calls.phase;
            table.workers.poll_idle(&mut number, phase, cx.waker())
        })
        .await
    }

    /// Yields to the runtime now and then: handlers that never wait must not starve other tasks of this thread.
    async fn yield_if_out_of_budget(&self) {
        if !coop::has_budget_remaining() {
            self.shared.outbox.flush();
        }
        coop::consume_budget().await;
    }

    /// Takes the next work, with one lock for the end of a message and the start of another.
    fn next_work(&self, finished: Option<Finished>) -> Option<Work> {
        let mut table = lock(&self.shared.table);
        if let Some(finished) = finished {
            self.release(&mut table, &finished);
        }
        let phase = table.calls.phase;
        let work = table.workers.take_work(phase);
        table.workers.active -= usize::from(work.is_none());
        work
    }
}
