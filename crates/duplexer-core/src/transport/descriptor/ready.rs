//! Reads and writes when the reactor reports readiness.
//!
//! A read that does not fill the buffer has emptied the pipe, and a partial write has filled it. The readiness is cleared at
//! once, which saves the call that would only return `EAGAIN`.

use std::io;
use std::task::{Context, Poll, ready};

use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use tokio::io::unix::AsyncFd;

use super::Descriptor;
use crate::transport::lines::{Source, write_error};
use crate::transport::{Frames, TransportError};

/// How a call does not block: by a flag of the description, or by a flag of the call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    File,
    Socket,
}

impl Call {
    fn read(self, descriptor: &Descriptor, buffer: &mut Vec<u8>) -> Result<usize, Errno> {
        match self {
            Self::File => rustix::io::read(descriptor, spare_capacity(buffer)),
            Self::Socket => rustix::net::recv(descriptor, spare_capacity(buffer), RecvFlags::DONTWAIT)
                .map(|(read, _)| read),
        }
    }

    fn write(self, descriptor: &Descriptor, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::File => rustix::io::write(descriptor, bytes),
            Self::Socket => rustix::net::send(descriptor, bytes, SEND),
        }
    }
}

#[cfg(target_vendor = "apple")]
const SEND: SendFlags = SendFlags::DONTWAIT;
#[cfg(not(target_vendor = "apple"))]
const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

pub(in crate::transport) struct ReadySource {
    watched: AsyncFd<Descriptor>,
    call: Call,
}

impl ReadySource {
    pub(super) fn new(watched: AsyncFd<Descriptor>, call: Call) -> Self {
        Self { watched, call }
    }
}

impl Source for ReadySource {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.watched.poll_read_ready(cx))?;
            let spare = buffer.capacity() - buffer.len();
            match self.call.read(guard.get_inner(), buffer) {
                Ok(read) => {
                    if 0 < read && read < spare {
                        guard.clear_ready();
                    }
                    return Poll::Ready(Ok(read));
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

pub(in crate::transport) struct ReadySink {
    watched: AsyncFd<Descriptor>,
    call: Call,
}

impl ReadySink {
    pub(super) fn new(watched: AsyncFd<Descriptor>, call: Call) -> Self {
        Self { watched, call }
    }

    pub(super) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        frames: &mut Frames,
    ) -> Poll<Result<(), TransportError>> {
        while !frames.is_empty() {
            let mut guard = ready!(self.watched.poll_write_ready(cx))?;
            match self.call.write(guard.get_inner(), frames.bytes()) {
                Ok(written) => {
                    frames.advance(written);
                    if !frames.is_empty() {
                        guard.clear_ready();
                    }
                }
                Err(Errno::AGAIN) => guard.clear_ready(),
                Err(Errno::INTR) => {}
                Err(errno) => return Poll::Ready(Err(write_error(errno))),
            }
        }
        Poll::Ready(Ok(()))
    }
}
