//! What a handler gets in addition to its message: the sender, the transport, and whether the request is cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duplexer_types::jsonrpc::RequestId;
use tokio::sync::Notify;

use super::outbound::Outbound;
use crate::transport::TransportContext;

/// The channel back to the peer while one message is handled.
pub trait Channel: Outbound {
    /// Returns the cancellation of the message, by the peer or by the end of the connection.
    fn cancellation(&self) -> &Cancellation;

    /// Returns a cancellation that occurs when the connection is about to end: long-lived requests should end then.
    fn closing(&self) -> &Cancellation;
}

/// A flag that is set once and can be awaited.
#[derive(Debug, Default)]
pub struct Latch {
    is_set: AtomicBool,
    changed: Notify,
}

impl Latch {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the flag.
    pub fn set(&self) {
        self.is_set.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Returns whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Waits until the flag is set.
    pub async fn wait(&self) {
        // Notices changes from here on, so that one after the check of the flag is not missed.
        let changed = self.changed.notified();
        if !self.is_set() {
            changed.await;
        }
    }
}

/// The cancellation of a request or a connection, which can be awaited.
///
/// ```
/// use std::sync::Arc;
///
/// use duplexer_core::dispatch::Cancellation;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cancellation = Arc::new(Cancellation::new());
/// let watched = Arc::clone(&cancellation);
/// let waiting = tokio::spawn(async move { watched.cancelled().await });
/// cancellation.cancel();
/// waiting.await?;
/// assert!(cancellation.is_cancelled());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct Cancellation(Latch);

impl Cancellation {
    /// Creates a cancellation that has not occurred.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels.
    pub fn cancel(&self) {
        self.0.set();
    }

    /// Returns whether it is cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_set()
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        self.0.wait().await;
    }
}

/// The sender and transport of a message, and the channel back to the peer.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// The id of the request; `None` for a notification.
    pub id: Option<RequestId>,
    /// The transport's context of the message.
    pub transport: Arc<TransportContext>,
    /// The channel back to the peer that belongs to this message.
    pub channel: Arc<dyn Channel>,
}

impl CallContext {
    /// Creates a context. For transports that call the kernel without a dispatcher.
    pub fn new(id: Option<RequestId>, transport: Arc<TransportContext>, channel: Arc<dyn Channel>) -> Self {
        Self { id, transport, channel }
    }
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("id", &self.id)
            .field("transport", &self.transport.kind)
            .finish_non_exhaustive()
    }
}
