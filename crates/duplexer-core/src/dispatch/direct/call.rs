//! Requests and notifications from one end of an in-process connection to the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::{Body, RequestId};

use super::{Receive, Side};
use crate::dispatch::call_timeout::CallTimeout;
use crate::dispatch::context::{Cancellation, Channel};
use crate::dispatch::in_flight::Taken;
use crate::dispatch::jsonrpc::FailureMode;
use crate::dispatch::outbound::{BoxFuture, NotifyFuture, Outbound, OutboundRequest, ProgressCallback};
use crate::dispatch::outgoing_call;
use crate::dispatch::panic::CatchUnwind;
use crate::dispatch::params::{Params, params_with_meta};
use crate::dispatch::{CallContext, Message, NotificationRoute, control_messages, lock};
use crate::error::{CallError, Chain, McpError};
use crate::transport::BackChannel;

/// Returns a result as JSON text.
pub(super) fn text_of<B: Body + ?Sized>(body: &B) -> Result<ByteString, McpError> {
    let mut text = Vec::new();
    body.write(&mut text).map_err(McpError::internal)?;
    String::from_utf8(text).map(ByteString::from).map_err(McpError::internal)
}

/// Sends a request to `there` and waits, within the caller's timeout, for its start and for the handler.
pub(super) async fn request(
    here: Arc<Side>,
    there: Arc<Side>,
    request: OutboundRequest,
) -> Result<ByteString, CallError> {
    let OutboundRequest { method, params, mut meta, options } = request;
    let id = ReservedId::new(&there, options.id.clone())?;
    outgoing_call::add_progress_token(&mut meta, &options, &id.id)?;
    let params = params_with_meta(params.map(Params::Json), meta)?;
    let message = Message::new(method.to_string(), params.map(|params| params.as_str().into()));
    let call = Arc::new(DirectCall {
        caller: here,
        callee: Arc::clone(&there),
        on_progress: options.on_progress.clone(),
        token: id.id.clone(),
        cancellation: Cancellation::new(),
        ended: AtomicBool::new(false),
    });
    let (timeout, ending) = (CallTimeout::of(options), EndOnDrop(Arc::clone(&call)));
    let answered = async {
        let receiver = there.receiver().await.ok_or(CallError::Closed)?;
        let cx = CallContext::new(Some(id.id.clone()), Arc::clone(&there.context), Arc::clone(&call) as _);
        let answer = handle(&*receiver, cx, Arc::new(message)).await;
        answer.map_err(|failure| CallError::Rpc(show(&there, &failure, &method)))
    };
    let answered = async {
        tokio::select! {
            biased;
            outcome = answered => outcome,
            () = there.closed.wait() => Err(CallError::Closed),
            () = call.caller.closed.wait() => Err(CallError::Closed),
        }
    };
    let outcome = tokio::select! {
        biased;
        outcome = answered => outcome,
        timeout = timeout.elapsed() => {
            let text = format!("Timed out after {}s waiting for '{method}'", timeout.as_secs_f64());
            Err(CallError::Timeout(text.into()))
        }
    };
    drop(ending);
    outcome
}

/// Runs a handler and catches its panics.
async fn handle(receiver: &dyn Receive, cx: CallContext, call: Arc<Message>) -> Result<ByteString, McpError> {
    CatchUnwind::new(|| receiver.request(cx, call))?.await?
}

/// Returns the error that the caller sees. It has the text of the failure if the options say so.
fn show(there: &Side, failure: &McpError, method: &str) -> ErrorObject {
    let error = failure.to_wire(method);
    if there.failures == FailureMode::Raise && !failure.is_deliberate() {
        let text = std::error::Error::source(failure)
            .map_or_else(|| failure.to_string(), |cause| Chain(cause).to_string());
        return ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
    }
    error
}

/// Sends a notification to `there`. The future resolves when it has been handled.
pub(super) fn notify(
    here: Arc<Side>,
    there: Arc<Side>,
    method: &str,
    params: Option<&dyn Body>,
) -> NotifyFuture {
    let params = match params.map(text_of).transpose() {
        Ok(params) => params,
        Err(error) => {
            tracing::error!(method, %error, "a notification could not be written and is dropped");
            return NotifyFuture::done();
        }
    };
    let call = Message::new(method.to_owned(), params);
    NotifyFuture::waiting(async move {
        let Some(receiver) = there.receiver().await else { return };
        if receiver.on_notification_read(&call) == NotificationRoute::Consume {
            return;
        }
        let channel = DirectCall {
            caller: here,
            callee: Arc::clone(&there),
            on_progress: None,
            token: RequestId::from(0_i64),
            cancellation: Cancellation::new(),
            ended: AtomicBool::new(false),
        };
        let method = call.method().to_owned();
        let cx = CallContext::new(None, Arc::clone(&there.context), Arc::new(channel));
        let handled = async { CatchUnwind::new(|| receiver.notification(cx, Arc::new(call)))?.await };
        if let Err(failure) = handled.await {
            // There is no response, but the failure is logged like any other.
            let _ = failure.to_wire(&method);
        }
    })
}

/// The id of a request in flight towards one end. Dropping it frees the id.
struct ReservedId {
    side: Arc<Side>,
    id: RequestId,
}

impl ReservedId {
    fn new(side: &Arc<Side>, chosen: Option<RequestId>) -> Result<Self, CallError> {
        let registered = lock(&side.ids).register(chosen, ());
        let id = registered.map_err(|Taken(id)| CallError::DuplicateId(id))?;
        Ok(Self { side: Arc::clone(side), id })
    }
}

impl Drop for ReservedId {
    fn drop(&mut self) {
        lock(&self.side.ids).abandon(&self.id);
    }
}

/// A request while the other end handles it: the channel its handler sends through.
struct DirectCall {
    caller: Arc<Side>,
    callee: Arc<Side>,
    on_progress: Option<ProgressCallback>,
    token: RequestId,
    cancellation: Cancellation,
    ended: AtomicBool,
}

/// Ends the channel of a call when the caller no longer waits, for whatever reason.
struct EndOnDrop(Arc<DirectCall>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.cancellation.cancel();
    }
}

impl DirectCall {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Hands progress of this request directly to the caller's callback. Returns whether it was that.
    fn progress(&self, params: Option<&dyn Body>) -> bool {
        let (Some(callback), Some(params)) = (&self.on_progress, params) else { return false };
        let Ok(text) = text_of(params) else { return false };
        match control_messages::progress(Some(&text)) {
            Some((token, progress)) if token == self.token => {
                callback.call(progress);
                true
            }
            _ => false,
        }
    }
}

impl Outbound for DirectCall {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        if self.has_ended() || self.callee.context.back_channel == BackChannel::Closed {
            return Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))));
        }
        Box::pin(self::request(Arc::clone(&self.callee), Arc::clone(&self.caller), request))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if self.has_ended() {
            return NotifyFuture::done();
        }
        if method == control_messages::PROGRESS && self.progress(params) {
            return NotifyFuture::done();
        }
        notify(Arc::clone(&self.callee), Arc::clone(&self.caller), method, params)
    }
}

impl Channel for DirectCall {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    fn closing(&self) -> &Cancellation {
        &self.callee.closing
    }
}
