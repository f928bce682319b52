//! The system calls of the threads that read and write what the reactor cannot watch.

use std::io::{self, PipeReader, PipeWriter};
use std::task::{Context, Poll};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::Descriptor;
use crate::transport::lines::Source;
use crate::transport::thread::{Chunks, MAX_CHUNK, ThreadSink, ThreadSource};

/// A reading thread that ends when this is dropped, even while nothing can be read.
pub(in crate::transport) struct WatchedSource {
    chunks: ThreadSource,
    /// The thread watches the other end.
    _alive: PipeWriter,
}

impl WatchedSource {
    pub(super) fn start(descriptor: Descriptor) -> io::Result<Self> {
        let (ended, alive) = io::pipe()?;
        let chunks = ThreadSource::start(move |chunks| read_all(&descriptor, &ended, chunks))?;
        Ok(Self { chunks, _alive: alive })
    }
}

impl Source for WatchedSource {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        self.chunks.poll_fill(cx, buffer)
    }
}

fn read_all(descriptor: &Descriptor, ended: &PipeReader, chunks: &Chunks) {
    let mut buffer = Vec::with_capacity(MAX_CHUNK);
    loop {
        // Polling before reading keeps an abandoned thread from consuming input of the next reader.
        let mut watched = [PollFd::new(ended, PollFlags::IN), PollFd::new(descriptor, PollFlags::IN)];
        if poll(&mut watched, None) == Err(Errno::INTR) {
            continue;
        }
        if !watched[0].revents().is_empty() {
            return;
        }
        buffer.clear();
        let chunk = match rustix::io::read(descriptor, spare_capacity(&mut buffer)) {
            Ok(0) => return,
            Ok(_) => Ok(buffer.clone()),
            Err(Errno::INTR | Errno::AGAIN) => continue,
            Err(errno) => Err(errno.into()),
        };
        if !chunks.send(chunk) {
            return;
        }
    }
}

/// Starts a thread that writes a descriptor.
pub(super) fn start_sink(descriptor: Descriptor) -> io::Result<ThreadSink> {
    ThreadSink::start(move |bytes| write_all(&descriptor, bytes).map_err(Into::into))
}

fn write_all(descriptor: &Descriptor, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(descriptor, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            // Another process that shares the description has made it non-blocking.
            Err(Errno::AGAIN) => match poll(&mut [PollFd::new(descriptor, PollFlags::OUT)], None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            },
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
