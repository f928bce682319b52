//! A request of our own from its first byte to its answer, whatever it travels on.

use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, RequestId};
use duplexer_types::meta::key;
use tokio::sync::oneshot;

use super::control_messages::{CANCELLED, Cancel};
use super::outbound::{
    Abandon, CallOptions, OutboundHook, OutboundRequest, ProgressCallback, params_with_meta,
};
use super::outbox::Delivery;
use crate::error::CallError;

/// One of our own requests, seen from its answer.
pub(crate) struct PendingCall {
    answer: oneshot::Sender<Result<ByteString, CallError>>,
    on_progress: Option<ProgressCallback>,
}

impl PendingCall {
    /// The caller may be gone by now, which is its right.
    pub(crate) fn settle(self, answer: Result<ByteString, CallError>) {
        let _ = self.answer.send(answer);
    }

    pub(crate) fn on_progress(&self) -> Option<ProgressCallback> {
        self.on_progress.clone()
    }
}

/// What a request of our own travels on.
pub(crate) trait CallTransport: Send + Sync {
    /// Keeps the waiter under the chosen id, or under a fresh one.
    fn register(&self, chosen: Option<&RequestId>, waiter: PendingCall) -> Result<RequestId, CallError>;

    /// Nobody waits any more; whether somebody did.
    fn abandon(&self, id: &RequestId) -> bool;

    /// Queues the request, and says where in the queue it is.
    fn send(&self, frame: Vec<u8>) -> impl Future<Output = Result<u64, CallError>> + Send;

    /// What has become of the request.
    fn delivery(&self, position: u64) -> impl Future<Output = Delivery> + Send;

    /// Tells the peer to stop. There is always room for it, because dropping cannot wait.
    fn cancel(&self, frame: &[u8]);
}

/// Asks the peer. Dropping the future tells it to stop, unless the request says otherwise.
pub(crate) async fn call(
    line: &impl CallTransport,
    hook: Option<&dyn OutboundHook>,
    request: OutboundRequest,
) -> Result<ByteString, CallError> {
    let OutboundRequest { method, params, mut meta, options } = request;
    let (answer, receiver) = oneshot::channel();
    let waiter = PendingCall { answer, on_progress: options.on_progress.clone() };
    let id = line.register(options.id.as_ref(), waiter)?;
    let mut pending = Pending { line, id: &id, abandon: options.abandon, sent: false };
    if options.on_progress.is_some() {
        meta.insert(key::PROGRESS_TOKEN, Json::encode(&id).map_err(CallError::Encode)?);
    }
    let span = hook.map(|hook| hook.begin(&id, &method, params.as_ref().map(Json::as_str), &mut meta));
    let outcome = async {
        let mut frame = Vec::new();
        let params = params_with_meta(params, meta).map_err(CallError::Encode)?;
        jsonrpc::write_request(&mut frame, &id, &method, params.as_ref()).map_err(CallError::Encode)?;
        let position = line.send(frame).await?;
        pending.sent = true;
        let outcome = wait(line, receiver, position, &method, &options).await;
        pending.settle(&outcome, options.timeout);
        outcome
    }
    .await;
    if let Some(span) = span {
        span.end(outcome.as_ref().map(|text| &**text));
    }
    outcome
}

async fn wait(
    line: &impl CallTransport,
    answer: oneshot::Receiver<Result<ByteString, CallError>>,
    position: u64,
    method: &str,
    options: &CallOptions,
) -> Result<ByteString, CallError> {
    let answered = async { answer.await.unwrap_or(Err(CallError::Closed)) };
    let unanswered = async {
        match (line.delivery(position).await, options.timeout) {
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

/// An own request between being registered and being settled. Dropped early, it tells the peer to stop.
struct Pending<'a, L: CallTransport> {
    line: &'a L,
    id: &'a RequestId,
    abandon: Abandon,
    sent: bool,
}

impl<L: CallTransport> Pending<'_, L> {
    fn settle(&mut self, outcome: &Result<ByteString, CallError>, timeout: Option<Duration>) {
        if let (Err(CallError::Timeout(_)), Some(timeout)) = (outcome, timeout) {
            self.cancel(&format!("timed out after {}s", timeout.as_secs_f64()));
        }
        self.sent = false;
    }

    fn cancel(&self, reason: &str) {
        if self.abandon == Abandon::Silent {
            return;
        }
        let cancel = Cancel { request: self.id, reason };
        let mut frame = Vec::new();
        if jsonrpc::write_notification(&mut frame, CANCELLED, Some(&cancel)).is_ok() {
            self.line.cancel(&frame);
        }
    }
}

impl<L: CallTransport> Drop for Pending<'_, L> {
    fn drop(&mut self) {
        let waited = self.line.abandon(self.id);
        if self.sent && waited {
            self.cancel("caller cancelled");
        }
    }
}
