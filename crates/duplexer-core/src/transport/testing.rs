//! Helpers of the transport tests.

use std::future::poll_fn;

use super::{FrameReader, FrameWriter, Frames, Incoming, TransportError};

pub(super) async fn next(reader: &mut Box<dyn FrameReader>) -> Option<Result<Incoming, TransportError>> {
    poll_fn(|cx| reader.poll_next(cx)).await
}

/// Returns the text of a message; panics for anything else.
#[track_caller]
pub(super) fn text(incoming: Option<Result<Incoming, TransportError>>) -> String {
    match incoming {
        Some(Ok(Incoming::Message(message))) => message.text.to_string(),
        other => panic!("not a message: {other:?}"),
    }
}

pub(super) async fn write(writer: &mut Box<dyn FrameWriter>, frame: &str) -> Result<(), TransportError> {
    let mut frames = Frames::default();
    frames.push(frame.as_bytes(), None);
    poll_fn(|cx| writer.poll_write(cx, &mut frames)).await
}

/// Returns the two ends of a terminal: the controlling one, and the one that programs see.
#[cfg(unix)]
pub(super) fn terminal() -> (std::fs::File, std::fs::File) {
    use rustix::fs::{Mode, OFlags};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&main).unwrap();
    unlockpt(&main).unwrap();
    let path = ptsname(&main, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    (main.into(), rustix::fs::open(path, flags, Mode::empty()).unwrap().into())
}
