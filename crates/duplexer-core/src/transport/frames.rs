//! Frames on their way out: contiguous bytes, one line each, so that a stream writes them as they stand.

use std::collections::VecDeque;

use duplexer_types::jsonrpc::RequestId;

/// Written bytes below this are not worth moving the rest to the front for.
const DEAD_MIN: usize = 16 * 1024;
/// An empty queue keeps at most this much room.
const KEEP: usize = 256 * 1024;

/// What a transport other than a plain stream may want to know about a frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hints {
    /// The request of the peer that this frame belongs to: it travels on that request's stream.
    pub related: Option<RequestId>,
    /// Headers for the message that carries the frame.
    pub headers: Vec<(String, String)>,
    /// Where an interrupted stream is to be taken up again.
    pub resumption: Option<String>,
}

/// A queue of frames, each followed by a newline.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    start: usize,
    /// How many frames were ever put in and taken out, to tell which one a hint belongs to.
    pushed: u64,
    popped: u64,
    hints: VecDeque<(u64, Hints)>,
}

impl Frames {
    /// Adds a frame. It must not hold a newline, which JSON text written by this library never does.
    pub fn push(&mut self, frame: &[u8], hints: Option<Hints>) {
        debug_assert!(memchr::memchr(b'\n', frame).is_none(), "a frame is one line");
        self.bytes.extend_from_slice(frame);
        self.bytes.push(b'\n');
        if let Some(hints) = hints {
            self.hints.push_back((self.pushed, hints));
        }
        self.pushed += 1;
    }

    /// Adds a frame whose buffer may be kept: an empty queue takes it as it is and gives its own in exchange.
    pub fn push_buffer(&mut self, frame: &mut Vec<u8>, hints: Option<Hints>) {
        if !self.bytes.is_empty() {
            return self.push(frame, hints);
        }
        std::mem::swap(&mut self.bytes, frame);
        self.push(b"", hints);
    }

    /// All frames as they are to be written to a stream.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Takes written bytes off the front. For streams, which have no use for hints.
    pub fn advance(&mut self, written: usize) {
        self.start = (self.start + written).min(self.bytes.len());
        self.hints.clear();
        self.reclaim();
    }

    /// Takes the first frame off, without its newline. For transports that send one message at a time.
    pub fn pop(&mut self) -> Option<(Vec<u8>, Hints)> {
        let rest = self.bytes();
        let end = memchr::memchr(b'\n', rest)?;
        let frame = rest[..end].to_vec();
        self.start += end + 1;
        let hints = match self.hints.front() {
            Some((index, _)) if *index == self.popped => self.hints.pop_front().map(|(_, hints)| hints),
            _ => None,
        };
        self.popped += 1;
        self.reclaim();
        Some((frame, hints.unwrap_or_default()))
    }

    /// Gives back what lies before `start`: a peer that reads slowly but steadily may never let the queue run
    /// empty. Less is moved than was written since the last time, so the cost stays linear.
    fn reclaim(&mut self) {
        if self.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEEP);
            self.start = 0;
        } else if self.start >= DEAD_MIN && self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether nothing waits.
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
        frames.push(b"two", Some(Hints { resumption: Some("r".into()), ..Hints::default() }));
        assert_eq!(frames.bytes(), b"one\ntwo\n");
        assert_eq!(frames.pop(), Some((b"one".to_vec(), Hints::default())));
        let (frame, hints) = frames.pop().unwrap();
        assert_eq!((frame.as_slice(), hints.resumption.as_deref()), (&b"two"[..], Some("r")));
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
        assert!(frames.bytes.capacity() < 4 * DEAD_MIN, "{}", frames.bytes.capacity());
    }

    #[test]
    fn a_queue_gives_back_the_room_of_a_burst() {
        let mut frames = Frames::default();
        frames.push(&vec![b'x'; 4 * KEEP], None);
        frames.advance(usize::MAX / 2);
        assert!(frames.bytes.capacity() <= KEEP);
    }
}
