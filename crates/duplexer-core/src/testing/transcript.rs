//! What goes over a transport, written down.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use crate::dispatch::lock;
use crate::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport, TransportError};

/// The frames of a connection in the order they passed: `-->` to the server, `<--` to the client.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<Vec<String>>>);

impl Transcript {
    /// One line per frame, each with its arrow.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0).clone()
    }

    fn note(&self, arrow: &str, frame: &str) {
        lock(&self.0).push(format!("{arrow} {frame}"));
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// A client's transport whose frames are written down.
#[derive(Debug)]
pub struct Recorded<T> {
    transport: T,
    transcript: Transcript,
}

impl<T: Transport> Recorded<T> {
    /// Writes what passes `transport` into `transcript`.
    pub fn new(transport: T, transcript: Transcript) -> Self {
        Self { transport, transcript }
    }
}

impl<T: Transport> Transport for Recorded<T> {
    fn split(self) -> (Box<dyn FrameReader>, Box<dyn FrameWriter>) {
        let (reader, writer) = self.transport.split();
        let incoming = RecordedReader { reader, transcript: self.transcript.clone() };
        let outgoing = RecordedWriter { writer, transcript: self.transcript, partial: Vec::new() };
        (Box::new(incoming), Box::new(outgoing))
    }
}

struct RecordedReader {
    reader: Box<dyn FrameReader>,
    transcript: Transcript,
}

impl FrameReader for RecordedReader {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Incoming, TransportError>>> {
        let next = self.reader.poll_next(cx);
        if let Poll::Ready(Some(Ok(incoming))) = &next {
            match incoming {
                Incoming::Message(message) => self.transcript.note("<--", &message.text),
                Incoming::Unreadable(reason) => self.transcript.note("<--", reason),
            }
        }
        next
    }
}

struct RecordedWriter {
    writer: Box<dyn FrameWriter>,
    transcript: Transcript,
    /// The written beginning of a frame whose end is still to come.
    partial: Vec<u8>,
}

impl FrameWriter for RecordedWriter {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        let before = frames.bytes().to_vec();
        let result = self.writer.poll_write(cx, frames);
        let written = before.len().saturating_sub(frames.len());
        for byte in before.into_iter().take(written) {
            if byte == b'\n' {
                let frame = std::mem::take(&mut self.partial);
                self.transcript.note("-->", &String::from_utf8_lossy(&frame));
            } else {
                self.partial.push(byte);
            }
        }
        result
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.writer.poll_close(cx)
    }
}
