//! Who reads and who runs the handlers: tasks of one kind that take turns at both.
//!
//! A task per request would cost as much as the rest of the way together, and so would handing each request to another
//! thread. A runner takes the seat at the transport, reads one message, leaves the seat to whoever comes next, handles the
//! message itself, and looks again. One whose handler has to wait for something stays with it and is replaced. While
//! handlers are quick one runner does it all; when they compute, the watchdog has others added.

use std::collections::VecDeque;
use std::sync::{Arc, MutexGuard};

use tokio::task::{JoinHandle, coop};

use super::Connection;
use super::core::{Accepted, Job, Phase, Table};
use super::read::Intake;
use crate::dispatch::{Inbound, Lane, lock};

/// The runners of a connection and what there is for them to do.
#[derive(Default)]
pub(super) struct Crew {
    /// Those that do not wait with a handler of theirs: at least one while there is something to do.
    active: usize,
    seat: Seat,
    /// How often the seat was taken.
    turns: u64,
    /// Requests that have a handler's place, and notifications, that wait for a runner.
    ready: VecDeque<Job>,
}

/// The place of the one who reads.
#[derive(Default)]
enum Seat {
    Free(Intake),
    Taken,
    /// Nothing is read any more.
    #[default]
    Gone,
}

enum Work {
    Handle(Job),
    Read(Intake),
}

/// What a runner has just ended.
pub(super) enum Ended {
    Request(Lane),
    Notification,
}

impl Crew {
    fn take_work(&mut self, phase: Phase) -> Option<Work> {
        if let Some(job) = self.ready.pop_front() {
            return Some(Work::Handle(job));
        }
        if phase == Phase::Running && matches!(self.seat, Seat::Free(_)) {
            let taken = std::mem::replace(&mut self.seat, Seat::Taken);
            if let Seat::Free(intake) = taken {
                self.turns += 1;
                return Some(Work::Read(intake));
            }
        }
        None
    }

    fn has_work(&self) -> bool {
        !self.ready.is_empty() || matches!(self.seat, Seat::Free(_))
    }

    /// How often the seat was taken, if nobody has it now although there is something to read.
    pub(super) fn unattended(&self) -> Option<u64> {
        matches!(self.seat, Seat::Free(_)).then_some(self.turns)
    }

    /// Nothing is read any more. Gives out what is to be dropped outside the lock.
    pub(super) fn close_seat(&mut self) -> impl Sized + use<> {
        std::mem::take(&mut self.seat)
    }
}

impl<I: Inbound> Connection<I> {
    /// Begins to read.
    pub(super) fn open(self: &Arc<Self>, intake: Intake) {
        let mut table = lock(&self.core.table);
        table.crew.seat = Seat::Free(intake);
        self.provide_runner(table, 1);
    }

    /// Whoever has read a message leaves the seat to others while it is handled.
    pub(super) fn leave_seat(&self, intake: Intake) {
        let mut table = lock(&self.core.table);
        if table.phase == Phase::Running {
            table.crew.seat = Seat::Free(intake);
        }
    }

    /// Adds a runner whenever handlers take long, and writes what waits for them.
    ///
    /// There may be more than the runtime has threads: it makes others while handlers block in place.
    pub(super) async fn relieve(self: &Arc<Self>) {
        loop {
            self.core.slow.notified().await;
            self.core.outbox.flush();
            let table = lock(&self.core.table);
            let most = self.workers + self.core.options.limits.running;
            let wanted = (table.crew.active + 1).min(most);
            self.provide_runner(table, wanted);
        }
    }

    /// The handler at hand waits for something: its runner is no longer there for others.
    pub(super) fn suspend(self: &Arc<Self>) {
        let mut table = lock(&self.core.table);
        table.crew.active -= 1;
        // One to read, and one for what is ready: whoever reads may do so for long.
        let wanted = 1 + usize::from(!table.crew.ready.is_empty());
        self.provide_runner(table, wanted);
        self.core.outbox.flush();
    }

    /// The handler need not wait any longer.
    pub(super) fn resume(&self) {
        lock(&self.core.table).crew.active += 1;
    }

    /// Lets other runners take up a message while this one reads on.
    pub(super) fn make_ready(self: &Arc<Self>, job: Job) {
        let mut table = lock(&self.core.table);
        table.crew.ready.push_back(job);
        self.provide_runner(table, 2);
    }

    /// Runs a request that the reader waits for.
    pub(super) fn start_inline(self: &Arc<Self>, accepted: Accepted) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        lock(&self.core.table).crew.active += 1;
        self.tasks.spawn(async move {
            let ended = connection.handle(Job::Request(accepted)).await;
            let mut table = lock(&connection.core.table);
            connection.leave(&mut table, &ended);
            table.crew.active -= 1;
            connection.provide_runner(table, 2);
        })
    }

    /// Adds a runner if fewer than `wanted` are about and there is something to do.
    fn provide_runner(self: &Arc<Self>, mut table: MutexGuard<'_, Table>, wanted: usize) {
        if table.crew.active >= wanted || !table.crew.has_work() {
            return;
        }
        table.crew.active += 1;
        drop(table);
        self.tasks.spawn(Arc::clone(self).run());
    }

    async fn run(self: Arc<Self>) {
        let mut ended = None;
        while let Some(work) = self.next_work(ended.take()) {
            let job = match work {
                Work::Handle(job) => Some(job),
                Work::Read(intake) => self.read(intake).await,
            };
            if let Some(job) = job {
                ended = Some(self.handle(job).await);
                self.pause().await;
            }
        }
        self.core.outbox.flush();
    }

    /// Handlers that never wait must not keep this thread from everything else.
    async fn pause(&self) {
        if !coop::has_budget_remaining() {
            self.core.outbox.flush();
        }
        coop::consume_budget().await;
    }

    fn next_work(&self, ended: Option<Ended>) -> Option<Work> {
        let mut table = lock(&self.core.table);
        if let Some(ended) = ended {
            self.leave(&mut table, &ended);
        }
        let phase = table.phase;
        let work = table.crew.take_work(phase);
        if work.is_none() {
            table.crew.active -= 1;
        }
        work
    }

    /// Gives the place of what has ended to the next one that waits.
    fn leave(&self, table: &mut Table, ended: &Ended) {
        match ended {
            Ended::Notification => table.load.notifications -= 1,
            Ended::Request(Lane::Standing) => table.load.standing -= 1,
            Ended::Request(Lane::Ordinary | Lane::Inline) => {
                let was_full = table.load.running >= self.core.options.limits.running;
                table.load.running -= 1;
                if let Some(next) = table.unpark(&self.core) {
                    table.crew.ready.push_back(Job::Request(next));
                }
                if was_full {
                    self.core.room.notify_one();
                }
            }
        }
    }
}
