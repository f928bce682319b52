//! What a frame does to the tables, and whether there is room for another request.

use duplexer_types::jsonrpc::RequestId;

use bytestring::ByteString;

use super::Unreadable;
use super::shared::{Accepted, Shared, Table};
use crate::dispatch::outgoing_call::PendingCall;
use crate::dispatch::panic::contain;
use crate::dispatch::{Lane, control_messages, lock};
use crate::error::CallError;

impl Shared {
    /// Waits while no further request could be taken in. While a call of outgoing is out it does not: its answer
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
        !table.is_full(self) || !table.outgoing.is_empty()
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
        let waiter = lock(&self.table).outgoing.settle(id);
        let Some(waiter) = waiter else {
            tracing::debug!(%id, "an answer nobody waits for is dropped");
            return;
        };
        waiter.settle(answer);
    }

    pub(super) fn cancel(&self, params: Option<&str>) {
        let Some(id) = control_messages::cancelled(params) else { return };
        let call = lock(&self.table).incoming.cancel(&id);
        if let Some(call) = call {
            call.cancel();
        }
    }

    pub(super) fn progress(&self, params: Option<&str>) {
        let Some((token, progress)) = control_messages::progress(params) else { return };
        let callback = lock(&self.table).outgoing.find(&token).and_then(PendingCall::on_progress);
        if let Some(callback) = callback {
            callback.call(progress);
        }
    }
}

impl Table {
    fn is_full(&self, shared: &Shared) -> bool {
        let limits = &shared.options.limits;
        self.load.running >= limits.running
            && (self.parked.len() >= limits.parked || self.load.parked_bytes >= limits.parked_bytes)
    }

    pub(super) fn can_admit(&self, lane: Lane, shared: &Shared) -> bool {
        let limits = &shared.options.limits;
        match lane {
            Lane::Standing => self.load.standing < limits.standing,
            Lane::Inline => true,
            Lane::Ordinary => !self.is_full(shared) || self.admits_overflow(shared),
        }
    }

    /// A request that was read although the park is full, because of a call that has ended meanwhile: it is
    /// taken in, and reading stops after it.
    fn admits_overflow(&self, shared: &Shared) -> bool {
        let limits = &shared.options.limits;
        self.outgoing.is_empty()
            && self.parked.len() <= limits.parked
            && self.load.parked_bytes / 2 < limits.parked_bytes
    }

    /// Counts a request in: it is to be started now, or waits in the park.
    pub(super) fn admit(&mut self, accepted: Accepted, shared: &Shared) -> Option<Accepted> {
        match accepted.call.lane {
            Lane::Standing => self.load.standing += 1,
            Lane::Ordinary if self.load.running >= shared.options.limits.running => {
                self.load.parked_bytes += accepted.invocation.text().len();
                self.parked.push_back(accepted);
                return None;
            }
            Lane::Ordinary | Lane::Inline => self.load.running += 1,
        }
        Some(accepted)
    }

    /// The next request from the park; it takes a handler's place.
    pub(super) fn dequeue(&mut self, shared: &Shared) -> Option<Accepted> {
        // Inline methods may have taken a place beyond the limit.
        if self.load.running >= shared.options.limits.running {
            return None;
        }
        let next = self.parked.pop_front()?;
        self.load.parked_bytes -= next.invocation.text().len();
        self.load.running += 1;
        Some(next)
    }
}
