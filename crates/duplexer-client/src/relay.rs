//! Sessions on behalf of another client, for proxies: the messages of the server go to a [`Relay`] as they arrived, and
//! requests of the other client are sent as they are.
//!
//! Session renewal, timeouts and the headers of the transport stay with the session.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use bytestring::ByteString;
use duplexer_types::capabilities::ClientCapabilities;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::Body;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;

use super::{Client, ClientBuilder};
use duplexer_core::dispatch::{BoxFuture, Message, NotifyFuture, OutboundRequest, Writes};
use duplexer_core::error::{CallError, McpError};

/// Receives the messages of the server in place of the callbacks. For proxies.
pub trait Relay: Send + Sync + 'static {
    /// Answers a request of the server, except `ping`. The future is dropped if the server cancels the request.
    fn request(&self, message: Arc<Message>) -> BoxFuture<'static, Result<Json, McpError>>;

    /// Receives a notification, in the order of arrival. It must not block. Cancellations and progress of own requests do
    /// not come here.
    fn notification(&self, message: &Message);
}

/// The other client: what it declares, and where messages for it go.
pub(super) struct Relayed {
    pub(super) capabilities: ClientCapabilities,
    pub(super) relay: Arc<dyn Relay>,
}

impl Relayed {
    /// Passes a notification on. A panic does not end the connection.
    pub(super) fn notify(&self, message: &Message) {
        if matches!(message.known(), Some(Method::Cancelled | Method::Progress)) {
            return;
        }
        if catch_unwind(AssertUnwindSafe(|| self.relay.notification(message))).is_err() {
            tracing::error!("a relay panicked");
        }
    }
}

/// Sessions on behalf of another client.
impl ClientBuilder {
    /// Opens the session with the identity and the capabilities of another client, and gives the server's requests and
    /// notifications to `relay`. Callbacks for requests of the server have no effect then.
    pub fn relay(
        mut self,
        info: Option<Implementation>,
        capabilities: ClientCapabilities,
        relay: Arc<dyn Relay>,
    ) -> Self {
        self.info = info.unwrap_or(self.info);
        self.callbacks.relay = Some(Arc::new(Relayed { capabilities, relay }));
        self.dispatch = self.dispatch.writes(Writes::Collected);
        self
    }

    /// Sets the revision that a handshake proposes: by default the newest of the handshake era.
    pub fn propose(mut self, version: ProtocolVersion) -> Self {
        self.proposed = version;
        self
    }
}

/// Requests of another client.
impl Client {
    /// Sends a request as it is: with its own `_meta`, and with the headers of the session. Returns the text of the result.
    ///
    /// # Errors
    ///
    /// Fails like every request, with the error of the server or of the connection.
    pub async fn forward(&self, mut request: OutboundRequest) -> Result<ByteString, CallError> {
        let params = request.params.take();
        self.0.session.envelope.attach_headers(&mut request, params.as_ref().map(Json::as_str));
        request.params = params;
        self.0.timeouts.apply(&mut request.options);
        self.send(request).await
    }

    /// As [`Client::forward`], with params that are text of a frame ([`Message::params_text`]) and have no line breaks: they are not parsed again.
    ///
    /// # Errors
    ///
    /// Fails like every request, with the error of the server or of the connection.
    pub fn forward_text(
        &self,
        mut request: OutboundRequest,
        params: ByteString,
    ) -> BoxFuture<'_, Result<ByteString, CallError>> {
        self.0.session.envelope.attach_headers(&mut request, Some(&params));
        self.0.timeouts.apply(&mut request.options);
        if self.0.session.opening.is_none() {
            return self.0.peer.forward(request, params);
        }
        Box::pin(self.send_either(request, Some(params)))
    }

    /// Sends a notification as it is. A lost connection is no error.
    pub fn forward_notification(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        self.0.peer.notify(method, params)
    }

    /// Returns the result that opened the session (`initialize` or `server/discover`) verbatim. It is empty if the
    /// session was pinned to an earlier result.
    pub fn opening_result(&self) -> &str {
        &self.0.session.opened
    }

    /// Returns whether the connection has ended, on either side.
    pub fn is_closed(&self) -> bool {
        self.0.task.has_ended()
    }
}
