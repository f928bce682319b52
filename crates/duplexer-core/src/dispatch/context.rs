//! What a handler gets beside its message: who asked, over what, and whether anybody still wants the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use duplexer_types::jsonrpc::RequestId;
use tokio::sync::Notify;

use super::outbound::Outbound;
use crate::transport::TransportContext;

/// The way back to the peer while one message is handled.
pub trait Channel: Outbound {
    /// Whether the peer, or the end of the connection, has called the message off.
    fn cancellation(&self) -> &Cancellation;

    /// Resolves when the connection is about to end: requests that stand for long should conclude now.
    fn closing(&self) -> &Cancellation;
}

/// A flag that is raised once and can be awaited.
#[derive(Debug, Default)]
pub struct Cancellation {
    raised: AtomicBool,
    changed: Notify,
}

impl Cancellation {
    /// Not raised yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Raises the flag.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    /// Whether the flag is raised.
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire)
    }

    /// Resolves when the flag is raised.
    pub async fn raised(&self) {
        let changed = self.changed.notified();
        tokio::pin!(changed);
        // Registered before the flag is looked at, so that a raise in between is not missed.
        changed.as_mut().enable();
        if !self.is_raised() {
            changed.await;
        }
    }
}

/// Who sent a message, over what, and how to answer beside the answer.
#[derive(Clone)]
#[non_exhaustive]
pub struct CallContext {
    /// The id of the request; `None` for a notification.
    pub id: Option<RequestId>,
    /// What the transport says about the message.
    pub transport: Arc<TransportContext>,
    /// The way back to the peer that belongs to this message.
    pub channel: Arc<dyn Channel>,
}

impl CallContext {
    /// A context of a transport that calls the kernel without a dispatcher.
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
