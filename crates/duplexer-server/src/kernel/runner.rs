//! The kernel: passes one message from the dispatcher through the middleware to its handler, and the outcome back. It
//! knows no method and no transport: methods are rows of the table, `lifecycle` opens connections, `wire` shapes
//! results.

use std::fmt;
use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::Body;
use duplexer_types::meta::InvalidMeta;
use duplexer_types::methods::{Direction, Kind, Method, Phase};
use duplexer_types::version::{Era, ProtocolVersion, feature};
use duplexer_types::wire::{error_in, result_type};

use super::lifecycle;
use crate::features::input;
use crate::features::input_rounds::InputRoundFuture;
use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, Scope, StateMap};
use crate::kernel::handler::{Entry, fail};
use crate::kernel::observer::Observation;
use crate::kernel::outcome::{Outcome, invalid_result};
use crate::kernel::principal::Principal;
use crate::middleware::Next;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{BoxFuture, CallContext, Message};
use duplexer_core::error::McpError;

/// Serves the messages of one connection.
#[derive(Clone, Debug)]
pub struct ServerRunner {
    running: RunningServer,
    connection: Arc<Connection>,
    principal: Option<Arc<Principal>>,
}

/// An outcome that has not been written yet, with the revision and the server it is written for.
pub struct PendingResponse {
    outcome: Outcome,
    /// Scope of the message, which has the server.
    scope: Arc<Scope>,
    version: ProtocolVersion,
    method: Option<Method>,
}

impl Body for PendingResponse {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let (start, running) = (out.len(), &self.scope.running);
        self.outcome.write(out, self.version, running.stamp(self.method))?;
        for observer in running.registry().observers.iter() {
            observer.written(self.method, out.len() - start);
        }
        Ok(())
    }
}

impl fmt::Debug for PendingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingResponse")
            .field("outcome", &self.outcome)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl PendingResponse {
    /// Returns the outcome.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }

    /// Converts into the outcome.
    pub fn into_outcome(self) -> Outcome {
        self.outcome
    }
}

impl ServerRunner {
    /// Creates a runner for one connection.
    pub fn new(running: RunningServer, connection: Arc<Connection>) -> Self {
        let principal = connection.principal().cloned();
        if running.declares_logging() {
            connection.set_logging_declared();
        }
        Self { running, connection, principal }
    }

    /// Sets the principal of the next messages. A connection can outlive the credentials it was opened with, so every
    /// message brings its own.
    #[must_use]
    pub fn on_behalf_of(mut self, principal: Option<Arc<Principal>>) -> Self {
        self.principal = principal;
        self
    }

    /// Returns the connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Handles a request. The handler starts when the future is first polled.
    ///
    /// # Errors
    ///
    /// Resolves to the error of the handler, of middleware, or of a check.
    pub fn request(
        &self,
        call: CallContext,
        message: impl Into<Arc<Message>>,
    ) -> impl Future<Output = Result<PendingResponse, McpError>> + Send + 'static {
        self.clone().into_request(call, message.into())
    }

    /// Does the same and consumes the runner, so that nothing is cloned.
    pub(crate) fn into_request(
        self,
        call: CallContext,
        message: Arc<Message>,
    ) -> impl Future<Output = Result<PendingResponse, McpError>> + Send + 'static {
        let scope = self.into_scope(call, message);
        async move {
            let observation = Observation::begin(&scope);
            let outcome = Next::outermost().enter(Context::new(Arc::clone(&scope))).await;
            let finished = finish(&scope, outcome);
            observation.end(finished.as_ref().map(|finished| &finished.outcome));
            let Finished { outcome, version, method } = finished?;
            Ok(PendingResponse { outcome, scope, version, method })
        }
    }

    fn into_scope(self, call: CallContext, message: Arc<Message>) -> Arc<Scope> {
        let Self { running, connection, principal } = self;
        Arc::new(Scope::new(call, connection, running, principal, message))
    }

    /// Applies a notification that confirms the handshake.
    ///
    /// Handlers of notifications run in no particular order. A driver that knows the order of arrival calls this first,
    /// so that the next request finds the connection initialized.
    pub(crate) fn confirm(&self, message: &Message) {
        lifecycle::confirm(message, &self.connection);
    }

    /// Handles a notification. Errors are only logged.
    pub async fn notification(&self, call: CallContext, message: impl Into<Arc<Message>>) {
        let message = message.into();
        self.confirm(&message);
        let scope = self.clone().into_scope(call, message);
        let observation = Observation::begin(&scope);
        let outcome = Next::outermost().enter(Context::new(Arc::clone(&scope))).await;
        observation.end(outcome.as_ref());
        if let Err(error) = outcome {
            tracing::warn!(method = ?scope.message.method(), %error, "a notification's handler failed");
        }
    }
}

/// An outcome that can be written, with the revision and the method that it is written for.
struct Finished {
    outcome: Outcome,
    version: ProtocolVersion,
    method: Option<Method>,
}

/// Checks the outcome of the chain, and applies a handshake.
fn finish(scope: &Scope, outcome: Result<Outcome, McpError>) -> Result<Finished, McpError> {
    let outcome = outcome.map_err(|error| in_revision(error, scope.version))?;
    let method = scope.method.get();
    let mut version = scope.version;
    check_kind(&outcome, method, version)?;
    input::check(&outcome, version, &scope.connection)?;
    // The handshake takes effect only after the whole chain has succeeded.
    if let Some(agreed) = lifecycle::agreement(method, &scope.message, &outcome) {
        version = agreed.version;
        scope.connection.agree(agreed);
        scope.connection.observe(&scope.running.registry().observers);
    }
    Ok(Finished { outcome, version, method })
}

/// Converts an error into the form of the revision.
fn in_revision(error: McpError, version: ProtocolVersion) -> McpError {
    match error {
        McpError::Rpc(error) => McpError::Rpc(error_in(error, version)),
        other => other,
    }
}

/// Refuses kinds of result that the revision or the method cannot express. Finished text is not checked.
fn check_kind(outcome: &Outcome, method: Option<Method>, version: ProtocolVersion) -> Result<(), McpError> {
    if outcome.is_raw() {
        return Ok(());
    }
    let kind = outcome.result_type();
    let can_be_said = match (version.era(), method) {
        _ if kind == result_type::COMPLETE => true,
        // The handshake era has final results only. In the result of a custom method `resultType` is ordinary data.
        (Era::Handshake, method) => {
            method.is_none() || kind == result_type::TASK && version.has(feature::TASK_EXPERIMENT)
        }
        (Era::Envelope, method) => {
            kind != result_type::INPUT_REQUIRED || method.is_some_and(Method::asks_for_input)
        }
    };
    if can_be_said { Ok(()) } else { Err(invalid_result("this kind of result cannot be said here")) }
}

/// Runs the innermost step, inside of all middleware: checks, look-up, handler.
pub(crate) fn innermost(cx: Context<StateMap>) -> InputRoundFuture {
    if cx.request_id().is_some() { request(cx) } else { notification(cx).into() }
}

/// Runs the checks, the look-up and the handler of a request.
pub(crate) fn request(cx: Context<StateMap>) -> InputRoundFuture {
    let method = cx.known_method();
    // Middleware can rewrite the request; the result is shaped for the method that was handled.
    cx.scope().method.set(method);
    match admit_request(&cx, method) {
        Ok(entry) => {
            let may_ask =
                cx.protocol_version().era() == Era::Envelope && method.is_some_and(Method::asks_for_input);
            if may_ask { InputRoundFuture::new(cx.clone(), entry.call(cx)) } else { entry.call(cx).into() }
        }
        Err(error) => fail(error).into(),
    }
}

type Admitted = Arc<dyn Entry>;

/// Checks a request in this order: the method exists in this revision, the params fit (even if there is no handler), a
/// handler is registered, the connection is open.
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
            check_meta(cx)?;
            let Some(entry) = handlers.spec(method) else {
                if method.is_core() {
                    method.check(cx.raw_params()).map_err(|error| McpError::InvalidParams(error.into()))?;
                }
                return Err(not_found());
            };
            (entry, method.phase())
        }
        None => match handlers.custom(cx.method()) {
            Some(custom) if version.has(custom.window) => {
                check_meta(cx)?;
                (&custom.entry, Phase::Initialized)
            }
            _ => return Err(not_found()),
        },
    };
    if phase == Phase::Initialized && !cx.connection().is_open() {
        return Err(lifecycle::not_open(cx.connection()));
    }
    Ok(Arc::clone(entry))
}

/// Refuses a `_meta` that is not an object. The values of its keys are not checked, and a repeated key counts as absent:
/// only the envelope era has required keys.
fn check_meta(cx: &Context<StateMap>) -> Result<(), McpError> {
    match cx.raw_meta() {
        Some(meta) if !meta.starts_with('{') => {
            Err(McpError::InvalidParams(format!("params.{}", InvalidMeta::NotAnObject).into()))
        }
        _ => Ok(()),
    }
}

/// Runs the handler of a notification. Unknown and early notifications are skipped.
fn notification(cx: Context<StateMap>) -> BoxFuture<'static, Result<Outcome, McpError>> {
    let skip = |reason: &'static str| -> BoxFuture<'static, Result<Outcome, McpError>> {
        tracing::debug!(method = ?cx.method(), reason, "a notification is skipped");
        Box::pin(std::future::ready(Ok(Outcome::empty())))
    };
    let handlers = &cx.server().registry().handlers;
    let entry = match cx.known_method() {
        Some(method) => {
            // A request method without an id cannot be answered, so it is not run.
            if method.kind() != Kind::Notification
                || !method.exists(Direction::ClientToServer, cx.protocol_version())
            {
                return skip("this revision does not have it");
            }
            if let Err(error) = method.check(cx.raw_params()) {
                tracing::warn!(%method, %error, "a malformed notification is dropped");
                return skip("its params do not fit");
            }
            lifecycle::observe(method, &cx);
            handlers.spec(method)
        }
        None => handlers.custom_notification(cx.method()),
    };
    match entry {
        Some(_) if !cx.connection().is_open() => skip("the connection has not been initialized"),
        Some(entry) => Arc::clone(entry).call(cx),
        None => skip("no handler is registered"),
    }
}
