//! Our own requests and notifications to the peer of a connection.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytestring::ByteString;
use duplexer_types::jsonrpc::{self, Body, RequestId};

use super::Writes;
use super::handle::with_scratch;
use super::shared::Shared;
use crate::dispatch::delivery::Delivery;
use crate::dispatch::outbound::{BoxFuture, CallOptions, NotifyFuture, OnDrop, Outbound, OutboundRequest};
use crate::dispatch::outbox::{Admission, Enqueued};
use crate::dispatch::outgoing_call::{self, CallTransport};
use crate::dispatch::params::Params;
use crate::error::CallError;
use crate::transport::{FrameMeta, PolledExchange};

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
        Box::pin(self.0.call(request, None, None))
    }

    fn forward(
        &self,
        request: OutboundRequest,
        params: ByteString,
    ) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(self.0.call(request, Some(params), None))
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
    pub(super) fn call(
        &self,
        mut request: OutboundRequest,
        verbatim: Option<ByteString>,
        related: Option<RequestId>,
    ) -> impl Future<Output = Result<ByteString, CallError>> + Send + use<'_> {
        if request.options.idle_timeout.is_none() {
            request.options.timeout = request.options.timeout.or(self.options.request_timeout);
        }
        let meta = meta(&mut request.options, related);
        // A call that can be resumed later is not cancelled at the peer.
        if meta.as_ref().is_some_and(|meta| meta.resumption.is_some()) {
            request.options.on_drop = OnDrop::Detach;
        }
        let params = request.params.take().map(Params::Json);
        let params = verbatim.map(Params::Text).or(params);
        outgoing_call::call(
            Queued { shared: self, meta, overlaps: false },
            self.options.hook.as_deref(),
            request,
            params,
        )
    }

    pub(super) fn notify(
        self: &Arc<Self>,
        method: &str,
        params: Option<&dyn Body>,
        related: Option<&RequestId>,
    ) -> NotifyFuture {
        let meta = related.map(|id| FrameMeta { related: Some(id.clone()), ..FrameMeta::default() });
        let outcome = with_scratch(|frame| {
            if let Err(error) = jsonrpc::write_notification(frame, method, params) {
                tracing::error!(method, %error, "a notification could not be written and is dropped");
                return NotifyOutcome::Done;
            }
            match self.outbox.try_enqueue_buffer(frame, meta.clone()) {
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
                    shared.outbox.send(&frame, meta).await;
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

/// Takes the metadata of a request's frame out of its options. The related request takes precedence over a resumption token.
/// Boxed: most frames have none.
fn meta(options: &mut CallOptions, related: Option<RequestId>) -> Option<Box<FrameMeta>> {
    let mut resumption = options.resumption.take();
    if related.is_some() && resumption.take().is_some() {
        tracing::debug!("a call on behalf of a request cannot be resumed: the resumption token is dropped");
    }
    let headers = std::mem::take(&mut options.headers);
    let is_plain = related.is_none() && headers.is_empty() && resumption.is_none();
    (!is_plain).then(|| Box::new(FrameMeta { related, headers, resumption }))
}

/// Sends an own request through the outbox.
struct Queued<'a> {
    shared: &'a Shared,
    meta: Option<Box<FrameMeta>>,
    /// Another request was outstanding when this one was made.
    overlaps: bool,
}

impl Queued<'_> {
    fn meta(&self) -> Option<FrameMeta> {
        self.meta.as_deref().cloned()
    }

    /// Has the request written: at once if the peer waits for nothing else, because another task would have to be woken for
    /// it. The first one after calls that overlapped is collected too: others probably follow.
    fn flush(&self) {
        let Self { shared: Shared { outbox, overlapped, .. }, overlaps, .. } = *self;
        // Not exchanged at once, which would cost more: it is a hint.
        let was_overlapped = overlapped.load(Ordering::Relaxed);
        overlapped.store(overlaps, Ordering::Relaxed);
        let may_collect = was_overlapped && self.shared.options.writes == Writes::Collected;
        if !overlaps && !may_collect && !outbox.is_flushed_by_worker() {
            outbox.flush();
        } else if self.shared.options.writes == Writes::Collected {
            outbox.request_flush_after_others();
        } else {
            outbox.request_flush();
        }
    }
}

impl CallTransport for Queued<'_> {
    type Table = Shared;

    fn table(&self) -> &Shared {
        self.shared
    }

    /// A reader that waits for capacity must read on now, or it would never see the response.
    fn registered(&mut self, outstanding: usize) {
        self.overlaps = outstanding > 1;
        self.shared.capacity_freed.notify_one();
    }

    fn begin(&self, id: &RequestId, frame: &mut Vec<u8>) -> Option<Box<dyn PolledExchange>> {
        self.shared.outbox.begin(id, frame, self.meta.as_deref())
    }

    async fn send(&self, frame: Vec<u8>) -> Result<u64, CallError> {
        let outbox = &self.shared.outbox;
        let position = match outbox.try_enqueue(&frame, self.meta(), Admission::Ordinary) {
            Enqueued::Queued(position) => Some(position),
            Enqueued::Closed => None,
            // Boxed: most frames fit at once.
            Enqueued::Full => Box::pin(outbox.send(&frame, self.meta())).await,
        };
        let position = position.ok_or(CallError::Closed)?;
        self.flush();
        Ok(position)
    }

    fn late_delivery(&self, position: u64) -> impl Future<Output = Delivery> + Send {
        self.shared.outbox.late_delivery(position)
    }

    fn is_written(&self, position: u64) -> bool {
        self.shared.outbox.is_written(position)
    }

    /// The capacity for this frame was reserved with the call.
    fn send_cancel(&self, frame: &[u8]) {
        let related = self.meta.as_ref().and_then(|meta| meta.related.clone());
        let meta = related.map(|related| FrameMeta { related: Some(related), ..FrameMeta::default() });
        self.shared.outbox.try_enqueue(frame, meta, Admission::Reserved);
        self.shared.outbox.request_flush();
    }
}
