//! Who runs the handlers: tasks that take one accepted request after the other.
//!
//! A task per request would cost as much as the rest of the way together. A runner that has ended one request
//! takes the next that is ready; one whose handler has to wait for something stays with it and is replaced. As
//! long as requests are ready there is a runner in the runtime's queue for every thread that could take one,
//! so a handler that computes without awaiting holds up nobody but its own thread.

use std::sync::{Arc, MutexGuard};

use tokio::task::{JoinHandle, coop};

use super::Connection;
use super::core::{Accepted, Table};
use crate::dispatch::{Inbound, Lane, lock};

impl<I: Inbound> Connection<I> {
    /// Hands an accepted request to the runners.
    pub(super) fn start(self: &Arc<Self>, mut table: MutexGuard<'_, Table>, accepted: Accepted) {
        self.make_ready(&mut table, accepted);
        self.provide_runners(table);
    }

    /// Runs a request that the read loop waits for.
    pub(super) fn start_inline(self: &Arc<Self>, accepted: Accepted) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        self.core.outbox.hold();
        self.tasks.spawn(async move {
            let lane = accepted.call.lane;
            connection.handle(accepted).await;
            let mut table = lock(&connection.core.table);
            connection.leave(&mut table, lane);
            connection.provide_runners(table);
        })
    }

    /// The handler at hand waits for something: its runner is no longer there for others.
    pub(super) fn suspend(self: &Arc<Self>) {
        self.provide_runners(lock(&self.core.table));
    }

    fn make_ready(&self, table: &mut Table, accepted: Accepted) {
        self.core.outbox.hold();
        table.ready.push_back(accepted);
    }

    fn provide_runners(self: &Arc<Self>, mut table: MutexGuard<'_, Table>) {
        let missing = table.ready.len().min(self.workers).saturating_sub(table.spare_runners);
        table.spare_runners += missing;
        drop(table);
        for _ in 0..missing {
            self.tasks.spawn(Arc::clone(self).run_handlers());
        }
    }

    async fn run_handlers(self: Arc<Self>) {
        let mut next = self.first();
        while let Some(accepted) = next {
            let lane = accepted.call.lane;
            self.handle(accepted).await;
            // Handlers that never wait must not keep this thread from everything else.
            coop::consume_budget().await;
            next = self.next(lane);
        }
    }

    fn first(&self) -> Option<Accepted> {
        let mut table = lock(&self.core.table);
        table.spare_runners -= 1;
        table.ready.pop_front()
    }

    fn next(&self, ended: Lane) -> Option<Accepted> {
        let mut table = lock(&self.core.table);
        self.leave(&mut table, ended);
        table.ready.pop_front()
    }

    /// Gives the place of an ended request to the next one that waits.
    fn leave(&self, table: &mut Table, lane: Lane) {
        match lane {
            Lane::Standing => table.load.standing -= 1,
            Lane::Ordinary | Lane::Inline => {
                let was_full = table.load.running >= self.core.options.limits.running;
                table.load.running -= 1;
                if let Some(next) = table.unpark(&self.core) {
                    self.make_ready(table, next);
                }
                if was_full {
                    self.core.room.notify_one();
                }
            }
        }
    }
}
