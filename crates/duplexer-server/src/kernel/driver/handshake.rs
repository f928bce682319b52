//! Serves a prepared connection of the handshake era over a dispatcher.

use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, feature};

use crate::kernel::runner::{PendingResponse, ServerRunner};
use duplexer_core::dispatch::{Batches, CallContext, Inbound, Message, NotificationRoute, Schedule};
use duplexer_core::error::McpError;

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
        self: &Arc<Self>,
        cx: CallContext,
        call: Arc<Message>,
    ) -> Result<PendingResponse, McpError> {
        self.0.request(cx, call).await
    }

    async fn notification(self: &Arc<Self>, cx: CallContext, call: Arc<Message>) {
        self.0.notification(cx, call).await;
    }

    fn schedule(&self, call: &Message) -> Schedule {
        match self.0.connection().era() {
            Era::Handshake => handshake_schedule(call),
            Era::Envelope => envelope_schedule(call),
        }
    }

    fn cut_off(&self) -> ErrorObject {
        ErrorObject::shutting_down()
    }

    fn batches(&self) -> Batches {
        handshake_batches(&self.0)
    }

    fn on_notification_read(&self, call: &Message) -> NotificationRoute {
        self.0.confirm(call);
        NotificationRoute::Forward
    }
}

/// `initialize` is handled inline, so that a client can send its next request right behind it and finds the connection
/// open.
pub(super) fn handshake_schedule(call: &Message) -> Schedule {
    if call.known() == Some(Method::Initialize) { Schedule::Inline } else { Schedule::Concurrent }
}

pub(super) fn envelope_schedule(call: &Message) -> Schedule {
    if call.known().is_some_and(Method::is_long_lived) { Schedule::LongLived } else { Schedule::Concurrent }
}

pub(super) fn handshake_batches(runner: &ServerRunner) -> Batches {
    let connection = runner.connection();
    match connection.agreed() {
        Some(agreed) if agreed.version.has(feature::BATCHES) => Batches::Accepted,
        _ => Batches::Refused,
    }
}
