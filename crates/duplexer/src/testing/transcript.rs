//! What goes over a transport, written down.

use std::fmt;
use std::sync::{Arc, Mutex};

use crate::dispatch::lock;
use crate::transport::{Direction, Tap, Transport};

/// The frames of a connection in the order they passed: `-->` to the server, `<--` to the client.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Mutex<Vec<String>>>);

impl Transcript {
    /// A client's transport whose frames are written down here.
    pub fn of<T: Transport>(&self, transport: T) -> Tap<T> {
        let lines = Arc::clone(&self.0);
        Tap::new(transport, move |passing, frame| {
            let arrow = match passing {
                Direction::Out => "-->",
                Direction::In => "<--",
            };
            lock(&lines).push(format!("{arrow} {frame}"));
        })
    }

    /// One line per frame, each with its arrow.
    pub fn lines(&self) -> Vec<String> {
        lock(&self.0).clone()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines().iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
