//! Splits bytes into lines, without I/O.
//!
//! Every byte is scanned for a newline once and moved to the front at most once. The capacity grows with the traffic and
//! with a long line, never beyond the limit plus one read, and shrinks afterwards.

use std::ops::Range;

use bytes::Bytes;
use bytestring::ByteString;

/// Minimum and maximum size of one read: on a quiet connection, and under load.
const MIN_READ: usize = 8 * 1024;
pub(super) const MAX_READ: usize = 64 * 1024;
/// Maximum length of a line that is always copied: the copy costs less than a new read buffer.
const MAX_COPY: usize = 128 * 1024;
/// Number of consecutive small reads after which the size of a read shrinks.
const QUIET_READS: u8 = 64;

/// A line, as it leaves the buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Text(ByteString),
    TooLong,
}

#[derive(Debug)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// Start of the first line that has not been taken.
    start: usize,
    /// End of the bytes after `start` that are known to contain no newline.
    scanned: usize,
    limit: usize,
    /// The bytes belong to a line that was reported as too long.
    skipping: bool,
    /// Size of the next read.
    want: usize,
    quiet: u8,
}

impl LineBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, scanned: 0, limit, skipping: false, want: MIN_READ, quiet: 0 }
    }

    /// Takes the next complete line that is not blank.
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

    /// Keeps a line without a newline so far, unless it is too long already.
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

    /// Takes the rest at the end of the stream, which counts as a line.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let line = self.start..self.bytes.len();
        (self.start, self.scanned) = (line.end, line.end);
        if self.skipping {
            return None;
        }
        self.text(line).map(Line::Text)
    }

    /// Returns the text of a line, `None` if it is blank. `start` is already past it.
    fn text(&mut self, mut line: Range<usize>) -> Option<ByteString> {
        let bytes = self.bytes.get(line.clone())?;
        if bytes.trim_ascii_start().is_empty() {
            return None;
        }
        if bytes.ends_with(b"\r") {
            line.end -= 1;
        }
        if line.len() <= MAX_COPY || line.len() < self.bytes.capacity() / 2 {
            return Some(copied(self.bytes.get(line)?));
        }
        // The line is most of the buffer and takes it over; the rest, which is smaller, is moved.
        let mut rest = Vec::with_capacity(self.want.max(self.bytes.len() - self.start));
        rest.extend_from_slice(self.bytes.get(self.start..)?);
        let whole = std::mem::replace(&mut self.bytes, rest);
        (self.start, self.scanned) = (0, 0);
        let bytes = Bytes::from(whole).slice(line);
        Some(ByteString::try_from(bytes.clone()).unwrap_or_else(|_| copied(&bytes)))
    }

    /// Returns the buffer for the next read, always with spare capacity. Call it when `take` returns nothing more.
    pub(super) fn spare(&mut self) -> &mut Vec<u8> {
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

    /// Adapts the size of the next read to how much of the spare capacity the last one has filled.
    pub(super) fn filled(&mut self, read: usize, spare: usize) {
        if read == spare {
            self.want = (self.want * 2).min(MAX_READ);
            self.quiet = 0;
        } else if read >= self.want / 4 {
            self.quiet = 0;
        } else if self.want > MIN_READ {
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

/// Copies the text of a line; bytes that are not UTF-8 are replaced.
fn copied(bytes: &[u8]) -> ByteString {
    match std::str::from_utf8(bytes) {
        Ok(text) => ByteString::from(text),
        Err(_) => ByteString::from(String::from_utf8_lossy(bytes).into_owned()),
    }
}
