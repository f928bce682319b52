//! Two endpoints in one process, connected by bytes like a pipe.

use tokio::io::{DuplexStream, duplex};

use super::lines::{self, DEFAULT_LIMIT};
use super::{FrameReader, FrameWriter, Transport, TransportContext};

/// Capacity of one direction: that of a pipe, so that tests see the same back-pressure.
const CAPACITY: usize = 64 * 1024;

/// One end of an in-process connection.
#[derive(Debug)]
pub struct Memory {
    reader: DuplexStream,
    writer: DuplexStream,
}

/// Creates two connected ends. What one end writes the other reads; dropping one ends the stream of the other.
pub fn pair() -> (Memory, Memory) {
    // A stream per direction needs no lock between the halves, and dropping a half ends its direction.
    let (left_reader, right_writer) = duplex(CAPACITY);
    let (right_reader, left_writer) = duplex(CAPACITY);
    (
        Memory { reader: left_reader, writer: left_writer },
        Memory { reader: right_reader, writer: right_writer },
    )
}

impl Transport for Memory {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        lines::over(self.reader, self.writer, TransportContext::local_process("memory"), DEFAULT_LIMIT)
            .split()
    }

    fn has_headers(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::task::Poll;

    use super::*;
    use crate::transport::testing::{next, text, write};
    use crate::transport::{Frames, TransportError};

    #[tokio::test]
    async fn what_one_end_writes_the_other_reads_until_the_writer_is_gone() {
        let (left, right) = pair();
        let ((mut reader, _back), (_, mut writer)) = (left.split(), right.split());
        write(&mut writer, "{\"a\":1}").await.unwrap();
        write(&mut writer, "{\"b\":2}").await.unwrap();
        assert_eq!(text(next(&mut reader).await), "{\"a\":1}");
        assert_eq!(text(next(&mut reader).await), "{\"b\":2}");
        drop(writer);
        assert!(next(&mut reader).await.is_none());
    }

    #[tokio::test]
    async fn a_write_without_a_reader_fails_with_a_closed_connection() {
        let (left, right) = pair();
        let (reader, _keep) = left.split();
        let (_, mut writer) = right.split();
        drop(reader);
        assert!(matches!(write(&mut writer, "{}").await, Err(TransportError::Closed)));
    }

    #[tokio::test]
    async fn an_end_that_does_not_read_holds_its_peer_back_without_loss() {
        let (left, right) = pair();
        let (mut reader, _keep) = left.split();
        let (_, mut writer) = right.split();
        let mut frames = Frames::default();
        for index in 0..3000 {
            frames.push(format!("{{\"n\":{index},\"pad\":\"{}\"}}", "x".repeat(90)).as_bytes(), None);
        }
        let first = std::future::poll_fn(|cx| Poll::Ready(writer.poll_write(cx, &mut frames))).await;
        assert!(first.is_pending() && !frames.is_empty());
        let writing = std::future::poll_fn(|cx| writer.poll_write(cx, &mut frames));
        let reading = async {
            for index in 0..3000 {
                assert!(text(next(&mut reader).await).starts_with(&format!("{{\"n\":{index},")));
            }
        };
        let (written, ()) = tokio::join!(writing, reading);
        written.unwrap();
    }
}
