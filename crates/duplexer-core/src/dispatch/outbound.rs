//! Our own requests and notifications to the peer, and the channels that cannot carry them.

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

use super::clock::CallClock;
use super::panic::contain;
use crate::error::CallError;

/// A boxed future, for traits that must be objects.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A way to the peer.
pub trait Outbound: Send + Sync {
    /// Sends a request and waits for its answer: the JSON text of the result.
    ///
    /// Dropping the future tells the peer to stop, unless the request says otherwise.
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>>;

    /// Sends a notification. It never fails: where there is nobody to tell, it is dropped.
    ///
    /// The frame is queued before this returns unless there is no room; only then is there something to await.
    fn notify(&self, method: &str, params: Option<&dyn Body>) -> Sending;

    /// Ends the stream that carries this channel, to be taken up again by the peer when it likes. Nothing is lost and
    /// nothing is cancelled by it; where streams cannot be taken up again it does nothing.
    fn close_stream(&self) -> StreamClosing {
        StreamClosing::NotSupported
    }
}

/// What has become of the wish to end a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamClosing {
    /// It ends after what has been told so far; the peer comes back for the rest.
    Closing,
    /// This channel has no stream that can be taken up again.
    NotSupported,
}

/// The rest of a notification's way: usually nothing.
#[must_use = "without awaiting it a notification is lost when the peer reads slowly"]
pub struct Sending(Option<BoxFuture<'static, ()>>);

impl Sending {
    /// Nothing left to do.
    pub fn done() -> Self {
        Self(None)
    }

    /// Waits for room first.
    pub fn waiting(rest: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(rest)))
    }
}

impl Future for Sending {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.0 {
            None => Poll::Ready(()),
            Some(rest) => rest.as_mut().poll(cx),
        }
    }
}

/// A request to the peer.
#[derive(Debug)]
#[non_exhaustive]
pub struct OutboundRequest {
    /// The method.
    pub method: Cow<'static, str>,
    /// JSON text of an object, or nothing.
    pub params: Option<Json>,
    /// Goes into `params._meta`.
    pub meta: JsonObject,
    /// How the call is to be made.
    pub options: CallOptions,
}

impl OutboundRequest {
    /// A request without params.
    pub fn new(method: impl Into<Cow<'static, str>>) -> Self {
        Self { method: method.into(), params: None, meta: JsonObject::new(), options: CallOptions::default() }
    }

    /// With params: the JSON text of an object.
    #[must_use]
    pub fn params(mut self, params: impl Into<Json>) -> Self {
        self.params = Some(params.into());
        self
    }

    /// With `_meta`.
    #[must_use]
    pub fn meta(mut self, meta: JsonObject) -> Self {
        self.meta = meta;
        self
    }

    /// With options.
    #[must_use]
    pub fn options(mut self, options: CallOptions) -> Self {
        self.options = options;
        self
    }
}

/// How a call to the peer is to be made.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The id to use; minted if not given.
    pub id: Option<RequestId>,
    /// How long to wait for the answer, counted from the end of the write.
    pub timeout: Option<Duration>,
    /// A clock that can be paused, so that waiting for a person is not charged to the timeout.
    pub clock: Option<CallClock>,
    /// Called for every progress notification of this request, in order. Asks the peer for progress.
    pub on_progress: Option<ProgressCallback>,
    /// What giving up means to the peer.
    pub abandon: Abandon,
    /// Headers for the message, where the transport has headers.
    pub headers: Vec<(String, String)>,
    /// Where to take up an interrupted stream, where the transport has that.
    pub resumption: Option<String>,
}

impl CallOptions {
    /// The default: no timeout, no progress, giving up tells the peer to stop.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits at most this long for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Calls `callback` for every progress notification.
    #[must_use]
    pub fn on_progress(mut self, callback: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.on_progress = Some(ProgressCallback(Arc::new(callback)));
        self
    }

    /// Uses this id.
    #[must_use]
    pub fn id(mut self, id: impl Into<RequestId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Charges only the time in which `clock` runs to the timeout.
    #[must_use]
    pub fn clock(mut self, clock: CallClock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// What giving up means to the peer.
    #[must_use]
    pub fn abandon(mut self, abandon: Abandon) -> Self {
        self.abandon = abandon;
        self
    }
}

/// What happens at the peer when a call is dropped or times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Abandon {
    /// It is told to stop.
    #[default]
    Cancel,
    /// It is told nothing: the method may not be cancelled.
    Silent,
}

/// How far a request has come, as its receiver says.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// Grows with every notification.
    pub progress: f64,
    /// What `progress` will be at the end, if known.
    pub total: Option<f64>,
    /// A sentence for people.
    pub message: Option<String>,
}

impl Progress {
    /// A report.
    pub fn new(progress: f64, total: Option<f64>, message: Option<String>) -> Self {
        Self { progress, total, message }
    }
}

/// Called in the order the notifications arrive, on the connection's own task: it must not block.
#[derive(Clone)]
pub struct ProgressCallback(Arc<dyn Fn(Progress) + Send + Sync>);

impl ProgressCallback {
    /// Tells the caller how far its request is. A panic is the caller's own affair.
    pub(crate) fn call(&self, progress: Progress) {
        if contain(|| (self.0)(progress)).is_err() {
            tracing::error!("a progress callback panicked");
        }
    }
}

impl fmt::Debug for ProgressCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProgressCallback")
    }
}

/// The params with `meta` in their `_meta`; what the params bring along themselves stays, outgoing wins.
pub(crate) fn params_with_meta(
    params: Option<Json>,
    meta: JsonObject,
) -> Result<Option<Json>, serde_json::Error> {
    if meta.is_empty() {
        return Ok(params);
    }
    let mut members: JsonObject = params.map_or_else(|| Ok(JsonObject::new()), |params| params.decode())?;
    let mut own: JsonObject =
        members.remove("_meta").map_or_else(|| Ok(JsonObject::new()), |own| own.decode())?;
    for (name, value) in meta {
        own.insert(name, value);
    }
    members.insert("_meta", Json::encode(&own)?);
    Json::encode(&members).map(Some)
}

/// A channel that carries notifications but no requests.
#[derive(Clone)]
pub struct NotifyOnly(Arc<dyn Outbound>);

impl NotifyOnly {
    /// Notifications go to `inner`; requests are refused.
    pub fn new(inner: Arc<dyn Outbound>) -> Self {
        Self(inner)
    }
}

impl Outbound for NotifyOnly {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        refuse(request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> Sending {
        self.0.notify(method, params)
    }
}

/// A channel to nobody.
#[derive(Clone, Copy, Debug)]
pub struct NoChannel;

impl Outbound for NoChannel {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        refuse(request)
    }

    fn notify(&self, method: &str, _: Option<&dyn Body>) -> Sending {
        tracing::debug!(method, "a notification without a channel is dropped");
        Sending::done()
    }
}

fn refuse(request: OutboundRequest) -> BoxFuture<'static, Result<ByteString, CallError>> {
    Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
}

/// Sees every own request before it is sent and its outcome afterwards: tracing lives here.
pub trait OutboundHook: Send + Sync + 'static {
    /// A request is about to be sent. What is put into `meta` travels in `params._meta`.
    fn begin(
        &self,
        id: &RequestId,
        method: &str,
        params: Option<&str>,
        meta: &mut JsonObject,
    ) -> Box<dyn OutboundSpan>;
}

/// One own request under way, as a hook sees it. Dropped without an outcome if the caller gave up.
pub trait OutboundSpan: Send {
    /// The call has ended.
    fn end(self: Box<Self>, outcome: Result<&str, &CallError>);
}
