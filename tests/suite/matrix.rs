//! What behaviours run over: which links there are in which revision, and which of them a behaviour cannot hold over.

use duplexer_core::server::Server;

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
    /// A socket, where every response is one JSON body.
    HttpJson,
    /// A socket, where a response with notifications is a stream of events.
    HttpStream,
}

/// What a behaviour needs that not every link has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Requests and their responses.
    Answers,
    /// To hear notifications on behalf of its requests: a single JSON body has no place for them.
    Telling,
    /// A connection that outlasts its requests, to be of one era or to end: over HTTP every POST stands for itself.
    Connection,
    /// That a notification cancels: over HTTP it is the end of the response that does, and notifications are dropped.
    Cancelling,
    /// The handshake era, or to begin before there is any: over HTTP this suite speaks the envelope era alone.
    Handshake,
    /// That nothing but the body is looked at: over HTTP the headers must agree with it first.
    BodyAlone,
    /// Arrays of messages: over HTTP a body is one message.
    Batches,
}

impl Link {
    const ALL: [Self; 5] = [Self::Memory, Self::Pipe, Self::Child, Self::HttpJson, Self::HttpStream];

    /// Those a behaviour of a revision can be shown over.
    pub fn of(revision: &str, needs: Needs) -> impl Iterator<Item = Self> {
        let http = revision == ENVELOPE;
        Self::ALL.into_iter().filter(move |link| match (link, needs) {
            (Self::Memory | Self::Pipe | Self::Child, _) => true,
            (Self::HttpJson, Needs::Answers) | (Self::HttpStream, Needs::Answers | Needs::Telling) => http,
            (Self::HttpJson | Self::HttpStream, _) => false,
        })
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
