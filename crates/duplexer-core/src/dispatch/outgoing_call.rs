//! A request of our own from its first byte to its response, whatever it travels on.

use std::pin::pin;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{self, RequestId};
use duplexer_types::meta::key;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::call_table::LockedCalls;
use super::control_messages::{CANCELLED, Cancel};
use super::delivery::Delivery;
use super::frame::Frame;
use super::outbound::{CallOptions, OnDrop, OutboundHook, OutboundRequest, ProgressCallback};
use super::params::{Params, params_with_meta};
use crate::error::CallError;
use crate::transport::{Exchanged, PolledExchange, TransportFailure};

/// The table entry of one of our own requests.
pub(crate) struct PendingCall {
    response: oneshot::Sender<Result<ByteString, CallError>>,
    on_progress: Option<ProgressCallback>,
}

impl PendingCall {
    /// Hands the response to the caller, unless the caller has gone.
    pub(crate) fn settle(self, response: Result<ByteString, CallError>) {
        let _ = self.response.send(response);
    }

    pub(crate) fn on_progress(&self) -> Option<ProgressCallback> {
        self.on_progress.clone()
    }
}

/// What a request of our own travels on.
pub(crate) trait CallTransport: Send + Sync {
    type Table: LockedCalls;

    /// Returns the table that the peer's response is looked up in.
    fn table(&self) -> &Self::Table;

    /// Called once the request is in the table.
    fn registered(&self) {}

    /// Begins the request at once if the caller can poll its exchange with the peer. `frame` is taken then.
    fn begin(&self, id: &RequestId, frame: &mut Vec<u8>) -> Option<Box<dyn PolledExchange>> {
        let _ = (id, frame);
        None
    }

    /// Queues the request and returns its position in the queue.
    fn send(&self, frame: Vec<u8>) -> impl Future<Output = Result<u64, CallError>> + Send;

    /// Waits until the request is lost, or is written after it had to wait for the peer. Never, if it is written at once.
    fn late_delivery(&self, position: u64) -> impl Future<Output = Delivery> + Send;

    /// Returns whether the request is written.
    fn is_written(&self, position: u64) -> bool;

    /// Sends a cancellation. It always fits into the queue, because `Drop` cannot wait.
    fn send_cancel(&self, frame: &[u8]);
}

/// Bytes of a request besides its method and its params: more than enough for an id that is a number.
const FRAME_OVERHEAD: usize = 80;

/// Sends a request and waits for the response. `params` take the place of those in the request. Dropping the future cancels
/// it, unless the request says otherwise.
pub(crate) async fn call(
    transport: &impl CallTransport,
    hook: Option<&dyn OutboundHook>,
    request: OutboundRequest,
    params: Option<Params>,
) -> Result<ByteString, CallError> {
    let OutboundRequest { method, mut meta, options, .. } = request;
    let (response, receiver) = oneshot::channel();
    let entry = PendingCall { response, on_progress: options.on_progress.clone() };
    let id = transport.table().register(options.id.clone(), entry)?;
    transport.registered();
    let on_drop = options.on_drop;
    let mut registration = Registration { transport, id: &id, on_drop, is_sent: false, exchange: None };
    add_progress_token(&mut meta, &options, &id)?;
    let span = hook.map(|hook| hook.begin(&id, &method, params.as_ref().map(Params::as_str), &mut meta));
    let outcome = async {
        let mut frame = Vec::new();
        let params = params_with_meta(params, meta)?;
        let text = params.as_ref().map(Params::as_str);
        frame.reserve_exact(FRAME_OVERHEAD + method.len() + text.map_or(0, str::len));
        jsonrpc::write_request(&mut frame, &id, &method, text).map_err(CallError::Encode)?;
        // A detached request continues without its caller, so another task must poll it.
        if on_drop != OnDrop::Detach {
            registration.exchange = transport.begin(&id, &mut frame);
        }
        let exchange = registration.exchange.as_deref_mut();
        let sent = match exchange {
            Some(exchange) => Sent::Begun(exchange),
            None => Sent::Queued(transport.send(frame).await?),
        };
        registration.is_sent = true;
        match wait(transport, receiver, sent, &options).await {
            Ok(outcome) => {
                registration.is_sent = false;
                outcome
            }
            Err(elapsed) => {
                registration.time_out(elapsed);
                Err(CallError::timeout(&method))
            }
        }
    }
    .await;
    if let Some(span) = span {
        span.end(outcome.as_ref().map(|text| &**text));
    }
    outcome
}

/// Requests progress notifications, if the caller listens to them. The token is the id of the request.
pub(crate) fn add_progress_token(
    meta: &mut JsonObject,
    options: &CallOptions,
    id: &RequestId,
) -> Result<(), CallError> {
    if options.on_progress.is_some() {
        meta.insert(key::PROGRESS_TOKEN, Json::encode(id).map_err(CallError::Encode)?);
    }
    Ok(())
}

/// Resolves with the timeout that has elapsed on the clock of the call; never, if there is none.
pub(crate) async fn timeout(options: &CallOptions) -> Duration {
    let (Some(limit), total) = (shorter(options.timeout, options.idle_timeout), options.timeout) else {
        return std::future::pending().await;
    };
    let clock = options.clock.clone().unwrap_or_default();
    let Some((idle, reports)) = options.idle_timeout.zip(options.on_progress.as_ref()) else {
        clock.run_for(limit).await;
        return limit;
    };
    let (start, paused) = (Instant::now(), clock.paused());
    loop {
        let running = start.elapsed().saturating_sub(clock.paused().saturating_sub(paused));
        let left = total.map(|total| total.saturating_sub(running));
        let next = shorter(left, Some(idle)).unwrap_or(idle);
        tokio::select! {
            biased;
            () = clock.run_for(next) => return if left == Some(next) { total.unwrap_or(idle) } else { idle },
            () = reports.reported() => {}
        }
    }
}

fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// How a request was sent.
enum Sent<'a> {
    /// The caller polls its exchange.
    Begun(&'a mut dyn PolledExchange),
    /// It is queued, up to this position.
    Queued(u64),
}

/// Waits for the response. Fails with the timeout that has elapsed.
async fn wait(
    transport: &impl CallTransport,
    response: oneshot::Receiver<Result<ByteString, CallError>>,
    sent: Sent<'_>,
    options: &CallOptions,
) -> Result<Result<ByteString, CallError>, Duration> {
    let answered = async { response.await.unwrap_or(Err(CallError::Closed)) };
    let position = match &sent {
        Sent::Begun(_) => None,
        Sent::Queued(position) => Some(*position),
    };
    let exchanged = async {
        let Sent::Begun(exchange) = sent else { return std::future::pending().await };
        match std::future::poll_fn(|cx| exchange.poll_exchange(cx)).await {
            Exchanged::Response(text) => response_of(text),
            Exchanged::Failed(failure) => Err(CallError::Transport(failure)),
            Exchanged::Elsewhere => std::future::pending().await,
        }
    };
    let unanswered = async {
        match position {
            Some(position) => unanswered(transport, position, options).await,
            None => Err(timeout(options).await),
        }
    };
    tokio::select! {
        biased;
        outcome = answered => Ok(outcome),
        outcome = exchanged => Ok(outcome),
        ended = unanswered => ended,
    }
}

/// Waits until a queued request is lost, or its time is over: it counts from the end of the write.
async fn unanswered(
    transport: &impl CallTransport,
    position: u64,
    options: &CallOptions,
) -> Result<Result<ByteString, CallError>, Duration> {
    let mut late = pin!(transport.late_delivery(position));
    let mut is_late = false;
    loop {
        tokio::select! {
            biased;
            delivery = late.as_mut(), if !is_late => match delivery {
                Delivery::Lost => return Ok(Err(CallError::Closed)),
                Delivery::Written => is_late = true,
            },
            elapsed = timeout(options) => {
                if transport.is_written(position) {
                    return Err(elapsed);
                }
            }
        }
    }
}

/// Reads the response to a request that has had an exchange of its own.
fn response_of(text: ByteString) -> Result<ByteString, CallError> {
    match Frame::parse_owned(text) {
        Ok(Frame::Response(_, response)) => response,
        _ => Err(CallError::Transport(TransportFailure::Protocol("it does not answer the request".into()))),
    }
}

/// An own request while it is in the table. Dropped early, it cancels the request at the peer.
struct Registration<'a, T: CallTransport> {
    transport: &'a T,
    id: &'a RequestId,
    on_drop: OnDrop,
    is_sent: bool,
    exchange: Option<Box<dyn PolledExchange>>,
}

impl<T: CallTransport> Registration<'_, T> {
    fn time_out(&mut self, timeout: Duration) {
        self.cancel(&format!("timed out after {}s", timeout.as_secs_f64()));
        self.is_sent = false;
    }

    fn cancel(&mut self, reason: &str) {
        if self.on_drop == OnDrop::Detach {
            return;
        }
        if let Some(exchange) = self.exchange.take() {
            exchange.release();
        }
        let cancel = Cancel { request: self.id, reason };
        let mut frame = Vec::new();
        if jsonrpc::write_notification(&mut frame, CANCELLED, Some(&cancel)).is_ok() {
            self.transport.send_cancel(&frame);
        }
    }
}

impl<T: CallTransport> Drop for Registration<'_, T> {
    fn drop(&mut self) {
        let was_pending =
            self.transport.table().with_calls(|calls| calls.outgoing.abandon(self.id).is_some());
        if self.is_sent && was_pending {
            self.cancel("caller cancelled");
        }
    }
}
