//! The channel of a call: that of its request, and that of its task afterwards. A task of the envelope era has none: it sends
//! neither requests nor notifications. A task of 2025-11-25 sends both, marked as belonging to it.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, Cancellation, Channel, NoChannel, NotifyFuture, Outbound, OutboundRequest, StreamClosing,
};
use duplexer_core::error::CallError;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use tokio::time::timeout;

use super::TaskCall;
use crate::features::tasks::record::TaskId;
use crate::features::tasks::view;

/// Time after which a request that no stream could take is tried again: nothing tells when a client opens one.
const NO_STREAM: Duration = Duration::from_secs(1);

impl Channel for TaskCall {
    fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// A task does not notice the end of its connection, only that of its server.
    fn closing(&self) -> &Cancellation {
        self.engine.stopping()
    }
}

impl Outbound for TaskCall {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        let Some((id, _)) = self.task() else {
            return match self.request() {
                Some(cx) => Box::pin(async move { cx.scope().call.channel.request(request).await }),
                None => Box::pin(async move { NoChannel.request(request).await }),
            };
        };
        if !self.is_experiment() {
            return Box::pin(async move { NoChannel.request(request).await });
        }
        let mut request = request;
        let meta = std::mem::take(&mut request.meta);
        let request = request.meta(meta.with(key::RELATED_TASK, view::related_to(id.as_str())));
        Box::pin(self.request_on_any_stream(id, request))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        let Some((id, _)) = self.task() else {
            return match self.request() {
                Some(cx) => cx.scope().call.channel.notify(method, params),
                None => NotifyFuture::done(),
            };
        };
        if self.is_experiment() {
            return self.stream(&id).notify(method, Some(&Related { id: &id, params }));
        }
        if Method::parse(method) == Some(Method::LoggingMessage) {
            let text = params.and_then(text_of).unwrap_or_default();
            tracing::info!(task = %id, message = text, "a log message of a task");
        }
        NotifyFuture::done()
    }

    fn close_stream(&self) -> StreamClosing {
        self.request().map_or(StreamClosing::NotSupported, |cx| cx.scope().call.channel.close_stream())
    }
}

impl TaskCall {
    /// Returns the stream that reaches the client most likely: of its request for the result, or of its connection.
    fn stream(&self, id: &TaskId) -> Arc<dyn Outbound> {
        match self.engine.stream(id) {
            Some(stream) => stream as Arc<dyn Outbound>,
            None => Arc::clone(self.client.connection.outbound()),
        }
    }

    /// Sends a request to the client on a stream that reaches it, and on another one if that ends. Waits for one if there is
    /// none: some clients ask for the result when the task requires input, others only read the stream of their session.
    async fn request_on_any_stream(
        &self,
        id: TaskId,
        mut request: OutboundRequest,
    ) -> Result<ByteString, CallError> {
        request.options.timeout.get_or_insert(self.engine.plan.settings.input_timeout);
        let watch = self.engine.plan.hub.watch(&id);
        loop {
            let mut changed = std::pin::pin!(watch.notified());
            changed.as_mut().enable();
            match self.stream(&id).request(request.clone()).await {
                Err(CallError::Closed | CallError::NoBackChannel(_) | CallError::Transport(_)) => {}
                answered => return answered,
            }
            let _ = timeout(NO_STREAM, changed).await;
        }
    }
}

fn text_of(params: &dyn Body) -> Option<String> {
    let mut text = Vec::new();
    params.write(&mut text).ok()?;
    String::from_utf8(text).ok()
}

/// Params that are marked as belonging to a task.
struct Related<'a> {
    id: &'a TaskId,
    params: Option<&'a dyn Body>,
}

impl Body for Related<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let text = self.params.and_then(text_of).unwrap_or_else(|| "{}".to_owned());
        let mut params: JsonObject = serde_json::from_str(&text)?;
        let mut meta: JsonObject = match params.remove("_meta") {
            Some(meta) => meta.decode()?,
            None => JsonObject::new(),
        };
        meta.insert(key::RELATED_TASK, view::related_to(self.id.as_str()));
        params.insert("_meta", Json::encode(&meta)?);
        serde_json::to_writer(out, &params)
    }
}
