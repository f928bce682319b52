//! The kind of a descriptor, which decides how it is read and written without blocking the runtime.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, OFlags, fstat};
use rustix::net::SocketType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An anonymous pipe.
    Pipe,
    /// A stream socket: a call on it can be non-blocking without a flag of the shared description.
    Socket,
    /// A terminal, a file, a device, a named pipe, a socket of datagrams.
    Blocking,
}

pub(super) fn kind(fd: impl AsFd) -> rustix::io::Result<Kind> {
    let fd = fd.as_fd();
    Ok(match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::Fifo if is_anonymous(fd) => Kind::Pipe,
        FileType::Socket if rustix::net::sockopt::socket_type(fd) == Ok(SocketType::STREAM) => Kind::Socket,
        _ => Kind::Blocking,
    })
}

/// Returns whether a hang-up is final: another writer can open a named pipe again.
#[cfg(target_os = "linux")]
fn is_anonymous(fd: std::os::fd::BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;

    let link = std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str().as_encoded_bytes().starts_with(b"pipe:"))
}

#[cfg(not(target_os = "linux"))]
fn is_anonymous(_: std::os::fd::BorrowedFd<'_>) -> bool {
    true
}

/// Opens the same pipe with a non-blocking description of its own, so that other users of the pipe are not affected.
#[cfg(target_os = "linux")]
pub(super) fn reopen(fd: impl AsFd, mode: OFlags) -> Option<OwnedFd> {
    use std::os::fd::AsRawFd;

    let fd = fd.as_fd();
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    let flags = mode | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let private = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
    same_file(fd, &private).then_some(private)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn reopen(_: impl AsFd, _: OFlags) -> Option<OwnedFd> {
    None
}

/// Returns whether two descriptors refer to the same file, in which case they may share a description.
pub(super) fn same_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (fstat(one), fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}
