//! State that the tasks of one connection share, and the channels that handlers send through.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use bytestring::ByteString;
use duplexer_types::jsonrpc::{Body, RequestId};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Notify;

use super::admission::Capacity;
use super::watchdog::{PollCounter, Watchdog, Watched};
use super::workers::Workers;
use super::{DispatchOptions, FailureMode, Unreadable};
use crate::dispatch::call_table::{Calls, Cancellable, LockedCalls, Phase};
use crate::dispatch::context::{Cancellation, Channel, Latch};
use crate::dispatch::in_flight::Generation;
use crate::dispatch::outbound::{BoxFuture, NotifyFuture, Outbound, OutboundRequest};
use crate::dispatch::outbox::Outbox;
use crate::dispatch::panic::catch_unwind;
use crate::dispatch::{Schedule, lock};
use crate::error::{CallError, McpError};
use crate::transport::{BackChannel, FrameWriter};

/// Watches the connections of this process.
static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(Watchdog::default);

/// The promise to start what watches handlers that compute without awaiting, within milliseconds. Without it, the first
/// handler starts that, and waits for its thread.
#[doc(hidden)]
#[derive(Debug)]
pub struct AnnouncedWatchdog(());

impl AnnouncedWatchdog {
    pub fn announce() -> Self {
        WATCHDOG.announce();
        Self(())
    }

    pub fn start(&self) {
        WATCHDOG.prepare();
    }
}

impl Drop for AnnouncedWatchdog {
    fn drop(&mut self) {
        WATCHDOG.withdraw();
    }
}

pub(super) struct Shared {
    pub(super) outbox: Outbox,
    pub(super) table: Mutex<Table>,
    pub(super) options: DispatchOptions,
    /// Wakes the reader when it waits for capacity.
    pub(super) capacity_freed: Notify,
    /// Occurs when the connection is about to end.
    pub(super) closing: Cancellation,
    /// Set when every handler is to be dropped.
    pub(super) abort: Latch,
    pub(super) stop: Stop,
    pub(super) polls: PollCounter,
    /// The last own request was sent while another one was outstanding.
    pub(super) overlapped: AtomicBool,
    /// Notified by the watchdog: handlers take long, and other requests should not wait for them.
    pub(super) stalled: Notify,
}

/// Everything that changes, behind one lock.
pub(super) struct Table {
    pub(super) calls: Calls<Arc<Call>>,
    pub(super) capacity: Capacity,
    pub(super) workers: Workers,
    pub(super) failure: Option<McpError>,
}

impl Shared {
    pub(super) fn new(writer: Box<dyn FrameWriter>, options: DispatchOptions) -> Self {
        Self {
            outbox: Outbox::new(writer),
            table: Mutex::new(Table {
                calls: Calls::new(Phase::Idle),
                capacity: Capacity::default(),
                workers: Workers::default(),
                failure: None,
            }),
            options,
            capacity_freed: Notify::new(),
            closing: Cancellation::new(),
            abort: Latch::new(),
            stop: Stop::default(),
            polls: PollCounter::default(),
            overlapped: AtomicBool::new(false),
            stalled: Notify::new(),
        }
    }

    pub(super) fn start(&self) {
        lock(&self.table).calls.phase = Phase::Running;
    }

    /// Runs one poll of a handler, watched if there is more than one runtime thread to wake.
    pub(super) fn poll_watched<R>(self: &Arc<Self>, poll: impl FnOnce() -> R) -> R {
        let watch = || {
            if Handle::try_current().is_ok_and(|now| now.runtime_flavor() == RuntimeFlavor::MultiThread) {
                let connection: Weak<Self> = Arc::downgrade(self);
                WATCHDOG.watch(connection, || WATCHDOG.start());
            }
        };
        self.polls.track(watch, poll)
    }

    /// Has queued frames written before the current task waits: at once, or by the writer task if handlers run besides the `own` of
    /// this task. When they wait for the same, such as a server behind a proxy, they end together, and one write takes the
    /// responses of all of them.
    pub(super) fn flush_before_waiting(&self, own: usize) {
        if self.outbox.is_empty() {
            return;
        }
        if lock(&self.table).capacity.running() > own {
            self.outbox.request_flush_after_others();
        } else {
            self.outbox.flush();
        }
    }

    /// Keeps a failure to end the run with, if the options say so.
    pub(super) fn fail_run(&self, failure: McpError) {
        if self.options.failures == FailureMode::Raise && !failure.is_deliberate() {
            let mut table = lock(&self.table);
            // The first failure ends the run; another must not cut the drain short.
            if table.failure.is_none() && table.calls.phase == Phase::Running {
                table.failure = Some(failure);
                drop(table);
                self.stop.request();
            }
        }
    }

    pub(super) fn raised_failure(&self) -> Option<McpError> {
        lock(&self.table).failure.take()
    }

    /// Shows the observer something that is not a frame.
    pub(super) fn report_unreadable(&self, text: Option<&str>, reason: &dyn std::fmt::Display) {
        let Some(observer) = &self.options.observer else {
            tracing::debug!(%reason, "input that is not a frame is skipped");
            return;
        };
        if catch_unwind(|| observer(&Unreadable { text, reason })).is_err() {
            tracing::error!("the observer of unreadable frames panicked");
        }
    }
}

impl LockedCalls for Shared {
    type Incoming = Arc<Call>;

    fn with_calls<R>(&self, act: impl FnOnce(&mut Calls<Arc<Call>>) -> R) -> R {
        act(&mut lock(&self.table).calls)
    }
}

impl Watched for Shared {
    fn polls(&self) -> &PollCounter {
        &self.polls
    }

    fn idle_reader_turn(&self) -> Option<u64> {
        lock(&self.table).workers.idle_reader_turn()
    }

    fn stalled(&self) {
        self.stalled.notify_one();
    }
}

/// Requests to end the run. A second one ends the drain too.
#[derive(Debug, Default)]
pub(super) struct Stop {
    count: AtomicU32,
    changed: Notify,
}

impl Stop {
    pub(super) fn request(&self) {
        self.count.fetch_add(1, Ordering::Release);
        self.changed.notify_waiters();
    }

    pub(super) fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// Resolves when there were more than `seen` requests.
    pub(super) async fn beyond(&self, seen: u32) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.count() > seen {
                return;
            }
            changed.await;
        }
    }
}

/// A request of the peer while it is handled: the channel its handler sends through.
pub(super) struct Call {
    pub(super) shared: Arc<Shared>,
    pub(super) id: RequestId,
    pub(super) generation: Generation,
    pub(super) schedule: Schedule,
    pub(super) back_channel: BackChannel,
    /// Occurs when the peer cancels the request or the connection is aborted. The handler can observe it.
    pub(super) cancellation: Cancellation,
    /// Wakes the worker that runs the handler when the request is cancelled.
    worker: Mutex<Option<Waker>>,
    /// The peer has cancelled the request: it is never answered.
    cancelled: AtomicBool,
    /// The handler has ended: nothing more is sent on behalf of this request.
    ended: AtomicBool,
}

impl Call {
    pub(super) fn new(
        shared: &Arc<Shared>,
        id: RequestId,
        generation: Generation,
        schedule: Schedule,
        back_channel: BackChannel,
    ) -> Self {
        Self {
            shared: Arc::clone(shared),
            id,
            generation,
            schedule,
            back_channel,
            cancellation: Cancellation::new(),
            worker: Mutex::new(None),
            cancelled: AtomicBool::new(false),
            ended: AtomicBool::new(false),
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Cancels the request for its handler, and wakes the worker that runs it.
    pub(super) fn interrupt(&self) {
        self.cancellation.cancel();
        let worker = lock(&self.worker).take();
        if let Some(worker) = worker {
            worker.wake();
        }
    }

    /// Resolves when the request is cancelled. Only the worker that runs it polls.
    pub(super) fn poll_interrupted(&self, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the check, so that a cancellation in between is not missed.
        let replaced = lock(&self.worker).replace(cx.waker().clone());
        drop(replaced);
        if self.cancellation.is_cancelled() { Poll::Ready(()) } else { Poll::Pending }
    }

    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }
}

impl Cancellable for Arc<Call> {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.interrupt();
    }
}

impl Outbound for Call {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        if self.has_ended() || self.back_channel == BackChannel::Closed {
            return Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))));
        }
        Box::pin(self.shared.call(request, None, Some(self.id.clone())))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if self.has_ended() {
            tracing::debug!(method, "a notification after the end of its request is dropped");
            return NotifyFuture::done();
        }
        self.shared.notify(method, params, Some(&self.id))
    }
}

impl Channel for Call {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn closing(&self) -> &Cancellation {
        &self.shared.closing
    }
}

/// The channel of a notification's handler. What it sends belongs to no request.
pub(super) struct NotificationChannel {
    pub(super) shared: Arc<Shared>,
    pub(super) back_channel: BackChannel,
    pub(super) never: Cancellation,
}

impl Outbound for NotificationChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        if self.back_channel == BackChannel::Closed {
            return Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))));
        }
        Box::pin(self.shared.call(request, None, None))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.shared.notify(method, params, None)
    }
}

impl Channel for NotificationChannel {
    fn cancellation(&self) -> &Cancellation {
        &self.never
    }

    fn closing(&self) -> &Cancellation {
        &self.shared.closing
    }
}
