//! Reads and writes file descriptors by direct system calls.
//!
//! A descriptor that the reactor can watch is used when it is ready; any other has a thread. Either way one read fills the
//! buffer and one write takes all queued frames. Neither half knows whether it serves this process or a child.

mod kind;
mod ready;
mod thread;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::task::{Context, Poll};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdRegisterError};

use super::lines::Source;
use super::thread::ThreadSink;
use super::{FrameWriter, Frames, TransportError};

use kind::{Kind, kind, reopen, same_file};
use ready::{Call, ReadySink, ReadySource};
use thread::{WatchedSource, start_sink};

/// Requested capacity of a pipe: the maximum that Linux grants an unprivileged process.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 1024 * 1024;

/// A descriptor, and the flags to restore when it is dropped.
#[derive(Debug)]
pub(super) struct Descriptor {
    fd: Fd,
    /// The flags of its description before they were changed.
    flags: Option<OFlags>,
}

#[derive(Debug)]
enum Fd {
    Owned(OwnedFd),
    /// Standard input or output itself, if it could not be duplicated.
    Standard(BorrowedFd<'static>),
}

impl Descriptor {
    pub(super) fn owned(fd: impl Into<OwnedFd>) -> Self {
        Self { fd: Fd::Owned(fd.into()), flags: None }
    }

    pub(super) fn standard(fd: BorrowedFd<'static>) -> Self {
        Self { fd: Fd::Standard(fd), flags: None }
    }

    /// `O_NONBLOCK` is a flag of the description, which other processes may share: it is restored on drop.
    fn set_nonblocking(&mut self) -> io::Result<()> {
        let flags = fcntl_getfl(&*self)?;
        if !flags.contains(OFlags::NONBLOCK) {
            fcntl_setfl(&*self, flags | OFlags::NONBLOCK)?;
            self.flags = Some(flags);
        }
        Ok(())
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if let Some(flags) = self.flags {
            // A failure cannot be handled here, and the descriptor is being closed.
            let _ = fcntl_setfl(&*self, flags);
        }
    }
}

impl AsFd for Descriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.fd {
            Fd::Owned(fd) => fd.as_fd(),
            Fd::Standard(fd) => *fd,
        }
    }
}

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

/// How a descriptor is read and written.
enum Access {
    Ready(AsyncFd<Descriptor>, Call),
    Thread(Descriptor),
}

/// Chooses by the kind of the descriptor. Must be called in a runtime with I/O enabled.
fn access(descriptor: Descriptor, interest: Interest) -> io::Result<Access> {
    let (descriptor, call) = match kind(&descriptor)? {
        Kind::Socket => (descriptor, Call::Socket),
        Kind::Pipe => match private(descriptor, interest)? {
            Ok(descriptor) => {
                widen(&descriptor);
                (descriptor, Call::File)
            }
            Err(shared) => return Ok(Access::Thread(shared)),
        },
        Kind::Blocking => return Ok(Access::Thread(descriptor)),
    };
    match watch(descriptor, interest) {
        Ok(watched) => Ok(Access::Ready(watched, call)),
        Err(refused) => Ok(Access::Thread(refused.into_parts().0)),
    }
}

/// Makes a pipe non-blocking, unless stderr shares it: then its writers would see the flag.
fn private(mut descriptor: Descriptor, interest: Interest) -> io::Result<Result<Descriptor, Descriptor>> {
    let mode = if interest.is_readable() { OFlags::RDONLY } else { OFlags::WRONLY };
    if let Some(private) = reopen(&descriptor, mode) {
        return Ok(Ok(Descriptor::owned(private)));
    }
    if same_file(&descriptor, rustix::stdio::stderr()) {
        return Ok(Err(descriptor));
    }
    descriptor.set_nonblocking()?;
    Ok(Ok(descriptor))
}

/// Requests a pipe that holds more than one large message: each time it is full two processes have to take turns. The
/// system allocates memory for it only as needed, and can refuse.
fn widen(descriptor: &Descriptor) {
    #[cfg(target_os = "linux")]
    if rustix::pipe::fcntl_getpipe_size(descriptor).is_ok_and(|size| size < PIPE_BYTES) {
        let _ = rustix::pipe::fcntl_setpipe_size(descriptor, PIPE_BYTES);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = descriptor;
}

/// The read half of a descriptor.
pub(super) enum Input {
    Ready(ReadySource),
    Thread(WatchedSource),
}

impl Input {
    pub(super) fn open(descriptor: Descriptor) -> io::Result<Self> {
        Ok(match access(descriptor, Interest::READABLE)? {
            Access::Ready(watched, call) => Self::Ready(ReadySource::new(watched, call)),
            Access::Thread(descriptor) => Self::Thread(WatchedSource::start(descriptor)?),
        })
    }

    /// Opens our end of a pipe that we created: no other process shares its description.
    pub(super) fn own_pipe(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self::Ready(ReadySource::new(own_pipe(fd.into(), Interest::READABLE)?, Call::File)))
    }
}

impl Source for Input {
    fn poll_fill(&mut self, cx: &mut Context<'_>, buffer: &mut Vec<u8>) -> Poll<io::Result<usize>> {
        match self {
            Self::Ready(source) => source.poll_fill(cx, buffer),
            Self::Thread(source) => source.poll_fill(cx, buffer),
        }
    }
}

/// The write half of a descriptor. Closing it only means that everything is written: the descriptor lives as long as this
/// value.
pub(super) enum Output {
    Ready(ReadySink),
    Thread(ThreadSink),
}

impl Output {
    pub(super) fn open(descriptor: Descriptor) -> io::Result<Self> {
        Ok(match access(descriptor, Interest::WRITABLE)? {
            Access::Ready(watched, call) => Self::Ready(ReadySink::new(watched, call)),
            Access::Thread(descriptor) => Self::Thread(start_sink(descriptor)?),
        })
    }

    /// Opens our end of a pipe that we created: no other process shares its description.
    pub(super) fn own_pipe(fd: impl Into<OwnedFd>) -> io::Result<Self> {
        Ok(Self::Ready(ReadySink::new(own_pipe(fd.into(), Interest::WRITABLE)?, Call::File)))
    }
}

impl FrameWriter for Output {
    fn poll_write(&mut self, cx: &mut Context<'_>, frames: &mut Frames) -> Poll<Result<(), TransportError>> {
        match self {
            Self::Ready(sink) => sink.poll_write(cx, frames),
            Self::Thread(sink) => sink.poll_write(cx, frames),
        }
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.poll_write(cx, &mut Frames::default())
    }
}

fn own_pipe(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<Descriptor>> {
    let mut descriptor = Descriptor::owned(fd);
    descriptor.set_nonblocking()?;
    widen(&descriptor);
    Ok(watch(descriptor, interest)?)
}

#[expect(
    deprecated,
    reason = "the successor is unsafe, for the sake of types that change their descriptor; ours keeps it for life"
)]
fn watch(
    descriptor: Descriptor,
    interest: Interest,
) -> Result<AsyncFd<Descriptor>, AsyncFdRegisterError<Descriptor>> {
    AsyncFd::try_with_interest(descriptor, interest)
}

#[cfg(test)]
mod tests;
