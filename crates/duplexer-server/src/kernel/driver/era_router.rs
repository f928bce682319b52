//! What sits above the dispatcher of a stream: it decides the era with the first request, and keeps to it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::time::Duration;

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion, feature};

use tokio::sync::OnceCell;

use super::{CloseOnDrop, EnvelopeStream, serve_one};
use crate::kernel::connection::{Caller, Connection, contained};
use crate::kernel::envelope;
use crate::kernel::principal::Principal;
use crate::kernel::runner::{PendingResponse, ServerRunner};
use crate::registry::RunningServer;
use duplexer_core::dispatch::{Batches, CallContext, Inbound, Intercept, Invocation, Lane, Outbound, lock};
use duplexer_core::error::McpError;
use duplexer_core::transport::{BackChannel, TransportContext};

/// How many notifications that come before the first request are kept for it.
const KEPT: usize = 8;

/// Serves a stream of either era.
pub(super) struct EraRouter {
    running: RunningServer,
    era: OnceLock<Decided>,
    /// Notifications from before the decision, to be handled before the first request.
    early: Mutex<VecDeque<Invocation>>,
    /// Set when those have been handled; whatever comes after them waits for it.
    replayed: OnceCell<()>,
    peer: Arc<dyn Outbound>,
    caller: Caller,
    /// The transport's context without its back-channel, made once for a stream.
    one_way: Mutex<Option<OneWay>>,
}

struct OneWay {
    of: Arc<TransportContext>,
    closed: Arc<TransportContext>,
}

enum Decided {
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
            one_way: Mutex::default(),
        }
    }

    pub(super) fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// The first request decides; `initialize` is a handshake even in an envelope.
    fn decide(&self, request: &Invocation) -> &Decided {
        self.era.get_or_init(|| {
            if request.known() != Some(Method::Initialize) && envelope::is_enveloped(request) {
                Decided::Envelope(Arc::new(EnvelopeStream::new(Arc::clone(&self.peer))))
            } else {
                Decided::Handshake(self.handshake())
            }
        })
    }

    fn handshake(&self) -> ServerRunner {
        let connection = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::clone(&self.peer));
        ServerRunner::new(self.running.clone(), Arc::new(connection.with_caller(self.caller.clone())))
    }

    /// Who speaks in this message: the stream's caller, unless the message brings credentials of its own.
    fn caller(&self, transport: &TransportContext) -> Caller {
        let mut caller = self.caller.clone();
        if let Some(principal) = sender(transport) {
            caller.principal = Some(principal);
        }
        caller
    }

    /// The runner for a message on a connection of the handshake era.
    fn runner<'a>(runner: &'a ServerRunner, transport: &TransportContext) -> Cow<'a, ServerRunner> {
        match sender(transport) {
            None => Cow::Borrowed(runner),
            sender => Cow::Owned(runner.clone().on_behalf_of(sender)),
        }
    }

    /// Starts the handlers of the early notifications, in order and before anything that came after them.
    ///
    /// Their ends are not waited for: one may ask the client something, which then waits for us.
    async fn replay(self: &Arc<Self>, cx: &CallContext) {
        if self.replayed.initialized() {
            return;
        }
        let replaying = self.replayed.get_or_init(|| async {
            while let Some(notification) = self.next_early() {
                let cx = CallContext::new(None, Arc::clone(&cx.transport), Arc::clone(&cx.channel));
                let mut told =
                    Box::pin(contained(Box::pin(Arc::clone(self).tell_early(cx, Arc::new(notification)))));
                let polled = poll_fn(|cx| Poll::Ready(told.as_mut().poll(cx))).await;
                if polled.is_pending() {
                    self.running.spawn_tracked(told);
                }
            }
        });
        // Once per connection; boxed, so that every request need not have room for it.
        Box::pin(replaying).await;
    }

    fn next_early(&self) -> Option<Invocation> {
        lock(&self.early).pop_front()
    }

    async fn tell_early(self: Arc<Self>, cx: CallContext, call: Arc<Invocation>) {
        let channel = Arc::clone(&cx.channel);
        tokio::select! {
            biased;
            () = self.tell(cx, call) => {}
            () = channel.closing().raised() => {}
        }
    }

    /// The connection of one request, whose context then has no way back.
    fn envelope(
        &self,
        way: &Arc<dyn Outbound>,
        cx: &mut CallContext,
        call: &Arc<Invocation>,
    ) -> Result<Arc<Connection>, McpError> {
        refuse_handshake(call)?;
        let connection = envelope::open(call, None, Arc::clone(way), self.caller(&cx.transport))?;
        cx.transport = self.one_way(&cx.transport);
        Ok(connection)
    }

    /// In the envelope era the client is asked nothing while it waits, and contexts say so.
    fn one_way(&self, transport: &Arc<TransportContext>) -> Arc<TransportContext> {
        let mut made = lock(&self.one_way);
        if let Some(OneWay { of, closed }) = &*made
            && Arc::ptr_eq(of, transport)
        {
            return Arc::clone(closed);
        }
        let mut closed = (**transport).clone();
        closed.back_channel = BackChannel::Closed;
        let closed = Arc::new(closed);
        *made = Some(OneWay { of: Arc::clone(transport), closed: Arc::clone(&closed) });
        closed
    }

    async fn tell(&self, mut cx: CallContext, call: Arc<Invocation>) {
        match self.era.get() {
            None => {}
            Some(Decided::Handshake(runner)) => {
                let runner = Self::runner(runner, &cx.transport);
                runner.notification(cx, call).await;
            }
            Some(Decided::Envelope(way)) => {
                // A notification has no envelope: it is nobody's in particular, in the newest revision.
                let version = ProtocolVersion::LATEST_ENVELOPE;
                let connection = Connection::anonymous(version, Arc::clone(way));
                let connection = Arc::new(connection.with_caller(self.caller(&cx.transport)));
                let closing = CloseOnDrop(&self.running, Arc::clone(&connection));
                cx.transport = self.one_way(&cx.transport);
                ServerRunner::new(self.running.clone(), Arc::clone(&connection)).notification(cx, call).await;
                connection.close().await;
                drop(closing);
            }
        }
    }

    /// Ends what the connection has left behind.
    pub(super) async fn close(&self, budget: Duration) {
        if let Some(Decided::Handshake(runner)) = self.era.get() {
            runner.connection().close_within(budget).await;
        }
    }
}

fn sender(transport: &TransportContext) -> Option<Arc<Principal>> {
    Arc::clone(transport.sender.as_ref()?).downcast().ok()
}

/// A handshake connection does not take requests of the other era.
fn refuse_envelope(call: &Invocation) -> Result<(), McpError> {
    if call.known() == Some(Method::Initialize) || !envelope::is_enveloped(call) {
        return Ok(());
    }
    let text = format!(
        "this connection serves the handshake protocol era; requests carrying the {} envelope are not accepted on it",
        ProtocolVersion::LATEST_ENVELOPE
    );
    Err(McpError::new(ErrorCode::INVALID_REQUEST, text))
}

/// An envelope connection does not take handshakes.
fn refuse_handshake(call: &Invocation) -> Result<(), McpError> {
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
    Err(McpError::Refused(error))
}

impl std::fmt::Debug for EraRouter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EraRouter").field("decided", &self.era.get().is_some()).finish_non_exhaustive()
    }
}

impl Inbound for EraRouter {
    type Reply = PendingResponse;

    async fn request(
        self: Arc<Self>,
        mut cx: CallContext,
        call: Arc<Invocation>,
    ) -> Result<PendingResponse, McpError> {
        let decided = self.decide(&call);
        self.replay(&cx).await;
        match decided {
            Decided::Handshake(runner) => {
                refuse_envelope(&call)?;
                let handling = Self::runner(runner, &cx.transport).request(cx, call);
                handling.await
            }
            Decided::Envelope(way) => {
                let connection = self.envelope(way, &mut cx, &call)?;
                serve_one(&self.running, connection, cx, call).await
            }
        }
    }

    async fn notification(self: Arc<Self>, cx: CallContext, call: Arc<Invocation>) {
        self.replay(&cx).await;
        self.tell(cx, call).await;
    }

    fn lane(&self, call: &Invocation) -> Lane {
        match self.decide(call) {
            Decided::Handshake(_) => handshake_lane(call),
            Decided::Envelope(_) => envelope_lane(call),
        }
    }

    fn batches(&self) -> Batches {
        match self.era.get() {
            Some(Decided::Handshake(runner)) => handshake_batches(runner),
            Some(Decided::Envelope(_)) | None => Batches::Refused,
        }
    }

    /// In the order of the wire: what comes before the first request waits for it, and does not decide.
    fn intercept(&self, call: &Invocation) -> Intercept {
        match self.era.get() {
            Some(Decided::Handshake(runner)) => {
                runner.confirm(call);
                return Intercept::Forward;
            }
            Some(Decided::Envelope(_)) => return Intercept::Forward,
            None => {}
        }
        let mut early = lock(&self.early);
        if early.len() < KEPT {
            early.push_back(call.clone());
        }
        Intercept::Consume
    }
}

/// Serves a prepared connection of the handshake era.
pub(super) struct HandshakeInbound(ServerRunner);

impl HandshakeInbound {
    pub(super) fn new(runner: ServerRunner) -> Self {
        Self(runner)
    }
}

impl Inbound for HandshakeInbound {
    type Reply = PendingResponse;

    async fn request(
        self: Arc<Self>,
        cx: CallContext,
        call: Arc<Invocation>,
    ) -> Result<PendingResponse, McpError> {
        self.0.request(cx, call).await
    }

    async fn notification(self: Arc<Self>, cx: CallContext, call: Arc<Invocation>) {
        self.0.notification(cx, call).await;
    }

    fn lane(&self, call: &Invocation) -> Lane {
        match self.0.connection().era() {
            Era::Handshake => handshake_lane(call),
            Era::Envelope => envelope_lane(call),
        }
    }

    fn batches(&self) -> Batches {
        handshake_batches(&self.0)
    }

    fn intercept(&self, call: &Invocation) -> Intercept {
        self.0.confirm(call);
        Intercept::Forward
    }
}

/// A client may send its next request right behind `initialize` and finds the connection open.
fn handshake_lane(call: &Invocation) -> Lane {
    if call.known() == Some(Method::Initialize) { Lane::Inline } else { Lane::Ordinary }
}

fn envelope_lane(call: &Invocation) -> Lane {
    if call.known().is_some_and(Method::is_long_lived) { Lane::Standing } else { Lane::Ordinary }
}

fn handshake_batches(runner: &ServerRunner) -> Batches {
    let connection = runner.connection();
    match connection.agreed() {
        Some(agreed) if agreed.version.has(feature::BATCHES) => Batches::Accepted,
        _ => Batches::Refused,
    }
}
