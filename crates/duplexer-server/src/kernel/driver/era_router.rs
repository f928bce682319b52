//! Routes the messages of a stream to the era that its first request chooses. The choice holds for the whole
//! connection.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;
use tokio::sync::OnceCell;

use super::handshake::{envelope_schedule, handshake_batches, handshake_schedule};
use super::{CloseOnDrop, serve_one};
use crate::kernel::connection::{Caller, Connection, contained};
use crate::kernel::context::is_change;
use crate::kernel::envelope;
use crate::kernel::principal::Principal;
use crate::kernel::runner::{PendingResponse, ServerRunner};
use crate::registry::RunningServer;
use duplexer_core::dispatch::{
    Batches, BoxFuture, CallContext, Inbound, Message, NotificationRoute, NotifyFuture, NotifyOnly, Outbound,
    OutboundRequest, Schedule, lock,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::{BackChannel, TransportContext};

/// Maximum number of notifications that are stored before the first request.
const MAX_EARLY_NOTIFICATIONS: usize = 8;

/// Serves a stream in either era.
pub(super) struct EraRouter {
    running: RunningServer,
    era: OnceLock<ChosenEra>,
    /// Notifications from before the choice. They are handled before the first request.
    early: Mutex<VecDeque<Message>>,
    /// Set when those have been handled; all later messages wait for it.
    replayed: OnceCell<()>,
    peer: Arc<dyn Outbound>,
    caller: Caller,
    /// The context that all messages share, without its back-channel; on transports that have such a context.
    one_way: OnceLock<OneWay>,
}

struct OneWay {
    of: Arc<TransportContext>,
    closed: Arc<TransportContext>,
}

enum ChosenEra {
    Handshake(ServerRunner),
    Envelope(Arc<dyn Outbound>),
}

impl EraRouter {
    pub(super) fn new(running: RunningServer, peer: Arc<dyn Outbound>) -> Self {
        Self {
            running,
            era: OnceLock::new(),
            early: Mutex::default(),
            replayed: OnceCell::new(),
            peer,
            caller: Caller::default(),
            one_way: OnceLock::new(),
        }
    }

    pub(super) fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// Chooses the era by the first request. `initialize` is a handshake even with an envelope.
    fn decide(&self, request: &Message) -> &ChosenEra {
        self.era.get_or_init(|| {
            if request.known() != Some(Method::Initialize) && envelope::is_enveloped(request) {
                ChosenEra::Envelope(Arc::new(EnvelopeStream::new(Arc::clone(&self.peer))))
            } else {
                ChosenEra::Handshake(self.handshake())
            }
        })
    }

    fn handshake(&self) -> ServerRunner {
        let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::clone(&self.peer));
        ServerRunner::new(self.running.clone(), Arc::new(connection.with_caller(self.caller.clone())))
    }

    /// Returns the caller of a message: the stream's caller, unless the message brings credentials of its own.
    fn caller(&self, transport: &TransportContext) -> Caller {
        let mut caller = self.caller.clone();
        if let Some(principal) = sender(transport) {
            caller.principal = Some(principal);
        }
        caller
    }

    /// Returns the runner for a message on a connection of the handshake era.
    fn runner<'a>(runner: &'a ServerRunner, transport: &TransportContext) -> Cow<'a, ServerRunner> {
        match sender(transport) {
            None => Cow::Borrowed(runner),
            sender => Cow::Owned(runner.clone().on_behalf_of(sender)),
        }
    }

    /// Starts the handlers of the early notifications, in order and before everything that arrived after them.
    ///
    /// It does not wait for them to end: a handler can send a request to the client, whose response arrives only after
    /// this.
    async fn replay(self: &Arc<Self>, cx: &CallContext) {
        if self.replayed.initialized() {
            return;
        }
        let replaying = self.replayed.get_or_init(|| async {
            while let Some(notification) = self.next_early() {
                let cx = CallContext::new(None, Arc::clone(&cx.transport), Arc::clone(&cx.channel));
                let mut handling =
                    Box::pin(contained(Box::pin(Arc::clone(self).notify_early(cx, Arc::new(notification)))));
                let polled = poll_fn(|cx| Poll::Ready(handling.as_mut().poll(cx))).await;
                if polled.is_pending() {
                    self.running.spawn_tracked(handling);
                }
            }
        });
        // Once per connection; boxed to keep the future of every request small.
        Box::pin(replaying).await;
    }

    fn next_early(&self) -> Option<Message> {
        lock(&self.early).pop_front()
    }

    async fn notify_early(self: Arc<Self>, cx: CallContext, call: Arc<Message>) {
        let channel = Arc::clone(&cx.channel);
        tokio::select! {
            biased;
            () = self.notify(cx, call) => {}
            () = channel.closing().cancelled() => {}
        }
    }

    /// Creates the connection of one request, and closes the back-channel of its context.
    fn envelope(
        &self,
        outbound: &Arc<dyn Outbound>,
        cx: &mut CallContext,
        call: &Arc<Message>,
    ) -> Result<Arc<Connection>, McpError> {
        refuse_handshake(call)?;
        let connection = envelope::open(call, None, Arc::clone(outbound), self.caller(&cx.transport))?;
        cx.transport = self.one_way(&cx.transport);
        Ok(connection)
    }

    /// Returns the context without its back-channel: in the envelope era the client receives no requests.
    fn one_way(&self, transport: &Arc<TransportContext>) -> Arc<TransportContext> {
        let close = || {
            let mut closed = (**transport).clone();
            closed.back_channel = BackChannel::Closed;
            Arc::new(closed)
        };
        // The context of one message, which holds what belongs to it.
        if !transport.headers.is_empty() || transport.sender.is_some() {
            return close();
        }
        let shared = self.one_way.get_or_init(|| OneWay { of: Arc::clone(transport), closed: close() });
        if Arc::ptr_eq(&shared.of, transport) { Arc::clone(&shared.closed) } else { close() }
    }

    async fn notify(&self, mut cx: CallContext, call: Arc<Message>) {
        match self.era.get() {
            None => {}
            Some(ChosenEra::Handshake(runner)) => {
                let runner = Self::runner(runner, &cx.transport);
                runner.notification(cx, call).await;
            }
            Some(ChosenEra::Envelope(outbound)) => {
                // A notification has no envelope: it does not identify its client and is handled in the newest
                // revision.
                let version = ProtocolVersion::LATEST_ENVELOPE;
                let connection = Connection::anonymous(version, Arc::clone(outbound));
                let connection = Arc::new(connection.with_caller(self.caller(&cx.transport)));
                let closing = CloseOnDrop(&self.running, &connection);
                cx.transport = self.one_way(&cx.transport);
                ServerRunner::new(self.running.clone(), Arc::clone(&connection)).notification(cx, call).await;
                connection.close().await;
                drop(closing);
            }
        }
    }

    /// Runs the close hooks of the connection.
    pub(super) async fn close(&self, budget: Duration) {
        if let Some(ChosenEra::Handshake(runner)) = self.era.get() {
            runner.connection().close_within(budget).await;
        }
    }
}

fn sender(transport: &TransportContext) -> Option<Arc<Principal>> {
    Arc::clone(transport.sender.as_ref()?).downcast().ok()
}

/// Refuses requests of the envelope era on a handshake connection.
fn refuse_envelope(call: &Message) -> Result<(), McpError> {
    if call.known() == Some(Method::Initialize) || !envelope::is_enveloped(call) {
        return Ok(());
    }
    let text = format!(
        "this connection serves the handshake protocol era; requests carrying the {} envelope are not accepted on it",
        ProtocolVersion::LATEST_ENVELOPE
    );
    Err(McpError::new(ErrorCode::INVALID_REQUEST, text))
}

/// Refuses handshakes on an envelope connection.
fn refuse_handshake(call: &Message) -> Result<(), McpError> {
    #[derive(serde::Deserialize)]
    struct Proposal {
        #[serde(rename = "protocolVersion")]
        version: Option<String>,
    }
    if call.known() != Some(Method::Initialize) {
        return Ok(());
    }
    let text = format!(
        "connection is serving the {} protocol; the initialize handshake is not accepted",
        ProtocolVersion::LATEST_ENVELOPE
    );
    let proposal = call.params().and_then(|params| serde_json::from_str::<Proposal>(params).ok());
    let served = ProtocolVersion::envelope_names();
    let mut error = match proposal.and_then(|proposal| proposal.version) {
        Some(requested) => ErrorObject::unsupported_version(&served, &requested),
        None => ErrorObject::new(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION, "")
            .with_data(serde_json::json!({ "supported": served })),
    };
    error.message = text.into();
    Err(McpError::Rpc(error))
}

impl std::fmt::Debug for EraRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EraRouter").field("decided", &self.era.get().is_some()).finish_non_exhaustive()
    }
}

impl Inbound for EraRouter {
    type Reply = PendingResponse;

    async fn request(
        self: &Arc<Self>,
        mut cx: CallContext,
        call: Arc<Message>,
    ) -> Result<PendingResponse, McpError> {
        let chosen = self.decide(&call);
        self.replay(&cx).await;
        match chosen {
            ChosenEra::Handshake(runner) => {
                refuse_envelope(&call)?;
                let handling = Self::runner(runner, &cx.transport).request(cx, call);
                handling.await
            }
            ChosenEra::Envelope(outbound) => {
                let connection = self.envelope(outbound, &mut cx, &call)?;
                serve_one(&self.running, connection, cx, call).await
            }
        }
    }

    async fn notification(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) {
        self.replay(&cx).await;
        self.notify(cx, call).await;
    }

    fn schedule(&self, call: &Message) -> Schedule {
        match self.decide(call) {
            ChosenEra::Handshake(_) => handshake_schedule(call),
            ChosenEra::Envelope(_) => envelope_schedule(call),
        }
    }

    fn cut_off(&self) -> ErrorObject {
        ErrorObject::shutting_down()
    }

    fn batches(&self) -> Batches {
        match self.era.get() {
            Some(ChosenEra::Handshake(runner)) => handshake_batches(runner),
            Some(ChosenEra::Envelope(_)) | None => Batches::Refused,
        }
    }

    /// Called in the order of arrival. A notification before the first request waits for it, and does not choose the
    /// era.
    fn on_notification_read(&self, call: &Message) -> NotificationRoute {
        match self.era.get() {
            Some(ChosenEra::Handshake(runner)) => {
                runner.confirm(call);
                return NotificationRoute::Forward;
            }
            Some(ChosenEra::Envelope(_)) => return NotificationRoute::Forward,
            None => {}
        }
        let mut early = lock(&self.early);
        if early.len() < MAX_EARLY_NOTIFICATIONS {
            early.push_back(call.clone());
        }
        NotificationRoute::Consume
    }
}

/// The shared channel of an envelope-era stream. It carries notifications, refuses requests, and drops change
/// notifications, which exist only on the streams of subscribers.
struct EnvelopeStream(NotifyOnly);

impl EnvelopeStream {
    fn new(peer: Arc<dyn Outbound>) -> Self {
        Self(NotifyOnly::new(peer))
    }
}

impl Outbound for EnvelopeStream {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        self.0.request(request)
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        if Method::parse(method).is_some_and(is_change) {
            return NotifyFuture::done();
        }
        self.0.notify(method, params)
    }
}
