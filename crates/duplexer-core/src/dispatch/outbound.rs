//! Channels to the peer for our own requests and notifications, and channels that refuse them.

use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::{Body, RequestId};
use tokio::sync::Notify;

use super::panic::catch_unwind;
use crate::clock::CallClock;
use crate::error::CallError;

/// A boxed future, for object-safe traits.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A channel to the peer.
pub trait Outbound: Send + Sync {
    /// Sends a request and waits for the response: the JSON text of the result.
    ///
    /// Dropping the future cancels the request at the peer, unless its options say otherwise.
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>>;

    /// Sends a request whose params are text that was read from a frame, in place of `request.params`. They are sent as they
    /// are, where the channel can do that.
    fn forward(
        &self,
        mut request: OutboundRequest,
        params: ByteString,
    ) -> BoxFuture<'_, Result<ByteString, CallError>> {
        match Json::parse(&params) {
            Ok(params) => request.params = Some(params),
            Err(error) => return Box::pin(std::future::ready(Err(CallError::Encode(error)))),
        }
        self.request(request)
    }

    /// Sends a notification. It never fails: without a peer the notification is dropped.
    ///
    /// The frame is queued before this returns, unless the queue is full. Only then the future waits.
    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture;

    /// Ends the stream that carries this channel; the peer can resume it later. Nothing is lost or cancelled. Does nothing if
    /// streams cannot be resumed.
    fn close_stream(&self) -> StreamClosing {
        StreamClosing::NotSupported
    }
}

/// Result of [`Outbound::close_stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamClosing {
    /// The stream ends after what has been sent so far; the peer resumes it for the rest.
    Closing,
    /// The channel has no stream that can be resumed.
    NotSupported,
}

/// Future that resolves when a notification is queued. It is usually ready at once.
#[must_use = "without awaiting it a notification is lost when the peer reads slowly"]
pub struct NotifyFuture(Option<BoxFuture<'static, ()>>);

impl NotifyFuture {
    /// Creates a future that is ready.
    pub fn done() -> Self {
        Self(None)
    }

    /// Creates a future that waits for `rest`, which queues the notification.
    pub fn waiting(rest: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(rest)))
    }
}

impl Future for NotifyFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            None => Poll::Ready(()),
            Some(rest) => rest.as_mut().poll(cx),
        }
    }
}

/// An own request to the peer.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_core::dispatch::{CallOptions, OutboundRequest};
/// use duplexer_types::json::Json;
///
/// let request = OutboundRequest::new("com.example/search")
///     .params(Json::parse(r#"{"word":"tea"}"#)?)
///     .options(CallOptions::new().timeout(Duration::from_secs(5)));
/// assert_eq!(request.method, "com.example/search");
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OutboundRequest {
    /// The method.
    pub method: Cow<'static, str>,
    /// The params: JSON text of an object.
    pub params: Option<Json>,
    /// Members of `params._meta`.
    pub meta: JsonObject,
    /// Options of the call.
    pub options: CallOptions,
}

impl OutboundRequest {
    /// Creates a request without params.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Self {
        Self { method: method.into(), params: None, meta: JsonObject::new(), options: CallOptions::default() }
    }

    /// Sets the params: the JSON text of an object.
    #[must_use]
    pub fn params(mut self, params: impl Into<Json>) -> Self {
        self.params = Some(params.into());
        self
    }

    /// Sets `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: JsonObject) -> Self {
        self.meta = meta;
        self
    }

    /// Sets the options.
    #[must_use]
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }
}

/// Options of a call to the peer. `Debug` shows the names of headers, not their values.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_core::dispatch::{CallOptions, OnDrop};
///
/// let options = CallOptions::new()
///     .idle_timeout(Duration::from_secs(60))
///     .on_progress(|report| println!("{}", report.progress))
///     .on_drop(OnDrop::Detach);
/// assert_eq!(options.timeout, None);
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The id of the request. Default: the next free one.
    pub id: Option<RequestId>,
    /// Maximum time to wait for the response, counted from the end of the write. Progress does not extend it.
    pub timeout: Option<Duration>,
    /// Maximum time without a sign of life: counted from the end of the write, and again from every progress notification.
    pub idle_timeout: Option<Duration>,
    /// A clock that can be paused, so that the timeout does not include the time that a person takes.
    pub clock: Option<CallClock>,
    /// Called for every progress notification of this request, in order. If set, progress is requested from the peer.
    pub on_progress: Option<ProgressCallback>,
    /// What dropping the call, or its timeout, does at the peer.
    pub on_drop: OnDrop,
    /// Headers of the message, if the transport has headers.
    pub headers: Vec<(String, String)>,
    /// Token to resume an interrupted stream, if the transport supports it.
    pub resumption: Option<String>,
}

impl fmt::Debug for CallOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallOptions")
            .field("id", &self.id)
            .field("timeout", &self.timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("on_drop", &self.on_drop)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl CallOptions {
    /// Creates the default options: no timeout, no progress, dropping the call cancels it at the peer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the maximum time to wait for the response.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets the maximum time without progress.
    #[must_use]
    pub fn idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Sets the callback for progress notifications.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(ProgressCallback(Arc::new(Reports {
            callback: Box::new(callback),
            reported: Notify::new(),
        })));
        self
    }

    /// Sets the id.
    #[must_use]
    pub fn id(mut self, id: impl Into<RequestId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Sets the clock that the timeout is measured with.
    #[must_use]
    pub fn clock(mut self, clock: CallClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Sets what dropping the call, or its timeout, does at the peer.
    #[must_use]
    pub fn on_drop(mut self, on_drop: OnDrop) -> Self {
        self.on_drop = on_drop;
        self
    }
}

/// What is sent to the peer when a call is dropped or times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnDrop {
    /// A cancellation.
    #[default]
    CancelRemote,
    /// Nothing: the method must not be cancelled.
    Detach,
}

/// Progress of a request, as its receiver reports it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The progress so far. It grows with every notification.
    pub progress: f64,
    /// The value of `progress` at the end, if known.
    pub total: Option<f64>,
    /// A description for users.
    pub message: Option<String>,
}

impl Progress {
    /// Creates a report.
    pub fn new(progress: f64, total: Option<f64>, message: Option<String>) -> Self {
        Self { progress, total, message }
    }
}

/// Callback for progress. It is called in the order of arrival, on the connection's own task: it must not block.
#[derive(Clone)]
pub struct ProgressCallback(Arc<Reports>);

struct Reports {
    callback: Box<dyn Fn(Progress) + Send + Sync>,
    /// Notified of every report: it restarts the idle timeout.
    reported: Notify,
}

impl ProgressCallback {
    /// Calls the callback. A panic is logged.
    pub(crate) fn call(&self, progress: Progress) {
        self.0.reported.notify_one();
        if catch_unwind(|| (self.0.callback)(progress)).is_err() {
            tracing::error!("a progress callback panicked");
        }
    }

    /// Waits for the next report. Only the wait of one call at a time is woken.
    pub(crate) async fn reported(&self) {
        self.0.reported.notified().await;
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// A channel that carries notifications but no requests.
#[derive(Clone)]
pub struct NotifyOnly(Arc<dyn Outbound>);

impl NotifyOnly {
    /// Creates a channel that sends notifications to `inner` and refuses requests.
    pub fn new(inner: Arc<dyn Outbound>) -> Self {
        Self(inner)
    }
}

impl Outbound for NotifyOnly {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        refuse(request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.0.notify(method, params)
    }
}

/// A channel without a peer.
#[derive(Clone, Copy, Debug)]
pub struct NoChannel;

impl Outbound for NoChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        refuse(request)
    }

    fn notify(&self, method: &str, _: Option<&dyn Body>) -> NotifyFuture {
        tracing::debug!(method, "a notification without a channel is dropped");
        NotifyFuture::done()
    }
}

fn refuse(request: OutboundRequest) -> BoxFuture<'static, Result<ByteString, CallError>> {
    Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
}

/// Observes every own request before it is sent, and its outcome. For tracing.
pub trait OutboundHook: Send + Sync + 'static {
    /// Called before a request is sent. Members added to `meta` are sent in `params._meta`.
    fn begin(
        &self,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        meta: &mut JsonObject,
    ) -> Box<dyn OutboundSpan>;
}

/// One own request in flight, as a hook sees it. Dropped without an outcome if the call is dropped.
pub trait OutboundSpan: Send {
    /// Called when the call has ended.
    fn end(self: Box<Self>, outcome: Result<&str, &CallError>);
}
