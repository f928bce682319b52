//! What behaviours run over: which links there are in which revision, and which of them a behaviour cannot hold over.

use duplexer_server::Server;

use crate::wire::Wire;
use crate::{ENVELOPE, HANDSHAKE};

/// What a connection runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    Memory,
    /// Pipes of the operating system, within this process.
    Pipe,
    /// The standard streams of a server process.
    Child,
    /// A socket, where every response is one JSON body. Handshakes open sessions.
    HttpJson,
    /// A socket, where a response with notifications is a stream of events. Handshakes open sessions.
    HttpStream,
    /// The same without sessions.
    HttpStateless,
}

/// What a behaviour needs that not every link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Requests and their responses.
    Answers,
    /// To hear notifications on behalf of its requests: a single JSON body has no place for them.
    Telling,
    /// A server that remembers its client and reaches it beside its requests: over HTTP that takes a session, which the
    /// envelope era does not have, nor a server without sessions.
    Session,
    /// To be asked on behalf of its requests, by a server that remembers it: a session whose responses are streams.
    Dialogue,
    /// That a notification cancels. Over HTTP it does in a session; elsewhere the end of the response cancels.
    Cancelling,
    /// A connection that is there before its handshake, is of one era, and ends: over HTTP every POST stands for itself,
    /// and `initialize` opens a session whatever was said before.
    Connection,
    /// That nothing but the body is looked at: over HTTP the headers of the envelope era must agree with it first.
    BodyAlone,
}

impl Link {
    const ALL: [Self; 6] =
        [Self::Memory, Self::Pipe, Self::Child, Self::HttpJson, Self::HttpStream, Self::HttpStateless];

    /// Whether every message is a request of its own.
    pub fn is_http(self) -> bool {
        !matches!(self, Self::Memory | Self::Pipe | Self::Child)
    }

    /// Whether the server remembers a client of this revision from one request to the next.
    pub fn remembers(self, revision: &str) -> bool {
        revision != ENVELOPE && self != Self::HttpStateless
    }

    fn has(self, revision: &str, needs: Needs) -> bool {
        match needs {
            _ if !self.is_http() => true,
            Needs::Answers => true,
            Needs::Telling => self != Self::HttpJson,
            Needs::Session | Needs::Cancelling => self.remembers(revision),
            Needs::Dialogue => self.remembers(revision) && self != Self::HttpJson,
            Needs::Connection => false,
            Needs::BodyAlone => revision != ENVELOPE,
        }
    }

    /// Those a behaviour of a revision can be shown over.
    pub fn of(revision: &str, needs: Needs) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |link| link.has(revision, needs))
    }

    /// Those of them that reach a server made by the test itself.
    pub fn in_process(revision: &str, needs: Needs) -> impl Iterator<Item = Self> {
        Self::of(revision, needs).filter(|link| *link != Self::Child)
    }
}

/// Runs a behaviour against the fixture over every link, in both eras.
pub async fn everywhere<F: Future<Output = ()>>(needs: Needs, behaviour: impl Fn(Wire) -> F) {
    over_every_link(HANDSHAKE, needs, &behaviour).await;
    over_every_link(ENVELOPE, needs, &behaviour).await;
}

/// Runs a behaviour of one revision against the fixture over every link.
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

/// Runs a behaviour of a server of its own over every link that reaches it, in both eras.
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
