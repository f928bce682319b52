//! Our own requests and notifications to the peer.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, Body, RequestId};
use duplexer_types::meta::key;
use tokio::sync::oneshot;

use super::core::{Core, Phase, Waiter};
use super::handle::with_scratch;
use crate::dispatch::correlator::Taken;
use crate::dispatch::lock;
use crate::dispatch::outbound::{
    Abandon, BoxFuture, CallOptions, Outbound, OutboundRequest, Sending, params_with_meta,
};
use crate::dispatch::outbox::{Admission, Delivery, Offer};
use crate::dispatch::signals::{CANCELLED, Cancel};
use crate::error::CallError;
use crate::transport::Hints;

/// The way to the peer of a connection, beside any request of its own. Clones share the connection.
#[derive(Clone)]
pub struct Peer(Arc<Core>);

impl Peer {
    pub(super) fn new(core: Arc<Core>) -> Self {
        Self(core)
    }

    /// Ends the run as the end of the stream would: accepted requests are drained. A second call ends the drain.
    pub fn stop(&self) {
        self.0.stop.request();
    }
}

impl Peer {
    /// Resolves when the connection has begun to end.
    pub async fn closing(&self) {
        self.0.closing.raised().await;
    }
}

impl Outbound for Peer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(self.0.call(request, None))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> Sending {
        self.0.notify(method, params, None)
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer")
    }
}

impl Core {
    /// Sends a request on behalf of one of the peer's, if `related`, and waits for the answer.
    pub(super) async fn call(
        self: &Arc<Self>,
        request: OutboundRequest,
        related: Option<RequestId>,
    ) -> Result<ByteString, CallError> {
        let OutboundRequest { method, params, mut meta, options } = request;
        let (answer, receiver) = oneshot::channel();
        let id = self.register(&options, answer)?;
        let hints = hints(&options, related);
        let mut pending = Pending {
            core: self,
            id: &id,
            abandon: abandon(&options, hints.as_ref()),
            hints: &hints,
            sent: false,
        };
        if options.on_progress.is_some() {
            meta.insert(key::PROGRESS_TOKEN, Json::of(&id).map_err(CallError::Encode)?);
        }
        let span = self
            .options
            .hook
            .as_ref()
            .map(|hook| hook.begin(&id, &method, params.as_ref().map(Json::as_str), &mut meta));
        let outcome = async {
            let mut frame = Vec::new();
            let params = params_with_meta(params, meta).map_err(CallError::Encode)?;
            jsonrpc::write_request(&mut frame, &id, &method, params.as_ref()).map_err(CallError::Encode)?;
            let position = self.outbox.send(&frame, hints.clone()).await.ok_or(CallError::Closed)?;
            drop(frame);
            pending.sent = true;
            self.outbox.nudge();
            let outcome = self.wait(receiver, position, &method, &options).await;
            pending.settle(&outcome, options.timeout);
            outcome
        }
        .await;
        if let Some(span) = span {
            span.end(outcome.as_ref().map(|text| &**text));
        }
        outcome
    }

    fn register(
        &self,
        options: &CallOptions,
        answer: oneshot::Sender<Result<ByteString, CallError>>,
    ) -> Result<RequestId, CallError> {
        let mut table = lock(&self.table);
        match table.phase {
            Phase::Idle => return Err(CallError::NotRunning),
            Phase::Closed => return Err(CallError::Closed),
            Phase::Running => {}
        }
        let id = options.id.clone().unwrap_or_else(|| table.ours.mint());
        let waiter = Waiter { answer, on_progress: options.on_progress.clone() };
        table.ours.begin(id.clone(), waiter).map_err(|Taken| CallError::DuplicateId(id.clone()))?;
        drop(table);
        // A read loop that waits for room must read on now, or the answer would never be seen.
        self.room.notify_one();
        Ok(id)
    }

    async fn wait(
        &self,
        answer: oneshot::Receiver<Result<ByteString, CallError>>,
        position: u64,
        method: &str,
        options: &CallOptions,
    ) -> Result<ByteString, CallError> {
        let answered = async { answer.await.unwrap_or(Err(CallError::Closed)) };
        let unanswered = async {
            match (self.outbox.delivery(position).await, options.timeout) {
                (Delivery::Lost, _) => CallError::Closed,
                (Delivery::Written, None) => std::future::pending().await,
                (Delivery::Written, Some(timeout)) => {
                    options.clock.clone().unwrap_or_default().run_for(timeout).await;
                    CallError::timeout(method)
                }
            }
        };
        tokio::select! {
            biased;
            outcome = answered => outcome,
            failure = unanswered => Err(failure),
        }
    }

    pub(super) fn notify(
        self: &Arc<Self>,
        method: &str,
        params: Option<&dyn Body>,
        related: Option<&RequestId>,
    ) -> Sending {
        let hints = related.map(|id| Hints { related: Some(id.clone()), ..Hints::default() });
        let waiting = with_scratch(|frame| {
            if let Err(error) = jsonrpc::write_notification(frame, method, params) {
                tracing::error!(method, %error, "a notification could not be written and is dropped");
                return None;
            }
            match self.outbox.offer(frame, hints.clone(), Admission::Ordinary) {
                Offer::Taken(_) => {
                    self.outbox.nudge();
                    None
                }
                Offer::Full => Some(frame.clone()),
                Offer::Closed => {
                    tracing::debug!(method, "a notification to a closed peer is dropped");
                    None
                }
            }
        });
        match waiting {
            None => Sending::done(),
            Some(frame) => {
                let core = Arc::clone(self);
                Sending::waiting(async move {
                    core.outbox.send(&frame, hints).await;
                    core.outbox.nudge();
                })
            }
        }
    }
}

/// Routing beside the frame: the related request wins over where to resume.
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

/// A call that can be taken up again later is not called off at the peer.
fn abandon(options: &CallOptions, hints: Option<&Hints>) -> Abandon {
    if hints.is_some_and(|hints| hints.resumption.is_some()) { Abandon::Silent } else { options.abandon }
}

/// An own request between being registered and being settled. Dropped early, it tells the peer to stop.
struct Pending<'a> {
    core: &'a Core,
    id: &'a RequestId,
    abandon: Abandon,
    hints: &'a Option<Hints>,
    sent: bool,
}

impl Pending<'_> {
    fn settle(&mut self, outcome: &Result<ByteString, CallError>, timeout: Option<Duration>) {
        if let (Err(CallError::Timeout(_)), Some(timeout)) = (outcome, timeout) {
            self.call_off(&format!("timed out after {}s", timeout.as_secs_f64()));
        }
        self.sent = false;
    }

    /// The place of this frame was reserved with the call, because dropping cannot wait.
    fn call_off(&self, reason: &str) {
        if self.abandon == Abandon::Silent {
            return;
        }
        let cancel = Cancel { request: self.id, reason };
        let mut frame = Vec::new();
        if jsonrpc::write_notification(&mut frame, CANCELLED, Some(&cancel)).is_ok() {
            let related = self.hints.as_ref().and_then(|hints| hints.related.clone());
            let hints = related.map(|related| Hints { related: Some(related), ..Hints::default() });
            self.core.outbox.offer(&frame, hints, Admission::Reserved);
            self.core.outbox.nudge();
        }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        let waited = lock(&self.core.table).ours.abandon(self.id).is_some();
        if self.sent && waited {
            self.call_off("caller cancelled");
        }
    }
}
