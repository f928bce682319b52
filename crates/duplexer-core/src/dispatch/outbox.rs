//! Frames on their way to the peer: one bounded queue that whoever has something to say also empties.
//!
//! There is no hop to a writer task on the way of an ordinary answer: whoever has produced frames writes them,
//! with all others that are queued, as soon as it has nothing else at hand. Only when the peer does not read does the
//! writer task take over. Frames produced while a handler is polled are left to whoever polls it.

use std::borrow::Cow;
use std::cell::Cell;
use std::task::{Context, Poll, Waker};

use tokio::sync::Notify;

use super::sync::{AtomicU64, Mutex, Ordering, lock, thread_local};
use crate::transport::{FrameWriter, Frames, Hints, TransportError};

/// Producers wait while this many bytes are queued.
pub(crate) const OUTBOX_BYTES: usize = 256 * 1024;
/// Answers of a burst are written when they are so many bytes, at the latest.
const FLUSH_THRESHOLD: usize = 16 * 1024;
/// How many frames the read loop itself may owe: refusals and errors. When they are all queued it stops reading.
pub(crate) const CONTROL_FRAMES: usize = 64;

pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    writer: Mutex<Writer>,
    /// Wakes the writer task.
    work: Notify,
    /// Wakes producers that wait for room.
    room: Notify,
    /// Wakes those who wait for a frame to be written.
    progress: Notify,
    /// Bytes ever handed to the transport.
    written: AtomicU64,
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
            Admission::Control if self.control >= CONTROL_FRAMES => return Enqueued::Full,
            Admission::Control => self.control += 1,
            Admission::Ordinary | Admission::Reserved => {}
        }
        push(&mut self.frames);
        self.pushed += size as u64 + 1;
        Enqueued::Queued(self.pushed)
    }
}

struct Writer {
    /// Gone once the direction has ended, so that the peer sees the end even while we still hold the outbox.
    transport: Option<Box<dyn FrameWriter>>,
    current: Frames,
    /// The transport takes no more: only the writer task may ask it again, because its waker is registered.
    blocked: bool,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Enqueued {
    /// Queued; the position is that of its last byte.
    Queued(u64),
    /// No room: try again when there is.
    Full,
    /// The peer is gone.
    Closed,
}

/// Which rule admits a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Waits for room like everybody.
    Ordinary,
    /// Owed by the read loop: a lane of its own.
    Control,
    /// Its place was reserved when the call it belongs to was made.
    Reserved,
}

/// Whether a queued frame left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// The transport has all of it.
    Written,
    /// The peer was gone first.
    Lost,
}

thread_local! {
    /// The outbox whose handler is being polled on this thread.
    static POLLING: Cell<usize> = const { Cell::new(0) };
}

impl Outbox {
    pub(crate) fn new(transport: Box<dyn FrameWriter>) -> Self {
        Self {
            queue: Mutex::new(Queue::default()),
            writer: Mutex::new(Writer {
                transport: Some(transport),
                current: Frames::default(),
                blocked: false,
            }),
            work: Notify::new(),
            room: Notify::new(),
            progress: Notify::new(),
            written: AtomicU64::new(0),
        }
    }

    /// Queues a frame if it is admitted now. Does not write.
    pub(crate) fn try_enqueue(&self, frame: &[u8], hints: Option<Hints>, admission: Admission) -> Enqueued {
        let frame = one_line(frame);
        lock(&self.queue).take(admission, frame.len(), |frames| frames.push(&frame, hints))
    }

    /// The same for a frame whose buffer may be exchanged for another one.
    pub(crate) fn try_enqueue_buffer(&self, frame: &mut Vec<u8>, hints: Option<Hints>) -> Enqueued {
        if let Cow::Owned(line) = one_line(frame) {
            *frame = line;
        }
        let size = frame.len();
        lock(&self.queue).take(Admission::Ordinary, size, |frames| frames.push_buffer(frame, hints))
    }

    /// Queues a frame, waiting for room. `None` when the peer is gone.
    pub(crate) async fn send(&self, frame: &[u8], hints: Option<Hints>) -> Option<u64> {
        self.admit(frame, hints, Admission::Ordinary).await
    }

    pub(crate) async fn admit(
        &self,
        frame: &[u8],
        hints: Option<Hints>,
        admission: Admission,
    ) -> Option<u64> {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            match self.try_enqueue(frame, hints.clone(), admission) {
                Enqueued::Queued(position) => return Some(position),
                Enqueued::Closed => return None,
                Enqueued::Full => {
                    self.flush();
                    room.await;
                }
            }
        }
    }

    /// Resolves when everything up to `position` has been handed to the transport, or never will be.
    pub(crate) async fn delivery(&self, position: u64) -> Delivery {
        loop {
            let progress = self.progress.notified();
            tokio::pin!(progress);
            progress.as_mut().enable();
            if self.written.load(Ordering::Acquire) >= position {
                return Delivery::Written;
            }
            if lock(&self.queue).closed {
                return Delivery::Lost;
            }
            progress.await;
        }
    }

    /// Runs a poll of one of this connection's handlers. The caller writes what it has queued, sooner or later.
    pub(crate) fn while_polling<R>(&self, poll: impl FnOnce() -> R) -> R {
        let here = std::ptr::from_ref(self).addr();
        let outer = POLLING.with(|polling| polling.replace(here));
        let result = poll();
        POLLING.with(|polling| polling.set(outer));
        result
    }

    /// Something was queued: whoever polls the handler writes it, or else the writer task.
    pub(crate) fn request_flush(&self) {
        if POLLING.with(Cell::get) != std::ptr::from_ref(self).addr() {
            self.work.notify_one();
        }
    }

    /// Writes what is queued once it is worth a system call of its own.
    pub(crate) fn flush_if_large(&self) {
        if lock(&self.queue).frames.len() >= FLUSH_THRESHOLD {
            self.flush();
        }
    }

    /// Writes as much as the transport takes without waiting.
    pub(crate) fn flush(&self) {
        while !lock(&self.queue).frames.is_empty() {
            // Whoever holds the lock looks at the queue again after letting go of it.
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

    /// The writer task: takes over whenever the transport was full, or when nobody else would write.
    pub(crate) async fn drive(&self) {
        loop {
            self.work.notified().await;
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

    /// Moves the queue to the transport until it is empty. A transport that fails closes the outbox.
    fn write(&self, writer: &mut Writer, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            if writer.current.is_empty() {
                let mut queue = lock(&self.queue);
                if queue.frames.is_empty() {
                    return Poll::Ready(());
                }
                std::mem::swap(&mut writer.current, &mut queue.frames);
                queue.control = 0;
                drop(queue);
                self.room.notify_waiters();
            }
            let before = writer.current.len();
            let result = match &mut writer.transport {
                Some(transport) => transport.poll_write(cx, &mut writer.current),
                None => Poll::Ready(Err(TransportError::Closed)),
            };
            self.count(before - writer.current.len());
            match result {
                Poll::Pending => return Poll::Pending,
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

    fn count(&self, bytes: usize) {
        if bytes > 0 {
            self.written.fetch_add(bytes as u64, Ordering::Release);
            self.progress.notify_waiters();
        }
    }

    /// Nothing more is taken; what waits is given up.
    fn close_queue(&self) {
        let mut queue = lock(&self.queue);
        queue.closed = true;
        queue.frames = Frames::default();
        drop(queue);
        self.room.notify_waiters();
        self.progress.notify_waiters();
    }

    /// Nothing more is taken, and the direction ends as it stands.
    pub(crate) fn close(&self) {
        self.close_queue();
        let transport = lock(&self.writer).transport.take();
        drop(transport);
    }

    /// Writes everything, then ends the direction.
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

/// A frame is a line. What an author writes as a result may hold line breaks, which in JSON are mere space.
fn one_line(frame: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(b'\n', frame).is_none() {
        return Cow::Borrowed(frame);
    }
    Cow::Owned(frame.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect())
}
