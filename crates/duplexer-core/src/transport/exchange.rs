//! Own requests whose exchange with the peer is polled by their callers.

use std::task::{Context, Poll};

use bytestring::ByteString;

use super::TransportFailure;

/// An own request on its way, and its response. Dropping it abandons both.
///
/// Only transports that give every request a channel of its own have them, such as one HTTP request each.
pub trait PolledExchange: Send {
    /// Polls for the end. It is not called again after `Ready`.
    fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<Exchanged>;

    /// Called instead of dropping when the caller is gone and the cancellation follows. A transport whose cancellation is a
    /// message keeps the exchange until the peer has reacted.
    fn release(self: Box<Self>);
}

/// How a [`PolledExchange`] has ended.
#[derive(Debug)]
#[non_exhaustive]
pub enum Exchanged {
    /// With the text of the response.
    Response(ByteString),
    /// Without a response.
    Failed(TransportFailure),
    /// The response is read elsewhere: the reader half yields it.
    Elsewhere,
}
