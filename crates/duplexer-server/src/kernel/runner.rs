//! The kernel: one message from the dispatcher through the middleware to its handler, and back.
//!
//! It names no method and no transport. Which methods exist is the table's business, what opens a connection that of
//! `lifecycle`, what a result looks like that of `wire`.

use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::{Direction, Kind, Method, Phase};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{error_in, result_type};

use super::lifecycle;
use crate::features::input;
use crate::features::input_rounds::Attended;
use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, Scope, StateMap};
use crate::kernel::outcome::{Outcome, invalid_result};
use crate::kernel::principal::Principal;
use crate::middleware::Next;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{BoxFuture, CallContext, Invocation, lock};
use duplexer_core::error::McpError;

/// Serves the messages of one connection.
#[derive(Clone, Debug)]
pub struct ServerRunner {
    running: RunningServer,
    connection: Arc<Connection>,
    principal: Option<Arc<Principal>>,
}

/// An outcome together with what it needs to be written.
#[derive(Debug)]
pub struct PendingResponse {
    outcome: Outcome,
    running: RunningServer,
    version: ProtocolVersion,
    method: Option<Method>,
}

impl Body for PendingResponse {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.outcome.write(out, self.version, self.running.stamp(self.method))
    }
}

impl PendingResponse {
    /// What is to be written.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// The outcome without what it needs to be written.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

impl ServerRunner {
    /// A kernel for one connection.
    pub fn new(running: RunningServer, connection: Arc<Connection>) -> Self {
        let principal = connection.principal().cloned();
        Self { running, connection, principal }
    }

    /// The same kernel for messages that are sent on somebody's behalf: of a connection that outlives the credentials
    /// it was opened with, every message brings its own.
    #[must_use]
    pub fn on_behalf_of(mut self, principal: Option<Arc<Principal>>) -> Self {
        self.principal = principal;
        self
    }

    /// The connection it serves.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Handles a request. The handler starts when the future is first polled, not before.
    pub fn request(
        &self,
        call: CallContext,
        message: impl Into<Arc<Invocation>>,
    ) -> impl Future<Output = Result<PendingResponse, McpError>> + Send + 'static {
        let message = message.into();
        let scope = self.scope(call, &message);
        async move {
            let cx = Context::new(Arc::clone(&scope), Arc::clone(&message));
            let outcome = Next::outermost().enter(cx).await.map_err(|error| worded(error, scope.version))?;
            let method = *lock(&scope.method);
            let mut version = scope.version;
            check_kind(&outcome, method, version)?;
            input::check(&outcome, version, &scope.connection)?;
            // Only now, when the whole chain has agreed, is the handshake a fact.
            if let Some(agreed) = lifecycle::agreement(method, &message, &outcome) {
                version = agreed.version;
                scope.connection.agree(agreed);
            }
            Ok(PendingResponse { outcome, running: scope.running.clone(), version, method })
        }
    }

    fn scope(&self, call: CallContext, message: &Invocation) -> Arc<Scope> {
        let (connection, running) = (Arc::clone(&self.connection), self.running.clone());
        Arc::new(Scope::new(call, connection, running, self.principal.clone(), message))
    }

    /// Takes note of a notification that confirms the handshake.
    ///
    /// Handlers of notifications run in no particular order; a driver that has one calls this first, in the order of the
    /// wire, so that the next request finds the connection as the client left it.
    pub(crate) fn confirm(&self, message: &Invocation) {
        lifecycle::confirm(message, &self.connection);
    }

    /// Handles a notification. Whatever comes of it stays here.
    pub async fn notification(&self, call: CallContext, message: impl Into<Arc<Invocation>>) {
        let message = message.into();
        self.confirm(&message);
        let cx = Context::new(self.scope(call, &message), Arc::clone(&message));
        if let Err(error) = Next::outermost().enter(cx).await {
            tracing::warn!(method = ?message.method(), %error, "a notification's handler failed");
        }
    }
}

/// A handler's error in the words of the revision it is told in.
fn worded(error: McpError, version: ProtocolVersion) -> McpError {
    match error {
        McpError::Refused(error) => McpError::Refused(error_in(error, version)),
        other => other,
    }
}

/// Some kinds of result cannot be said everywhere. What is finished text is its maker's responsibility.
fn check_kind(outcome: &Outcome, method: Option<Method>, version: ProtocolVersion) -> Result<(), McpError> {
    if outcome.is_raw() {
        return Ok(());
    }
    let kind = outcome.result_type();
    let can_be_said = match (version.era(), method) {
        _ if kind == result_type::COMPLETE => true,
        // The handshake era has final results only; in one of a custom method the word is data like any other.
        (Era::Handshake, method) => method.is_none(),
        (Era::Envelope, method) => {
            kind != result_type::INPUT_REQUIRED || method.is_some_and(Method::asks_for_input)
        }
    };
    if can_be_said { Ok(()) } else { Err(invalid_result("this kind of result cannot be said here")) }
}

/// Behind all middleware: gate, look-up, handler.
pub(crate) fn innermost(cx: Context<StateMap>) -> Attended {
    if cx.request_id().is_some() { request(cx) } else { notification(cx).into() }
}

/// Gate, look-up and handler of a request.
pub(crate) fn request(cx: Context<StateMap>) -> Attended {
    let method = cx.known_method();
    // Middleware may have made another request of it; the result is shaped for what was handled.
    *lock(&cx.scope().method) = method;
    match admit_request(&cx, method) {
        Ok(entry) => {
            let may_ask =
                cx.protocol_version().era() == Era::Envelope && method.is_some_and(Method::asks_for_input);
            if may_ask { Attended::new(cx.clone(), entry.call(cx)) } else { entry.call(cx).into() }
        }
        Err(error) => refused(error).into(),
    }
}

fn refused(error: McpError) -> BoxFuture<'static, Result<Outcome, McpError>> {
    Box::pin(std::future::ready(Err(error)))
}

type Admitted = Arc<dyn crate::kernel::handler::Entry>;

/// The precedence of refusals: no such method in this revision, params that do not fit (even where nobody would handle
/// them), no handler, not open yet.
fn admit_request(cx: &Context<StateMap>, method: Option<Method>) -> Result<Admitted, McpError> {
    let handlers = &cx.server().registry().handlers;
    let version = cx.protocol_version();
    let not_found = || McpError::from(ErrorObject::method_not_found(cx.method()));
    let (entry, phase) = match method {
        Some(method) => {
            if method.kind() != Kind::Request || !method.exists(Direction::ClientToServer, version) {
                return Err(not_found());
            }
            cx.connection().check_envelope()?;
            let Some(entry) = handlers.spec(method) else {
                if method.is_core() {
                    method.check(cx.raw_params()).map_err(|error| McpError::InvalidParams(error.into()))?;
                }
                return Err(not_found());
            };
            (entry, method.phase())
        }
        None => match handlers.custom(cx.method()) {
            Some(custom) if version.has(custom.window) => (&custom.entry, Phase::Initialized),
            _ => return Err(not_found()),
        },
    };
    if phase == Phase::Initialized && !cx.connection().is_open() {
        return Err(McpError::InvalidParams("the connection has not been initialized".into()));
    }
    Ok(Arc::clone(entry))
}

/// A notification nobody knows, or that comes too early, is passed over.
fn notification(cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
    let passed_over = |reason: &'static str| -> BoxFuture<'static, Result<Outcome, McpError>> {
        tracing::debug!(method = ?cx.method(), reason, "a notification is passed over");
        Box::pin(std::future::ready(Ok(Outcome::empty())))
    };
    let handlers = &cx.server().registry().handlers;
    let entry = match cx.known_method() {
        Some(method) => {
            // A request without an id is nobody's: running it unasked for would be worse than silence.
            if method.kind() != Kind::Notification
                || !method.exists(Direction::ClientToServer, cx.protocol_version())
            {
                return passed_over("this revision does not have it");
            }
            if let Err(error) = method.check(cx.raw_params()) {
                tracing::warn!(%method, %error, "a malformed notification is dropped");
                return passed_over("its params do not fit");
            }
            lifecycle::observe(method, &cx);
            handlers.spec(method)
        }
        None => handlers.custom_notification(cx.method()),
    };
    match entry {
        Some(_) if !cx.connection().is_open() => passed_over("the connection has not been initialized"),
        Some(entry) => Arc::clone(entry).call(cx),
        None => passed_over("nobody handles it"),
    }
}
