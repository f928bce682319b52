//! Bounded outbound queue of a connection. The task that enqueued a frame flushes the queue before it waits.
//!
//! So an ordinary response needs no hop to a writer task, and one write takes all frames that are queued. If the transport
//! is pending, the writer task takes over. Frames enqueued while a handler is polled are flushed by the worker that polls it.
//! Where many tasks enqueue one frame each, the writer task waits until all of them have run.

use std::borrow::Cow;
use std::cell::Cell;
use std::task::{Context, Poll, Waker};

use duplexer_types::jsonrpc::RequestId;
use tokio::sync::Notify;

use super::delivery::{Delivery, Pace, WriteProgress};
use super::sync::{AtomicBool, Mutex, Ordering, lock, thread_local};
use crate::transport::{FrameMeta, FrameWriter, Frames, PolledExchange, TransportError};

/// Maximum bytes in the queue, beyond which producers wait.
pub(crate) const OUTBOX_BYTES: usize = 256 * 1024;
/// Queued bytes at which the responses of a burst are written at the latest.
const FLUSH_THRESHOLD: usize = 16 * 1024;
/// Maximum frames queued by the reader itself: refusals and errors. When they are reached it stops reading.
pub(crate) const MAX_CONTROL_FRAMES: usize = 64;

pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    /// Whether the queue has frames: changed with its lock held, and read without.
    has_frames: AtomicBool,
    writer: Mutex<Writer>,
    /// Wakes the writer task.
    work: Notify,
    /// The writer task lets the tasks that are ready run before it writes.
    lets_others_run: AtomicBool,
    /// Wakes producers that wait for capacity.
    capacity_freed: Notify,
    progress: WriteProgress,
}

#[derive(Default)]
struct Queue {
    frames: Frames,
    control: usize,
    pushed: u64,
    closed: bool,
}

impl Queue {
    fn take(&mut self, admission: Admission, size: usize, push: impl FnOnce(&mut Frames)) -> Enqueued {
        if self.closed {
            return Enqueued::Closed;
        }
        match admission {
            Admission::Ordinary if self.frames.len() >= OUTBOX_BYTES => return Enqueued::Full,
            Admission::Control if self.control >= MAX_CONTROL_FRAMES => return Enqueued::Full,
            Admission::Control => self.control += 1,
            Admission::Ordinary | Admission::Reserved => {}
        }
        push(&mut self.frames);
        self.pushed += size as u64 + 1;
        Enqueued::Queued(self.pushed)
    }
}

struct Writer {
    /// Dropped when the direction ends, so that the peer sees the end even while the outbox is still held.
    transport: Option<Box<dyn FrameWriter>>,
    current: Frames,
    /// The transport is pending: only the writer task polls it again, because its waker is registered.
    blocked: bool,
}

/// Result of enqueueing a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// Queued; the position is that of its last byte.
    Queued(u64),
    /// The queue is full: try again when there is capacity.
    Full,
    /// The peer is gone.
    Closed,
}

/// The rule by which a frame is admitted to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Bounded by bytes.
    Ordinary,
    /// Sent by the reader itself: bounded by count.
    Control,
    /// Not bounded: the capacity was reserved when the call it belongs to was made.
    Reserved,
}

thread_local! {
    /// The outbox whose handler is being polled on this thread.
    static POLLING: Cell<usize> = const { Cell::new(0) };
}

impl Outbox {
    pub(crate) fn new(transport: Box<dyn FrameWriter>) -> Self {
        Self {
            queue: Mutex::new(Queue::default()),
            has_frames: AtomicBool::new(false),
            writer: Mutex::new(Writer {
                transport: Some(transport),
                current: Frames::default(),
                blocked: false,
            }),
            work: Notify::new(),
            lets_others_run: AtomicBool::new(false),
            capacity_freed: Notify::new(),
            progress: WriteProgress::new(),
        }
    }

    /// Queues a frame if it is admitted at once. Does not write.
    pub(crate) fn try_enqueue(
        &self,
        frame: &[u8],
        meta: Option<FrameMeta>,
        admission: Admission,
    ) -> Enqueued {
        let frame = one_line(frame);
        self.take(&mut lock(&self.queue), admission, frame.len(), |frames| frames.push(&frame, meta))
    }

    /// Queues a frame whose buffer can be exchanged for another one, if it is admitted at once.
    pub(crate) fn try_enqueue_buffer(&self, frame: &mut Vec<u8>, meta: Option<FrameMeta>) -> Enqueued {
        self.enqueue_buffer(frame, meta).0
    }

    /// Queues a response like [`Self::try_enqueue_buffer`], and flushes the queue if that is worth a system call of its own.
    pub(crate) fn respond(&self, frame: &mut Vec<u8>) -> Enqueued {
        let (enqueued, queued_bytes) = self.enqueue_buffer(frame, None);
        if queued_bytes >= FLUSH_THRESHOLD {
            self.flush();
        }
        enqueued
    }

    /// Returns also how many bytes are queued then.
    fn enqueue_buffer(&self, frame: &mut Vec<u8>, meta: Option<FrameMeta>) -> (Enqueued, usize) {
        if let Cow::Owned(line) = one_line(frame) {
            *frame = line;
        }
        let size = frame.len();
        let mut queue = lock(&self.queue);
        let enqueued =
            self.take(&mut queue, Admission::Ordinary, size, |frames| frames.push_buffer(frame, meta));
        (enqueued, queue.frames.len())
    }

    fn take(
        &self,
        queue: &mut Queue,
        admission: Admission,
        size: usize,
        push: impl FnOnce(&mut Frames),
    ) -> Enqueued {
        let enqueued = queue.take(admission, size, push);
        if let Enqueued::Queued(_) = enqueued {
            self.has_frames.store(true, Ordering::Release);
        }
        enqueued
    }

    /// Queues a frame, waiting for capacity. `None` if the peer is gone.
    pub(crate) async fn send(&self, frame: &[u8], meta: Option<FrameMeta>) -> Option<u64> {
        self.admit(frame, meta, Admission::Ordinary).await
    }

    pub(crate) async fn admit(
        &self,
        frame: &[u8],
        meta: Option<FrameMeta>,
        admission: Admission,
    ) -> Option<u64> {
        loop {
            let freed = self.capacity_freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            match self.try_enqueue(frame, meta.clone(), admission) {
                Enqueued::Queued(position) => return Some(position),
                Enqueued::Closed => return None,
                Enqueued::Full => {
                    self.flush();
                    freed.await;
                }
            }
        }
    }

    /// Hands an own request to the transport without queueing it, if no frame is before it and the transport has exchanges
    /// that callers poll. `frame` is taken then.
    pub(crate) fn begin(
        &self,
        id: &RequestId,
        frame: &mut Vec<u8>,
        meta: Option<&FrameMeta>,
    ) -> Option<Box<dyn PolledExchange>> {
        let mut writer = self.writer.try_lock().ok()?;
        let is_first = !writer.blocked && writer.current.is_empty() && {
            let queue = lock(&self.queue);
            !queue.closed && queue.frames.is_empty()
        };
        let begun = match &mut writer.transport {
            Some(transport) if is_first => transport.begin(id, frame, meta),
            _ => None,
        };
        drop(writer);
        // A task that found the lock taken has left its frames to this one.
        if !lock(&self.queue).frames.is_empty() {
            self.work.notify_one();
        }
        begun
    }

    /// Resolves when everything up to `position` is lost, or is handed to the transport after it had to wait. Never, if it
    /// is written at once.
    pub(crate) fn late_delivery(&self, position: u64) -> impl Future<Output = Delivery> + Send {
        self.progress.late_delivery(position, || lock(&self.queue).closed)
    }

    /// Returns whether the transport has everything up to `position`.
    pub(crate) fn is_written(&self, position: u64) -> bool {
        self.progress.is_written(position)
    }

    /// Runs a poll of one of this connection's handlers. The caller flushes what the handler has queued.
    pub(crate) fn while_polling<R>(&self, poll: impl FnOnce() -> R) -> R {
        let here = std::ptr::from_ref(self).addr();
        let outer = POLLING.with(|polling| polling.replace(here));
        let result = poll();
        POLLING.with(|polling| polling.set(outer));
        result
    }

    /// Returns whether a handler of this connection is polled here: its worker flushes the queue.
    pub(crate) fn is_flushed_by_worker(&self) -> bool {
        POLLING.with(Cell::get) == std::ptr::from_ref(self).addr()
    }

    /// Has queued frames written: by the worker that polls the current handler, or else by the writer task.
    pub(crate) fn request_flush(&self) {
        if !self.is_flushed_by_worker() {
            self.work.notify_one();
        }
    }

    /// As [`Self::request_flush`], but the writer task lets the tasks run first that are ready now: one write takes the frames
    /// of all of them.
    pub(crate) fn request_flush_after_others(&self) {
        if !self.is_flushed_by_worker() {
            self.lets_others_run.store(true, Ordering::Relaxed);
            self.work.notify_one();
        }
    }

    /// Returns whether no frame is queued, as far as this task knows: one that another task queues meanwhile is that task's to
    /// have written.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_frames.load(Ordering::Acquire)
    }

    /// Writes as much as the transport takes without waiting.
    pub(crate) fn flush(&self) {
        while !lock(&self.queue).frames.is_empty() {
            // The task that holds the lock checks the queue again after releasing it.
            let Ok(mut writer) = self.writer.try_lock() else { return };
            if writer.blocked {
                return;
            }
            let mut cx = Context::from_waker(Waker::noop());
            if self.write(&mut writer, &mut cx).is_pending() {
                writer.blocked = true;
                drop(writer);
                self.work.notify_one();
                return;
            }
        }
    }

    /// The writer task: takes over when the transport is pending, or when no worker would flush.
    pub(crate) async fn drive(&self) {
        loop {
            self.work.notified().await;
            if self.lets_others_run.swap(false, Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
            std::future::poll_fn(|cx| self.poll_drive(cx)).await;
        }
    }

    fn poll_drive(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut writer = lock(&self.writer);
            let written = self.write(&mut writer, cx);
            writer.blocked = written.is_pending();
            drop(writer);
            if written.is_pending() {
                return Poll::Pending;
            }
            if lock(&self.queue).frames.is_empty() {
                return Poll::Ready(());
            }
        }
    }

    /// Moves the queue to the transport until it is empty. A transport error closes the outbox.
    fn write(&self, writer: &mut Writer, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if writer.current.is_empty() {
                let mut queue = lock(&self.queue);
                if queue.frames.is_empty() {
                    return Poll::Ready(());
                }
                std::mem::swap(&mut writer.current, &mut queue.frames);
                self.has_frames.store(false, Ordering::Release);
                queue.control = 0;
                drop(queue);
                self.capacity_freed.notify_waiters();
            }
            let before = writer.current.len();
            let result = match &mut writer.transport {
                Some(transport) => transport.poll_write(cx, &mut writer.current),
                None => Poll::Ready(Err(TransportError::Closed)),
            };
            let pace = if writer.blocked { Pace::AfterWait } else { Pace::AtOnce };
            self.progress.add(before - writer.current.len(), pace);
            match result {
                Poll::Pending => {
                    if pace == Pace::AtOnce {
                        self.progress.pause();
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "the peer takes no more frames");
                    writer.current = Frames::default();
                    self.close_queue();
                    return Poll::Ready(());
                }
            }
        }
    }

    /// Closes the queue and drops what is in it.
    fn close_queue(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.frames = Frames::default();
        self.has_frames.store(false, Ordering::Release);
        drop(queue);
        self.capacity_freed.notify_waiters();
        self.progress.end();
    }

    /// Closes the queue and drops the transport without writing the rest.
    pub(crate) fn close(&self) {
        self.close_queue();
        let transport = lock(&self.writer).transport.take();
        drop(transport);
    }

    /// Writes everything, then closes the transport.
    pub(crate) async fn finish(&self) -> Result<(), TransportError> {
        std::future::poll_fn(|cx| self.poll_drive(cx)).await;
        let closed = std::future::poll_fn(|cx| match &mut lock(&self.writer).transport {
            Some(transport) => transport.poll_close(cx),
            None => Poll::Ready(Ok(())),
        });
        let closed = closed.await;
        self.close();
        closed
    }
}

/// Replaces line breaks, because a frame is a line. A handler's result may contain some; in JSON they are whitespace.
fn one_line(frame: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', frame).is_none() {
        return Cow::Borrowed(frame);
    }
    Cow::Owned(frame.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect())
}
