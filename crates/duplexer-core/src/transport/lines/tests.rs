//! Framing under every split of the bytes.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytestring::ByteString;
use proptest::prelude::*;
use tokio::io::{AsyncRead, ReadBuf};

use super::buffer::{Line, LineBuffer, MAX_READ};
use super::*;
use crate::transport::testing::{next, text};
use crate::transport::{Incoming, TransportError};

/// Returns the lines of chunks that arrive one read at a time.
fn lines_of<'a>(chunks: impl IntoIterator<Item = &'a [u8]>, limit: usize) -> Vec<Line> {
    let mut buffer = LineBuffer::new(limit);
    let mut lines = Vec::new();
    for mut chunk in chunks {
        while !chunk.is_empty() {
            let room = buffer.spare();
            let spare = room.capacity() - room.len();
            assert!(spare > 0);
            let (now, later) = chunk.split_at(spare.min(chunk.len()));
            room.extend_from_slice(now);
            buffer.filled(now.len(), spare);
            lines.extend(std::iter::from_fn(|| buffer.take()));
            chunk = later;
        }
    }
    lines.extend(buffer.finish());
    lines
}

/// Returns the lines of the whole text.
fn expected(whole: &[u8], limit: usize) -> Vec<Line> {
    whole
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            if line.len() > limit {
                return Some(Line::TooLong);
            }
            let line = String::from_utf8_lossy(line);
            let line = line.strip_suffix('\r').unwrap_or(&line);
            (!line.trim_ascii().is_empty()).then(|| Line::Text(ByteString::from(line)))
        })
        .collect()
}

fn sample() -> Vec<u8> {
    let mut sample = b"{\"a\":1}\n\r\n \t\n{\"b\":2}\r\n\n".to_vec();
    sample.extend_from_slice("{\"\u{e9}\":\"\u{1f300}\"}\n".as_bytes());
    sample.extend_from_slice(b"bad \xff\xfe bytes\n");
    sample.extend_from_slice(&[b'x'; 70]);
    sample.extend_from_slice(b"\n{\"c\":3}\n{\"last\":true}");
    sample
}

#[test]
fn lines_do_not_depend_on_where_the_stream_is_cut() {
    // STDIO-01, P-STDIO-12: every pair of cuts of a sample with each kind of line.
    let sample = sample();
    let whole = expected(&sample, 64);
    assert_eq!(whole.len(), 7);
    for first in 0..=sample.len() {
        for second in first..=sample.len() {
            let chunks = [&sample[..first], &sample[first..second], &sample[second..]];
            assert_eq!(lines_of(chunks, 64), whole, "cut at {first} and {second}");
        }
    }
    assert_eq!(lines_of(sample.chunks(1), 64), whole);
}

fn any_line() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        6 => prop::collection::vec(any::<u8>(), 0..200),
        2 => (1usize..40_000).prop_map(|size| vec![b'y'; size]),
        1 => (30_000usize..200_000).prop_map(|size| vec![b'z'; size]),
        1 => Just(b"\r".to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_lines_in_any_chunks_come_out_whole(
        lines in prop::collection::vec(any_line(), 0..12),
        sizes in prop::collection::vec(1usize..30_000, 1..20),
        limit in 1usize..150_000,
    ) {
        let whole = lines.join(&b'\n');
        let (mut chunks, mut rest, mut sizes) = (Vec::new(), whole.as_slice(), sizes.iter().cycle());
        while let (false, Some(size)) = (rest.is_empty(), sizes.next()) {
            let (chunk, later) = rest.split_at((*size).min(rest.len()));
            chunks.push(chunk);
            rest = later;
        }
        prop_assert_eq!(lines_of(chunks, limit), expected(&whole, limit));
    }
}

#[test]
fn a_line_of_exactly_the_limit_is_read_and_one_byte_more_is_not() {
    let line = [b'x'; 100];
    assert!(matches!(&lines_of([&line[..], b"\n"], 100)[..], [Line::Text(text)] if text.len() == 100));
    assert_eq!(lines_of([&line[..], b"\n"], 99), [Line::TooLong]);
    assert_eq!(lines_of([&line[..]], 99), [Line::TooLong]);
}

#[test]
fn an_unterminated_line_of_96_mib_is_reported_once_and_never_held() {
    // robustness 3.1: growth at most limit + 4 MiB.
    let mut buffer = LineBuffer::new(DEFAULT_LIMIT);
    let (mut left, mut most, mut reports) = (96 * 1024 * 1024usize, 0, 0);
    while left > 0 {
        let room = buffer.spare();
        let spare = room.capacity() - room.len();
        let read = spare.min(left).min(MAX_READ);
        room.resize(room.len() + read, b'x');
        buffer.filled(read, spare);
        left -= read;
        most = most.max(buffer.capacity());
        while let Some(line) = buffer.take() {
            assert_eq!(line, Line::TooLong);
            reports += 1;
        }
    }
    assert_eq!(reports, 1);
    assert!(most <= DEFAULT_LIMIT + MAX_READ, "{most}");
    assert!(buffer.spare().capacity() <= 2 * MAX_READ, "the large buffer is given back");
    buffer.spare().extend_from_slice(b"tail\n{\"next\":1}\n");
    assert_eq!(buffer.take(), Some(Line::Text("{\"next\":1}".into())));
    assert_eq!(buffer.take(), None);
}

#[test]
fn a_huge_line_takes_its_buffer_with_it_and_a_small_one_does_not() {
    let mut buffer = LineBuffer::new(DEFAULT_LIMIT);
    let huge = vec![b'x'; 3 * 1024 * 1024];
    for chunk in huge.chunks(50_000).chain([&b"\n{\"small\":1}\nrest"[..]]) {
        buffer.spare().extend_from_slice(chunk);
        if chunk.len() == 50_000 {
            assert_eq!(buffer.take(), None);
        }
    }
    assert!(matches!(buffer.take(), Some(Line::Text(text)) if text.len() == huge.len()));
    assert!(buffer.capacity() <= MAX_READ, "{}", buffer.capacity());
    assert_eq!(buffer.take(), Some(Line::Text("{\"small\":1}".into())));
}

#[test]
fn capacity_grows_with_traffic_and_shrinks_in_quiet_times() {
    let mut buffer = LineBuffer::new(DEFAULT_LIMIT);
    let read = |buffer: &mut LineBuffer, full: bool| {
        let room = buffer.spare();
        let spare = room.capacity() - room.len();
        let bytes = if full { spare } else { 10 };
        room.resize(room.len() + bytes - 1, b' ');
        room.push(b'\n');
        buffer.filled(bytes, spare);
        assert_eq!(buffer.take(), None);
        spare
    };
    assert!(read(&mut buffer, false) <= 16 * 1024);
    for _ in 0..8 {
        read(&mut buffer, true);
    }
    assert!((MAX_READ..=2 * MAX_READ).contains(&read(&mut buffer, true)));
    for _ in 0..1000 {
        read(&mut buffer, false);
    }
    assert!(read(&mut buffer, false) <= 16 * 1024);
}

/// Returns one chunk per read and counts the reads.
struct Chunks(Vec<io::Result<&'static [u8]>>, Arc<std::sync::atomic::AtomicUsize>);

impl AsyncRead for Chunks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if !self.0.is_empty() {
            buf.put_slice(self.0.remove(0)?);
        }
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn lines_that_came_with_one_read_are_given_out_without_another() {
    let reads = Arc::default();
    let chunks = vec![Ok(&b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n"[..])];
    let transport = over(
        Chunks(chunks, Arc::clone(&reads)),
        tokio::io::sink(),
        TransportContext::stream("test"),
        DEFAULT_LIMIT,
    );
    let (mut reader, _) = transport.split();
    for _ in 0..3 {
        text(next(&mut reader).await);
        assert_eq!(reads.load(std::sync::atomic::Ordering::Relaxed), 1);
    }
    assert!(next(&mut reader).await.is_none());
    assert!(next(&mut reader).await.is_none());
    assert_eq!(reads.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_failing_read_is_an_error_and_then_the_end() {
    let chunks = vec![
        Ok(&b"{\"a\":1}\n"[..]),
        Err(io::ErrorKind::Interrupted.into()),
        Ok(&b"{\"b\":2}\n"[..]),
        Err(io::ErrorKind::ConnectionAborted.into()),
    ];
    let context = TransportContext::stream("test");
    let (mut reader, _) = over(Chunks(chunks, Arc::default()), tokio::io::sink(), context, 100).split();
    assert_eq!(text(next(&mut reader).await), "{\"a\":1}");
    assert_eq!(text(next(&mut reader).await), "{\"b\":2}");
    assert!(matches!(next(&mut reader).await, Some(Err(TransportError::Io(_)))));
    assert!(next(&mut reader).await.is_none());
}

#[tokio::test]
async fn serving_goes_on_after_a_line_beyond_the_limit() {
    let chunks = vec![Ok(&b"0123456789"[..]), Ok(&b"0123456789\n{\"a\":1}\n"[..])];
    let context = TransportContext::stream("test");
    let (mut reader, _) = over(Chunks(chunks, Arc::default()), tokio::io::sink(), context, 8).split();
    assert!(matches!(next(&mut reader).await, Some(Ok(Incoming::Unreadable(_)))));
    assert_eq!(text(next(&mut reader).await), "{\"a\":1}");
}
