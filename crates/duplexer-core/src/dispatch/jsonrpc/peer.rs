//! Our own requests and notifications to the peer of a connection.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_types::jsonrpc::{self, Body, RequestId};

use super::handle::with_scratch;
use super::shared::Shared;
use crate::dispatch::outbound::{BoxFuture, CallOptions, NotifyFuture, OnDrop, Outbound, OutboundRequest};
use crate::dispatch::outbox::{Admission, Delivery, Enqueued};
use crate::dispatch::outgoing_call::{self, CallTransport};
use crate::error::CallError;
use crate::transport::Hints;

/// Channel to the peer of a connection, outside any request of the peer. Clones share the connection.
#[derive(Clone)]
pub struct Peer(Arc<Shared>);

impl Peer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// Ends the run like the end of the stream does: accepted requests are drained. A second call ends the drain.
    pub fn stop(&self) {
        self.0.stop.request();
    }

    /// Resolves when the connection has begun to end.
    pub async fn closing(&self) {
        self.0.closing.cancelled().await;
    }
}

impl Outbound for Peer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(self.0.call(request, None))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.0.notify(method, params, None)
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer")
    }
}

impl Shared {
    pub(super) async fn call(
        &self,
        mut request: OutboundRequest,
        related: Option<RequestId>,
    ) -> Result<ByteString, CallError> {
        let hints = hints(&request.options, related);
        // A call that can be resumed later is not cancelled at the peer.
        if hints.as_ref().is_some_and(|hints| hints.resumption.is_some()) {
            request.options.on_drop = OnDrop::Detach;
        }
        outgoing_call::call(&Queued { shared: self, hints }, self.options.hook.as_deref(), request).await
    }

    pub(super) fn notify(
        self: &Arc<Self>,
        method: &str,
        params: Option<&dyn Body>,
        related: Option<&RequestId>,
    ) -> NotifyFuture {
        let hints = related.map(|id| Hints { related: Some(id.clone()), ..Hints::default() });
        let outcome = with_scratch(|frame| {
            if let Err(error) = jsonrpc::write_notification(frame, method, params) {
                tracing::error!(method, %error, "a notification could not be written and is dropped");
                return NotifyOutcome::Done;
            }
            match self.outbox.try_enqueue_buffer(frame, hints.clone()) {
                Enqueued::Queued(_) => {
                    self.outbox.request_flush();
                    NotifyOutcome::Done
                }
                Enqueued::Full => NotifyOutcome::Later(std::mem::take(frame)),
                Enqueued::Closed => {
                    tracing::debug!(method, "a notification to a closed peer is dropped");
                    NotifyOutcome::Closed
                }
            }
        });
        match outcome {
            NotifyOutcome::Done => NotifyFuture::done(),
            // A handler that does nothing but notify would never be pending again, and could not be interrupted.
            NotifyOutcome::Closed => NotifyFuture::waiting(tokio::task::yield_now()),
            NotifyOutcome::Later(frame) => {
                let shared = Arc::clone(self);
                NotifyFuture::waiting(async move {
                    shared.outbox.send(&frame, hints).await;
                    shared.outbox.request_flush();
                })
            }
        }
    }
}

/// What has become of a notification.
enum NotifyOutcome {
    Done,
    Later(Vec<u8>),
    Closed,
}

/// Returns the metadata of a request's frame. The related request takes precedence over a resumption token.
fn hints(options: &CallOptions, related: Option<RequestId>) -> Option<Hints> {
    if related.is_some() {
        if options.resumption.is_some() {
            tracing::debug!(
                "a call on behalf of a request cannot be resumed: the resumption token is dropped"
            );
        }
        return Some(Hints { related, headers: options.headers.clone(), resumption: None });
    }
    let plain = options.headers.is_empty() && options.resumption.is_none();
    (!plain).then(|| Hints {
        related,
        headers: options.headers.clone(),
        resumption: options.resumption.clone(),
    })
}

/// Sends an own request through the outbox.
struct Queued<'a> {
    shared: &'a Shared,
    hints: Option<Hints>,
}

impl CallTransport for Queued<'_> {
    type Table = Shared;

    fn table(&self) -> &Shared {
        self.shared
    }

    /// A reader that waits for capacity must read on now, or it would never see the response.
    fn registered(&self) {
        self.shared.capacity_freed.notify_one();
    }

    async fn send(&self, frame: Vec<u8>) -> Result<u64, CallError> {
        let outbox = &self.shared.outbox;
        let position = outbox.send(&frame, self.hints.clone()).await.ok_or(CallError::Closed)?;
        outbox.request_flush();
        Ok(position)
    }

    async fn delivery(&self, position: u64) -> Delivery {
        self.shared.outbox.delivery(position).await
    }

    /// The capacity for this frame was reserved with the call.
    fn send_cancel(&self, frame: &[u8]) {
        let related = self.hints.as_ref().and_then(|hints| hints.related.clone());
        let hints = related.map(|related| Hints { related: Some(related), ..Hints::default() });
        self.shared.outbox.try_enqueue(frame, hints, Admission::Reserved);
        self.shared.outbox.request_flush();
    }
}
