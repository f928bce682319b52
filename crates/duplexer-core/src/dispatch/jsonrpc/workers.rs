//! Who reads and who runs the handlers: tasks of one kind that take turns at both.
//!
//! A task per request would cost as much as the rest of the way together, and so would handing each request to another
//! thread. A runner takes the reader at the transport, reads one message, leaves the reader to whoever comes next, handles the
//! message itself, and looks again. One whose handler has to wait for something stays with it and is replaced. While
//! handlers are quick one runner does it all; when they compute, the watchdog has others added.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use tokio::task::{JoinHandle, coop};

use super::Connection;
use super::read::FrameSource;
use super::shared::{Accepted, Job, Phase, Table};
use crate::dispatch::{Inbound, Lane, lock};

/// The runners of a connection and what there is for them to do.
#[derive(Default)]
pub(super) struct Workers {
    /// Those that do not wait with a handler of incoming: at least one while there is something to do.
    active: usize,
    reader: ReaderSlot,
    /// How often the reader was taken.
    turns: u64,
    /// Requests that have a handler's place, and notifications, that wait for a runner.
    ready: VecDeque<Job>,
}

/// The place of the one who reads.
#[derive(Default)]
enum ReaderSlot {
    Idle(FrameSource),
    Held,
    /// Nothing is read any more.
    #[default]
    Closed,
}

enum Work {
    Handle(Job),
    Read(FrameSource),
}

/// What a runner has just ended.
pub(super) enum Ended {
    Request(Lane),
    Notification,
}

impl Workers {
    fn take_work(&mut self, phase: Phase) -> Option<Work> {
        if let Some(job) = self.ready.pop_front() {
            return Some(Work::Handle(job));
        }
        if phase == Phase::Running && matches!(self.reader, ReaderSlot::Idle(_)) {
            let taken = std::mem::replace(&mut self.reader, ReaderSlot::Held);
            if let ReaderSlot::Idle(source) = taken {
                self.turns += 1;
                return Some(Work::Read(source));
            }
        }
        None
    }

    fn has_work(&self) -> bool {
        !self.ready.is_empty() || matches!(self.reader, ReaderSlot::Idle(_))
    }

    /// How often the reader was taken, if nobody has it now although there is something to read.
    pub(super) fn idle_reader_turn(&self) -> Option<u64> {
        matches!(self.reader, ReaderSlot::Idle(_)).then_some(self.turns)
    }

    /// Nothing is read any more. Gives out what is to be dropped outside the lock.
    pub(super) fn close_reader(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.reader)
    }
}

impl<I: Inbound> Connection<I> {
    /// Begins to read.
    pub(super) fn open(self: &Arc<Self>, source: FrameSource) {
        let mut table = lock(&self.shared.table);
        table.workers.reader = ReaderSlot::Idle(source);
        self.spawn_worker_if_needed(table, 1);
    }

    /// Whoever has read a message leaves the reader to others while it is handled.
    pub(super) fn release_reader(&self, source: FrameSource) {
        let mut table = lock(&self.shared.table);
        if table.phase == Phase::Running {
            table.workers.reader = ReaderSlot::Idle(source);
        }
    }

    /// Adds a runner whenever handlers take long, and writes what waits for them.
    ///
    /// There may be more than the runtime has threads: it makes others while handlers block in place.
    pub(super) async fn grow_on_stall(self: &Arc<Self>) {
        loop {
            self.shared.stalled.notified().await;
            self.shared.outbox.flush();
            let table = lock(&self.shared.table);
            let most = self.runtime_threads + self.shared.options.limits.running;
            let wanted = (table.workers.active + 1).min(most);
            self.spawn_worker_if_needed(table, wanted);
        }
    }

    /// The handler at hand waits for something: its runner is no longer there for others.
    pub(super) fn suspend(self: &Arc<Self>) {
        let mut table = lock(&self.shared.table);
        table.workers.active -= 1;
        // One to read, and one for what is ready: whoever reads may do so for long.
        let wanted = 1 + usize::from(!table.workers.ready.is_empty());
        self.spawn_worker_if_needed(table, wanted);
        self.shared.outbox.flush();
    }

    /// The handler need not wait any longer.
    pub(super) fn resume(&self) {
        lock(&self.shared.table).workers.active += 1;
    }

    /// Lets other runners take up a message while this one reads on.
    pub(super) fn make_ready(self: &Arc<Self>, job: Job) {
        let mut table = lock(&self.shared.table);
        table.workers.ready.push_back(job);
        self.spawn_worker_if_needed(table, 2);
    }

    /// Runs a request that the reader waits for.
    pub(super) fn start_inline(self: &Arc<Self>, accepted: Accepted) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        lock(&self.shared.table).workers.active += 1;
        self.tasks.spawn(async move {
            let ended = connection.handle(Job::Request(accepted)).await;
            let mut table = lock(&connection.shared.table);
            connection.leave(&mut table, &ended);
            table.workers.active -= 1;
            connection.spawn_worker_if_needed(table, 2);
        })
    }

    /// Adds a runner if fewer than `wanted` are about and there is something to do.
    fn spawn_worker_if_needed(self: &Arc<Self>, mut table: MutexGuard<'_, Table>, wanted: usize) {
        if table.workers.active >= wanted || !table.workers.has_work() {
            return;
        }
        table.workers.active += 1;
        drop(table);
        self.tasks.spawn(Arc::clone(self).run());
    }

    async fn run(self: Arc<Self>) {
        let mut ended = None;
        while let Some(work) = self.next_work(ended.take()) {
            let job = match work {
                Work::Handle(job) => Some(job),
                Work::Read(source) => self.read(source).await,
            };
            if let Some(job) = job {
                ended = Some(self.handle(job).await);
                self.pause().await;
            }
        }
        self.shared.outbox.flush();
    }

    /// Handlers that never wait must not keep this thread from everything else.
    async fn pause(&self) {
        if !coop::has_budget_remaining() {
            self.shared.outbox.flush();
        }
        coop::consume_budget().await;
    }

    fn next_work(&self, ended: Option<Ended>) -> Option<Work> {
        let mut table = lock(&self.shared.table);
        if let Some(ended) = ended {
            self.leave(&mut table, &ended);
        }
        let phase = table.phase;
        let work = table.workers.take_work(phase);
        if work.is_none() {
            table.workers.active -= 1;
        }
        work
    }

    /// Gives the place of what has ended to the next one that waits.
    fn leave(&self, table: &mut Table, ended: &Ended) {
        match ended {
            Ended::Notification => table.load.notifications -= 1,
            Ended::Request(Lane::Standing) => table.load.standing -= 1,
            Ended::Request(Lane::Ordinary | Lane::Inline) => {
                let was_full = table.load.running >= self.shared.options.limits.running;
                table.load.running -= 1;
                if let Some(next) = table.dequeue(&self.shared) {
                    table.workers.ready.push_back(Job::Request(next));
                }
                if was_full {
                    self.shared.room.notify_one();
                }
            }
        }
    }
}
