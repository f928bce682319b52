//! The test matrix: the links of each revision, and the links that a test requires.

use duplexer_server::Server;

use crate::wire::Wire;
use crate::{ENVELOPE, HANDSHAKE};

/// The transport of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Memory,
    /// OS pipes within this process.
    Pipe,
    /// The standard streams of a server process.
    Child,
    /// A socket. Every response is one JSON body; handshakes open sessions.
    HttpJson,
    /// A socket. A response with notifications is an event stream; handshakes open sessions.
    HttpStream,
    /// Like `HttpStream`, without sessions.
    HttpStateless,
}

/// A property that a test requires and that not every link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Requests and their responses.
    Answers,
    /// Notifications within requests. A single JSON body cannot carry them.
    Notifications,
    /// Client state on the server, and messages outside requests. Over HTTP this requires a session, which neither the
    /// envelope era nor a server without sessions has.
    Session,
    /// Server requests within client requests: a session whose responses are streams.
    ServerRequests,
    /// Cancellation by a notification. Over HTTP this works in a session; elsewhere closing the response cancels.
    Cancelling,
    /// A connection that exists before its handshake, has one era, and ends. Over HTTP every POST is independent,
    /// and `initialize` always opens a session.
    Connection,
    /// Only the body is checked. Over HTTP the headers of the envelope era must match the body first.
    BodyAlone,
}

impl Link {
    const ALL: [Self; 6] =
        [Self::Memory, Self::Pipe, Self::Child, Self::HttpJson, Self::HttpStream, Self::HttpStateless];

    /// Returns whether every message is a separate HTTP request.
    pub fn is_http(self) -> bool {
        !matches!(self, Self::Memory | Self::Pipe | Self::Child)
    }

    /// Returns whether the server keeps state of a client of this revision between requests.
    pub fn is_stateful(self, revision: &str) -> bool {
        revision != ENVELOPE && self != Self::HttpStateless
    }

    fn has(self, revision: &str, needs: Needs) -> bool {
        match needs {
            _ if !self.is_http() => true,
            Needs::Answers => true,
            Needs::Notifications => self != Self::HttpJson,
            Needs::Session | Needs::Cancelling => self.is_stateful(revision),
            Needs::ServerRequests => self.is_stateful(revision) && self != Self::HttpJson,
            Needs::Connection => false,
            Needs::BodyAlone => revision != ENVELOPE,
        }
    }

    /// Returns the links of a revision that have a property.
    pub fn of(revision: &str, needs: Needs) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |link| link.has(revision, needs))
    }

    /// Returns those of them that can run a server that the test builds.
    pub fn in_process(revision: &str, needs: Needs) -> impl Iterator<Item = Self> {
        Self::of(revision, needs).filter(|link| *link != Self::Child)
    }
}

/// Runs a test against the fixture over every link, in both eras.
pub async fn everywhere<F: Future<Output = ()>>(needs: Needs, behaviour: impl Fn(Wire) -> F) {
    over_every_link(HANDSHAKE, needs, &behaviour).await;
    over_every_link(ENVELOPE, needs, &behaviour).await;
}

/// Runs a test of one revision against the fixture over every link.
pub async fn over_every_link<F: Future<Output = ()>>(
    revision: &str,
    needs: Needs,
    behaviour: impl Fn(Wire) -> F,
) {
    for link in Link::of(revision, needs) {
        let mut wire = Wire::fixture(link).await;
        wire.open(revision).await;
        behaviour(wire).await;
    }
}

/// Runs a test with its own server over every in-process link, in both eras.
pub async fn in_both_eras<F: Future<Output = ()>>(
    server: impl Fn() -> Server,
    behaviour: impl Fn(Wire) -> F,
) {
    for revision in [HANDSHAKE, ENVELOPE] {
        for link in Link::in_process(revision, Needs::Answers) {
            let mut wire = Wire::connect(link, server()).await;
            wire.open(revision).await;
            behaviour(wire).await;
        }
    }
}
