//! Bytes in, lines out, without I/O.
//!
//! Every byte is scanned for a newline once and moved to the front at most once. The room grows with the
//! traffic and with a long line, never beyond the limit plus one read, and goes back to small afterwards.

use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

/// Room for one read on a quiet connection, and the most that one read asks for under load.
const READ_MIN: usize = 8 * 1024;
pub(super) const READ_MAX: usize = 64 * 1024;
/// A line up to this size is always copied out: the copy costs less than a new read buffer.
const COPY_MAX: usize = 128 * 1024;
/// After so many small reads in a row less room is asked for.
const QUIET_READS: u8 = 64;

/// What comes out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(ByteString),
    TooLong,
}

#[derive(Debug)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the first line that has not been taken begins.
    start: usize,
    /// Up to here there is no newline after `start`.
    scanned: usize,
    limit: usize,
    /// Inside a line that was reported as too long.
    skipping: bool,
    /// The room wanted for the next read.
    want: usize,
    quiet: u8,
}

impl LineBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, scanned: 0, limit, skipping: false, want: READ_MIN, quiet: 0 }
    }

    /// The next whole line that is not blank.
    pub(super) fn take(&mut self) -> Option<Line> {
        loop {
            let Some(found) = memchr::memchr(b'\n', self.bytes.get(self.scanned..).unwrap_or_default())
            else {
                return self.unfinished();
            };
            let line = self.start..self.scanned + found;
            self.start = line.end + 1;
            self.scanned = self.start;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if line.len() > self.limit {
                return Some(Line::TooLong);
            }
            if let Some(text) = self.text(line) {
                return Some(Line::Text(text));
            }
        }
    }

    /// No newline in sight: what is there is kept, unless it is too much already.
    fn unfinished(&mut self) -> Option<Line> {
        self.scanned = self.bytes.len();
        let too_long = !self.skipping && self.scanned - self.start > self.limit;
        self.skipping |= too_long;
        if self.skipping {
            self.bytes.clear();
            (self.start, self.scanned) = (0, 0);
        }
        too_long.then_some(Line::TooLong)
    }

    /// What is left at the end of the stream counts as a line.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let line = self.start..self.bytes.len();
        (self.start, self.scanned) = (line.end, line.end);
        if self.skipping {
            return None;
        }
        self.text(line).map(Line::Text)
    }

    /// The text of a line, `None` if it is blank. `start` is already past it.
    fn text(&mut self, mut line: Range<usize>) -> Option<ByteString> {
        let bytes = self.bytes.get(line.clone())?;
        if bytes.trim_ascii_start().is_empty() {
            return None;
        }
        if bytes.ends_with(b"\r") {
            line.end -= 1;
        }
        if line.len() <= COPY_MAX || line.len() < self.bytes.capacity() / 2 {
            return Some(copied(self.bytes.get(line)?));
        }
        // The line is most of the buffer and takes it along; less than a line's worth is moved.
        let mut rest = Vec::with_capacity(self.want.max(self.bytes.len() - self.start));
        rest.extend_from_slice(self.bytes.get(self.start..)?);
        let whole = std::mem::replace(&mut self.bytes, rest);
        (self.start, self.scanned) = (0, 0);
        let bytes = Bytes::from(whole).slice(line);
        Some(ByteString::try_from(bytes.clone()).unwrap_or_else(|_| copied(&bytes)))
    }

    /// Where the next bytes go: always with spare capacity. To be called when `take` has nothing more.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.bytes.is_empty() && self.bytes.capacity() > 2 * self.want {
            self.bytes = Vec::new();
        }
        let (len, capacity) = (self.bytes.len(), self.bytes.capacity());
        let enough = if len == 0 { self.want } else { self.want / 2 };
        if capacity - len < enough {
            let most = self.limit.saturating_add(self.want);
            let target = capacity.saturating_mul(2).min(most).max(len + self.want);
            self.bytes.reserve_exact(target - len);
        }
        &mut self.bytes
    }

    /// To be told how much of the spare capacity a read has filled, so that the next read fits the traffic.
    pub(super) fn filled(&mut self, read: usize, spare: usize) {
        if read == spare {
            self.want = (self.want * 2).min(READ_MAX);
            self.quiet = 0;
        } else if read >= self.want / 4 {
            self.quiet = 0;
        } else if self.want > READ_MIN {
            self.quiet += 1;
            if self.quiet == QUIET_READS {
                self.want /= 2;
                self.quiet = 0;
            }
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Text of its own; bytes that are not UTF-8 are replaced.
fn copied(bytes: &[u8]) -> ByteString {
    match std::str::from_utf8(bytes) {
        Ok(text) => ByteString::from(text),
        Err(_) => ByteString::from(String::from_utf8_lossy(bytes).into_owned()),
    }
}
