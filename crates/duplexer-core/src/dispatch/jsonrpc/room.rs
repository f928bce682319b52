//! What a frame does to the tables, and whether there is room for another request.

use duplexer_types::jsonrpc::RequestId;

use bytestring::ByteString;

use super::Unreadable;
use super::core::{Accepted, Core, Table};
use crate::dispatch::contain::contain;
use crate::dispatch::own_call::Waiter;
use crate::dispatch::{Lane, lock, signals};
use crate::error::CallError;

impl Core {
    /// Waits while no further request could be taken in. While a call of ours is out it does not: its answer
    /// must be read, and requests that find no place are refused instead.
    pub(super) async fn wait_for_room(&self) {
        loop {
            // A permit is kept if something changes between the look and the wait.
            let room = self.room.notified();
            if self.can_read_on() {
                return;
            }
            self.outbox.flush();
            room.await;
        }
    }

    fn can_read_on(&self) -> bool {
        let table = lock(&self.table);
        !table.is_full(self) || !table.ours.is_empty()
    }

    pub(super) fn observe(&self, text: Option<&str>, reason: &dyn std::fmt::Display) {
        let Some(observer) = &self.options.observer else {
            tracing::debug!(%reason, "something that is not a frame was passed over");
            return;
        };
        if contain(|| observer(&Unreadable { text, reason })).is_err() {
            tracing::error!("the observer of unreadable frames panicked");
        }
    }

    pub(super) fn settle(&self, id: &RequestId, answer: Result<ByteString, CallError>) {
        let waiter = lock(&self.table).ours.settle(id);
        let Some(waiter) = waiter else {
            tracing::debug!(%id, "an answer nobody waits for is dropped");
            return;
        };
        waiter.settle(answer);
    }

    pub(super) fn cancel(&self, params: Option<&str>) {
        let Some(id) = signals::cancelled(params) else { return };
        let call = lock(&self.table).theirs.cancel(&id);
        if let Some(call) = call {
            call.call_off();
        }
    }

    pub(super) fn progress(&self, params: Option<&str>) {
        let Some((token, progress)) = signals::progress(params) else { return };
        let callback = lock(&self.table).ours.find(&token).and_then(Waiter::on_progress);
        if let Some(callback) = callback {
            callback.call(progress);
        }
    }
}

impl Table {
    fn is_full(&self, core: &Core) -> bool {
        let limits = &core.options.limits;
        self.load.running >= limits.running
            && (self.parked.len() >= limits.parked || self.load.parked_bytes >= limits.parked_bytes)
    }

    pub(super) fn has_place(&self, lane: Lane, core: &Core) -> bool {
        let limits = &core.options.limits;
        match lane {
            Lane::Standing => self.load.standing < limits.standing,
            Lane::Inline => true,
            Lane::Ordinary => !self.is_full(core) || self.takes_one_more(core),
        }
    }

    /// A request that was read although the park is full, because of a call that has ended meanwhile: it is
    /// taken in, and reading stops after it.
    fn takes_one_more(&self, core: &Core) -> bool {
        let limits = &core.options.limits;
        self.ours.is_empty()
            && self.parked.len() <= limits.parked
            && self.load.parked_bytes / 2 < limits.parked_bytes
    }

    /// Counts a request in: it is to be started now, or waits in the park.
    pub(super) fn admit(&mut self, accepted: Accepted, core: &Core) -> Option<Accepted> {
        match accepted.call.lane {
            Lane::Standing => self.load.standing += 1,
            Lane::Ordinary if self.load.running >= core.options.limits.running => {
                self.load.parked_bytes += accepted.invocation.text().len();
                self.parked.push_back(accepted);
                return None;
            }
            Lane::Ordinary | Lane::Inline => self.load.running += 1,
        }
        Some(accepted)
    }

    /// The next request from the park; it takes a handler's place.
    pub(super) fn unpark(&mut self, core: &Core) -> Option<Accepted> {
        // Inline methods may have taken a place beyond the limit.
        if self.load.running >= core.options.limits.running {
            return None;
        }
        let next = self.parked.pop_front()?;
        self.load.parked_bytes -= next.invocation.text().len();
        self.load.running += 1;
        Some(next)
    }
}
