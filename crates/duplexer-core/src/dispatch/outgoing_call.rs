//! A request of our own from its first byte to its response, whatever it travels on.

use std::borrow::Cow;
use std::pin::pin;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{self, RequestId};
use duplexer_types::meta::key;
use tokio::sync::oneshot;

use super::call_table::LockedCalls;
use super::call_timeout::CallTimeout;
use super::control_messages::{CANCELLED, Cancel};
use super::delivery::Delivery;
use super::frame::Frame;
use super::outbound::{CallOptions, OnDrop, OutboundHook, OutboundRequest, OutboundSpan, ProgressCallback};
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

    /// Called once the request is in the table, with the number of requests in it.
    fn registered(&mut self, outstanding: usize) {
        let _ = outstanding;
    }

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

/// Registers and writes a request; the future sends it and waits for the response. `params` take the place of those in the
/// request. Dropping the future cancels the request, unless it says otherwise.
///
/// What needs no waiting happens before there is a future, which is moved several times and should be small.
pub(crate) fn call<T: CallTransport>(
    transport: T,
    hook: Option<&dyn OutboundHook>,
    request: OutboundRequest,
    params: Option<Params>,
) -> impl Future<Output = Result<ByteString, CallError>> + Send + use<T> {
    let mut begun = BegunCall::new(transport, hook, request, params);
    async move {
        // Used where it is: a moved value would be in the future twice.
        match &mut begun {
            Ok(begun) => begun.run().await,
            Err(error) => Err(std::mem::replace(error, CallError::Closed)),
        }
    }
}

/// A request that is in the table, and written into a frame.
struct BegunCall<T: CallTransport> {
    registration: Registration<T>,
    response: oneshot::Receiver<Result<ByteString, CallError>>,
    span: Option<Box<dyn OutboundSpan>>,
    method: Cow<'static, str>,
    timeout: CallTimeout,
    frame: Vec<u8>,
}

impl<T: CallTransport> BegunCall<T> {
    fn new(
        mut transport: T,
        hook: Option<&dyn OutboundHook>,
        request: OutboundRequest,
        params: Option<Params>,
    ) -> Result<Self, CallError> {
        let OutboundRequest { method, mut meta, options, .. } = request;
        let (sender, response) = oneshot::channel();
        let entry = PendingCall { response: sender, on_progress: options.on_progress.clone() };
        let (id, outstanding) = transport.table().register(options.id.clone(), entry)?;
        transport.registered(outstanding);
        let on_drop = options.on_drop;
        let mut registration = Registration { transport, id, on_drop, is_sent: false, exchange: None };
        let id = &registration.id;
        add_progress_token(&mut meta, &options, id)?;
        let span = hook.map(|hook| hook.begin(id, &method, params.as_ref().map(Params::as_str), &mut meta));
        let mut frame = match encode(id, &method, params, meta) {
            Ok(frame) => frame,
            Err(error) => {
                if let Some(span) = span {
                    span.end(Err(&error));
                }
                return Err(error);
            }
        };
        // A detached request continues without its caller, so another task must poll it.
        if on_drop != OnDrop::Detach {
            registration.exchange = registration.transport.begin(id, &mut frame);
        }
        Ok(Self { registration, response, span, method, timeout: CallTimeout::of(options), frame })
    }

    /// Sends the request, unless it has begun, and waits for the response.
    async fn run(&mut self) -> Result<ByteString, CallError> {
        let outcome = self.response().await;
        if let Some(span) = self.span.take() {
            span.end(outcome.as_ref().map(|text| &**text));
        }
        outcome
    }

    async fn response(&mut self) -> Result<ByteString, CallError> {
        let Self { registration, response, method, timeout, frame, .. } = self;
        let position = match &registration.exchange {
            Some(_) => None,
            None => Some(registration.transport.send(std::mem::take(frame)).await?),
        };
        registration.is_sent = true;
        match wait(registration, response, position, timeout).await {
            Ok(outcome) => {
                registration.is_sent = false;
                outcome
            }
            Err(elapsed) => {
                registration.time_out(elapsed);
                Err(CallError::timeout(method))
            }
        }
    }
}

fn encode(
    id: &RequestId,
    method: &str,
    params: Option<Params>,
    meta: JsonObject,
) -> Result<Vec<u8>, CallError> {
    let params = params_with_meta(params, meta)?;
    let text = params.as_ref().map(Params::as_str);
    let mut frame = Vec::with_capacity(FRAME_OVERHEAD + method.len() + text.map_or(0, str::len));
    jsonrpc::write_request(&mut frame, id, method, text).map_err(CallError::Encode)?;
    Ok(frame)
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

/// Waits for the response to a request that was queued up to `position`, or whose exchange the caller polls. Fails with the
/// timeout that has elapsed.
async fn wait<T: CallTransport>(
    registration: &mut Registration<T>,
    response: &mut oneshot::Receiver<Result<ByteString, CallError>>,
    position: Option<u64>,
    timeout: &CallTimeout,
) -> Result<Result<ByteString, CallError>, Duration> {
    let Registration { transport, exchange, .. } = registration;
    let answered = async { response.await.unwrap_or(Err(CallError::Closed)) };
    let exchanged = async {
        let Some(exchange) = exchange else { return std::future::pending().await };
        match std::future::poll_fn(|cx| exchange.poll_exchange(cx)).await {
            Exchanged::Response(text) => response_of(text),
            Exchanged::Failed(failure) => Err(CallError::Transport(failure)),
            Exchanged::Elsewhere => std::future::pending().await,
        }
    };
    let unanswered = async {
        match position {
            Some(position) => unanswered(transport, position, timeout).await,
            None => Err(timeout.elapsed().await),
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
    timeout: &CallTimeout,
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
            elapsed = timeout.elapsed() => {
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
struct Registration<T: CallTransport> {
    transport: T,
    id: RequestId,
    on_drop: OnDrop,
    is_sent: bool,
    exchange: Option<Box<dyn PolledExchange>>,
}

impl<T: CallTransport> Registration<T> {
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
        let cancel = Cancel { request: &self.id, reason };
        let mut frame = Vec::new();
        if jsonrpc::write_notification(&mut frame, CANCELLED, Some(&cancel)).is_ok() {
            self.transport.send_cancel(&frame);
        }
    }
}

impl<T: CallTransport> Drop for Registration<T> {
    fn drop(&mut self) {
        let was_pending =
            self.transport.table().with_calls(|calls| calls.outgoing.abandon(&self.id).is_some());
        if self.is_sent && was_pending {
            self.cancel("caller cancelled");
        }
    }
}
