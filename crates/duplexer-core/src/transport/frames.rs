//! Outgoing frames: contiguous bytes, one line each, so that a stream writes them verbatim.

use std::collections::VecDeque;
use std::fmt;

use duplexer_types::jsonrpc::RequestId;

/// Minimum written bytes for which the rest is moved to the front.
const MIN_RECLAIM: usize = 16 * 1024;
/// Maximum capacity that an empty queue keeps.
const MAX_KEPT_CAPACITY: usize = 256 * 1024;

/// Metadata of a frame, for transports other than plain streams. `Debug` shows the names of headers, not their values.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FrameMeta {
    /// The request of the peer that this frame belongs to: it is sent on that request's stream.
    pub related: Option<RequestId>,
    /// Headers of the message that carries the frame.
    pub headers: Vec<(String, String)>,
    /// Token to resume an interrupted stream.
    pub resumption: Option<String>,
}

impl fmt::Debug for FrameMeta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameMeta")
            .field("related", &self.related)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// A queue of frames, each followed by a newline.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    start: usize,
    /// Total frames pushed and popped: the index of a frame that has metadata.
    pushed: u64,
    popped: u64,
    meta: VecDeque<(u64, FrameMeta)>,
}

impl Frames {
    /// Adds a frame. It must not contain a newline; JSON text written by this library never does.
    pub fn push(&mut self, frame: &[u8], meta: Option<FrameMeta>) {
        debug_assert!(memchr::memchr(b'\n', frame).is_none(), "a frame is one line");
        self.bytes.extend_from_slice(frame);
        self.bytes.push(b'\n');
        if let Some(meta) = meta {
            self.meta.push_back((self.pushed, meta));
        }
        self.pushed += 1;
    }

    /// Adds a frame without copying if the queue is empty: the buffers are exchanged.
    pub fn push_buffer(&mut self, frame: &mut Vec<u8>, meta: Option<FrameMeta>) {
        if !self.bytes.is_empty() {
            return self.push(frame, meta);
        }
        std::mem::swap(&mut self.bytes, frame);
        self.push(b"", meta);
    }

    /// Returns all frames as a stream writes them.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Removes written bytes from the front. For streams, which ignore metadata.
    pub fn advance(&mut self, written: usize) {
        self.start = (self.start + written).min(self.bytes.len());
        self.meta.clear();
        self.reclaim();
    }

    /// Removes the first frame, without its newline. For transports that send one message at a time.
    pub fn pop(&mut self) -> Option<(Vec<u8>, FrameMeta)> {
        let rest = self.bytes();
        let end = memchr::memchr(b'\n', rest)?;
        let frame = rest[..end].to_vec();
        self.start += end + 1;
        let meta = match self.meta.front() {
            Some((index, _)) if *index == self.popped => self.meta.pop_front().map(|(_, meta)| meta),
            _ => None,
        };
        self.popped += 1;
        self.reclaim();
        Some((frame, meta.unwrap_or_default()))
    }

    /// Frees the bytes before `start`: with a peer that reads slowly but steadily the queue may never be empty. Fewer bytes
    /// are moved than were written since the last time, so the cost is linear.
    fn reclaim(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(MAX_KEPT_CAPACITY);
            self.start = 0;
        } else if self.start >= MIN_RECLAIM && self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// Returns the number of bytes in the queue.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Returns whether the queue is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_queue_takes_a_frame_with_its_buffer() {
        let mut frames = Frames::default();
        let (mut one, mut two) = (b"one".to_vec(), b"two".to_vec());
        frames.push_buffer(&mut one, None);
        assert_eq!(one, b"");
        frames.push_buffer(&mut two, None);
        assert_eq!(two, b"two", "it was copied");
        assert_eq!(frames.bytes(), b"one\ntwo\n");
        frames.advance(8);
        frames.push_buffer(&mut two, None);
        assert_eq!(frames.bytes(), b"two\n");
    }

    #[test]
    fn frames_leave_in_order_as_bytes_or_one_by_one() {
        let mut frames = Frames::default();
        frames.push(b"one", None);
        frames.push(b"two", Some(FrameMeta { resumption: Some("r".into()), ..FrameMeta::default() }));
        assert_eq!(frames.bytes(), b"one\ntwo\n");
        assert_eq!(frames.pop(), Some((b"one".to_vec(), FrameMeta::default())));
        let (frame, meta) = frames.pop().unwrap();
        assert_eq!((frame.as_slice(), meta.resumption.as_deref()), (&b"two"[..], Some("r")));
        assert_eq!(frames.pop(), None);
        frames.push(b"three", None);
        frames.advance(2);
        frames.push(b"four", None);
        assert_eq!(frames.bytes(), b"ree\nfour\n");
        frames.advance(100);
        assert!(frames.is_empty());
    }

    #[test]
    fn a_queue_that_never_runs_empty_stays_small() {
        let mut frames = Frames::default();
        let frame = [b'x'; 999];
        frames.push(&frame, None);
        for _ in 0..10_000 {
            frames.push(&frame, None);
            frames.advance(1000);
        }
        assert_eq!(frames.len(), 1000);
        assert!(frames.bytes.capacity() < 4 * MIN_RECLAIM, "{}", frames.bytes.capacity());
    }

    #[test]
    fn a_queue_frees_the_capacity_of_a_burst() {
        let mut frames = Frames::default();
        frames.push(&vec![b'x'; 4 * MAX_KEPT_CAPACITY], None);
        frames.advance(usize::MAX / 2);
        assert!(frames.bytes.capacity() <= MAX_KEPT_CAPACITY);
    }
}
