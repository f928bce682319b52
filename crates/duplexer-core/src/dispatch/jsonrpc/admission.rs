//! Admission: which request runs at once, which is queued, which is refused, and when reading stops.
//!
//! Requests beyond the limit of running handlers wait in a queue bounded by count and bytes. When it is full the reader
//! stops, so that the peer feels back-pressure. Notifications beyond their limit are dropped.

use std::collections::VecDeque;
use std::sync::Arc;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::RequestId;

use super::read::{AfterFrame, FrameSource, error_response};
use super::shared::{Call, NotificationChannel, Shared, Table};
use super::{Connection, DispatchLimits};
use crate::dispatch::call_table::LockedCalls;
use crate::dispatch::panic::catch_unwind;
use crate::dispatch::{CallContext, Cancellation, Inbound, Message, NotificationRoute, Schedule, lock};
use crate::transport::{OnUnanswered, TransportContext};

/// How much of the limits is in use, and the requests that wait for a running one to end.
#[derive(Default)]
pub(super) struct Capacity {
    running: usize,
    long_lived: usize,
    notifications: usize,
    dropped_notifications: u64,
    queued: VecDeque<Accepted>,
    queued_bytes: usize,
}

/// A message of the peer for a worker.
pub(super) enum Job {
    Request(Accepted),
    Notification(CallContext, Arc<Message>),
}

/// A request of the peer that has been accepted.
pub(super) struct Accepted {
    pub(super) call: Arc<Call>,
    pub(super) cx: CallContext,
    pub(super) message: Arc<Message>,
    pub(super) unanswered: Option<OnUnanswered>,
}

/// What a worker has just finished.
pub(super) enum Finished {
    Request(Schedule),
    Notification,
}

impl<I: Inbound> Connection<I> {
    /// Asks the layer above how a request is run.
    pub(super) fn schedule(&self, call: &Message) -> Schedule {
        catch_unwind(|| self.inbound.schedule(call)).unwrap_or(Schedule::Concurrent)
    }

    /// Accepts a request: it runs at once, is queued, or is answered with an error. If it runs at once, `held` is released for another
    /// worker.
    pub(super) fn admit_request(
        self: &Arc<Self>,
        id: RequestId,
        message: Message,
        context: Option<Arc<TransportContext>>,
        unanswered: Option<OnUnanswered>,
        held: &mut Option<FrameSource>,
    ) -> AfterFrame {
        let Some(transport) = context else {
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "transport context unavailable");
            return error_response(Some(&id), &error);
        };
        let schedule = self.schedule(&message);
        let limits = &self.shared.options.limits;
        let mut table = lock(&self.shared.table);
        if !table.can_admit(schedule, limits) {
            drop(table);
            let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, "Too many requests in flight");
            return error_response(Some(&id), &error);
        }
        let accepted = table.calls.incoming.accept(id.clone(), |generation| {
            Arc::new(Call::new(&self.shared, id.clone(), generation, schedule, transport.back_channel))
        });
        let Ok(call) = accepted.map(Arc::clone) else {
            drop(table);
            return error_response(Some(&id), &ErrorObject::id_in_flight(&id));
        };
        let cx = CallContext::new(Some(id), transport, Arc::clone(&call) as _);
        let accepted = Accepted { call, cx, message: Arc::new(message), unanswered };
        match table.capacity.admit(accepted, limits) {
            Some(accepted) if schedule == Schedule::Inline => {
                drop(table);
                AfterFrame::AwaitInline(self.start_inline(accepted))
            }
            Some(accepted) => {
                table.release_reader(held);
                AfterFrame::Run(Job::Request(accepted))
            }
            None => AfterFrame::Backpressure,
        }
    }

    /// Applies a notification to the call table, and hands it to its handler within the limit.
    pub(super) fn admit_notification(
        &self,
        call: Message,
        context: Option<Arc<TransportContext>>,
    ) -> AfterFrame {
        self.shared.observe(&call);
        if matches!(catch_unwind(|| self.inbound.on_notification_read(&call)), Ok(NotificationRoute::Consume))
        {
            return AfterFrame::Continue;
        }
        let Some(transport) = context else { return AfterFrame::Continue };
        if !lock(&self.shared.table).capacity.admit_notification(&self.shared.options.limits) {
            return AfterFrame::Continue;
        }
        let (shared, back_channel) = (Arc::clone(&self.shared), transport.back_channel);
        let channel = NotificationChannel { shared, back_channel, never: Cancellation::new() };
        let cx = CallContext::new(None, transport, Arc::new(channel));
        AfterFrame::Run(Job::Notification(cx, Arc::new(call)))
    }

    /// Releases the capacity of a finished message, and makes the next queued request ready.
    pub(super) fn release(&self, table: &mut Table, finished: &Finished) {
        let (limits, capacity) = (&self.shared.options.limits, &mut table.capacity);
        match finished {
            Finished::Notification => capacity.notifications -= 1,
            Finished::Request(Schedule::LongLived) => capacity.long_lived -= 1,
            Finished::Request(Schedule::Concurrent | Schedule::Inline) => {
                let was_full = capacity.running >= limits.running;
                capacity.running -= 1;
                if let Some(next) = capacity.dequeue(limits) {
                    table.workers.add_ready(Job::Request(next));
                }
                if was_full {
                    self.shared.capacity_freed.notify_one();
                }
            }
        }
    }
}

impl Shared {
    /// Waits while no further request could be admitted. With a call of ours outstanding it does not wait: the response
    /// must be read, and requests that do not fit are refused instead.
    pub(super) async fn wait_for_capacity(&self) {
        loop {
            // `Notify` keeps a permit if capacity is freed between the check and the wait.
            let freed = self.capacity_freed.notified();
            if self.can_read_on() {
                return;
            }
            self.outbox.flush();
            freed.await;
        }
    }

    fn can_read_on(&self) -> bool {
        let table = lock(&self.table);
        !table.capacity.is_full(&self.options.limits) || !table.calls.outgoing.is_empty()
    }
}

impl Table {
    fn can_admit(&self, schedule: Schedule, limits: &DispatchLimits) -> bool {
        match schedule {
            Schedule::LongLived => self.capacity.long_lived < limits.long_lived,
            Schedule::Inline => true,
            Schedule::Concurrent => !self.capacity.is_full(limits) || self.admits_overflow(limits),
        }
    }

    /// A request that was read although the queue is full, because of a call of ours that has ended meanwhile: it is
    /// admitted, and reading stops after it.
    fn admits_overflow(&self, limits: &DispatchLimits) -> bool {
        self.calls.outgoing.is_empty()
            && self.capacity.queued.len() <= limits.queued
            && self.capacity.queued_bytes / 2 < limits.queued_bytes
    }
}

impl Capacity {
    /// Returns the number of requests whose handler runs, without long-lived ones.
    pub(super) fn running(&self) -> usize {
        self.running
    }

    fn is_full(&self, limits: &DispatchLimits) -> bool {
        self.running >= limits.running
            && (self.queued.len() >= limits.queued || self.queued_bytes >= limits.queued_bytes)
    }

    /// Counts a request. Returns it if it is to be started now; otherwise it is queued.
    fn admit(&mut self, accepted: Accepted, limits: &DispatchLimits) -> Option<Accepted> {
        match accepted.call.schedule {
            Schedule::LongLived => self.long_lived += 1,
            Schedule::Concurrent if self.running >= limits.running => {
                self.queued_bytes += accepted.message.text().len();
                self.queued.push_back(accepted);
                return None;
            }
            Schedule::Concurrent | Schedule::Inline => self.running += 1,
        }
        Some(accepted)
    }

    /// Takes the next request from the queue and counts it as running.
    fn dequeue(&mut self, limits: &DispatchLimits) -> Option<Accepted> {
        // Inline methods can exceed the limit.
        if self.running >= limits.running {
            return None;
        }
        let next = self.queued.pop_front()?;
        self.queued_bytes -= next.message.text().len();
        self.running += 1;
        Some(next)
    }

    /// Counts a notification, unless too many are being handled.
    fn admit_notification(&mut self, limits: &DispatchLimits) -> bool {
        if self.notifications < limits.notifications {
            self.notifications += 1;
            return true;
        }
        self.dropped_notifications += 1;
        // Ever more rarely: the peer must not decide how much is logged.
        if self.dropped_notifications.is_power_of_two() {
            tracing::warn!(dropped = self.dropped_notifications, "too many notifications are being handled");
        }
        false
    }

    /// Empties the queue at the end of the connection.
    pub(super) fn clear_queue(&mut self) -> VecDeque<Accepted> {
        self.queued_bytes = 0;
        std::mem::take(&mut self.queued)
    }
}
