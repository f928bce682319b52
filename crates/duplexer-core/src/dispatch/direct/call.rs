//! A call from one end of an in-process connection to the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::meta::key;

use super::{Receive, Side};
use crate::dispatch::clock::CallClock;
use crate::dispatch::context::{Cancellation, Channel};
use crate::dispatch::in_flight::Taken;
use crate::dispatch::jsonrpc::FailureMode;
use crate::dispatch::outbound::{
    BoxFuture, Outbound, OutboundRequest, ProgressCallback, Sending, params_with_meta,
};
use crate::dispatch::panic::Contained;
use crate::dispatch::{CallContext, Intercept, Invocation, control_messages, lock};
use crate::error::{CallError, Chain, McpError};
use crate::transport::BackChannel;

/// A result as JSON text.
pub(super) fn text_of<B: Body + ?Sized>(body: &B) -> Result<ByteString, McpError> {
    let mut text = Vec::new();
    body.write(&mut text).map_err(McpError::internal)?;
    String::from_utf8(text).map(ByteString::from).map_err(McpError::internal)
}

/// Asks `there` and waits, within the caller's timeout, for its start and for the handler.
pub(super) async fn request(
    here: Arc<Side>,
    there: Arc<Side>,
    request: OutboundRequest,
) -> Result<ByteString, CallError> {
    let OutboundRequest { method, params, mut meta, options } = request;
    let id = Occupied::take(&there, options.id)?;
    if options.on_progress.is_some() {
        meta.insert(key::PROGRESS_TOKEN, Json::encode(&id.id).map_err(CallError::Encode)?);
    }
    let params = params_with_meta(params, meta).map_err(CallError::Encode)?;
    let invocation = Invocation::new(method.to_string(), params.map(|params| params.as_str().into()));
    let call = Arc::new(DirectCall {
        caller: here,
        callee: Arc::clone(&there),
        on_progress: options.on_progress,
        token: id.id.clone(),
        cancellation: Cancellation::new(),
        ended: AtomicBool::new(false),
    });
    let ending = EndOnDrop(Arc::clone(&call));
    let answered = async {
        let receiver = there.receiver().await.ok_or(CallError::Closed)?;
        let cx = CallContext::new(Some(id.id.clone()), Arc::clone(&there.context), Arc::clone(&call) as _);
        let answer = handle(&*receiver, cx, Arc::new(invocation)).await;
        answer.map_err(|failure| CallError::Peer(show(&there, &failure, &method)))
    };
    let answered = async {
        tokio::select! {
            biased;
            outcome = answered => outcome,
            () = there.closed.raised() => Err(CallError::Closed),
            () = call.caller.closed.raised() => Err(CallError::Closed),
        }
    };
    let clock = options.clock.unwrap_or_else(CallClock::new);
    let outcome = match options.timeout {
        None => answered.await,
        Some(timeout) => tokio::select! {
            biased;
            outcome = answered => outcome,
            () = clock.run_for(timeout) => {
                let text = format!("Timed out after {}s waiting for '{method}'", timeout.as_secs_f64());
                Err(CallError::Timeout(text.into()))
            }
        },
    };
    drop(ending);
    outcome
}

/// Runs a handler and contains its panics.
async fn handle(
    receiver: &dyn Receive,
    cx: CallContext,
    call: Arc<Invocation>,
) -> Result<ByteString, McpError> {
    Contained::new(|| receiver.request(cx, call))?.await?
}

/// What the caller sees of a failure: its text too, where a test asks for it.
fn show(there: &Side, failure: &McpError, method: &str) -> ErrorObject {
    let error = failure.to_wire(method);
    if there.failures == FailureMode::Raise && !failure.is_deliberate() {
        let text = std::error::Error::source(failure)
            .map_or_else(|| failure.to_string(), |cause| Chain(cause).to_string());
        return ErrorObject::new(ErrorCode::INTERNAL_ERROR, text);
    }
    error
}

/// Tells `there` something; the sender waits until it has been handled.
pub(super) fn notify(here: Arc<Side>, there: Arc<Side>, method: &str, params: Option<&dyn Body>) -> Sending {
    let params = match params.map(text_of).transpose() {
        Ok(params) => params,
        Err(error) => {
            tracing::error!(method, %error, "a notification could not be written and is dropped");
            return Sending::done();
        }
    };
    let call = Invocation::new(method.to_owned(), params);
    Sending::waiting(async move {
        let Some(receiver) = there.receiver().await else { return };
        if receiver.intercept(&call) == Intercept::Consume {
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
        let handled = async { Contained::new(|| receiver.notification(cx, Arc::new(call)))?.await };
        if let Err(failure) = handled.await {
            // Nobody is answered, but the failure is logged as any other.
            let _ = failure.to_wire(&method);
        }
    })
}

/// An id that is in use towards one end, until dropped.
struct Occupied {
    side: Arc<Side>,
    id: RequestId,
}

impl Occupied {
    fn take(side: &Arc<Side>, chosen: Option<RequestId>) -> Result<Self, CallError> {
        let mut ids = lock(&side.ids);
        let id = chosen.unwrap_or_else(|| ids.next_id());
        ids.begin(id.clone(), ()).map_err(|Taken| CallError::DuplicateId(id.clone()))?;
        drop(ids);
        Ok(Self { side: Arc::clone(side), id })
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        lock(&self.side.ids).abandon(&self.id);
    }
}

/// A request while the other end handles it: the channel its handler speaks through.
struct DirectCall {
    caller: Arc<Side>,
    callee: Arc<Side>,
    on_progress: Option<ProgressCallback>,
    token: RequestId,
    cancellation: Cancellation,
    ended: AtomicBool,
}

/// When the caller is done with a call, for whatever reason, so is its channel.
struct EndOnDrop(Arc<DirectCall>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
        self.0.cancellation.raise();
    }
}

impl DirectCall {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Progress on this very request goes straight to the caller's callback.
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

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> Sending {
        if self.has_ended() {
            return Sending::done();
        }
        if method == control_messages::PROGRESS && self.progress(params) {
            return Sending::done();
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
