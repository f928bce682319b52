//! The kernel: one message from the dispatcher through the middleware to its handler, and back.
//!
//! It names no method and no transport. Which methods exist is the table's business, what opens a connection that of
//! `lifecycle`, what a result looks like that of `wire`.

use std::sync::Arc;

use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::{Direction, Method, Phase};
use duplexer_types::version::ProtocolVersion;

use super::connection::Connection;
use super::context::{Context, Scope, States};
use super::middleware::Next;
use super::outcome::Outcome;
use super::registry::Running;
use super::{envelope, input, lifecycle};
use crate::dispatch::{BoxFuture, CallContext, Invocation};
use crate::error::McpError;

/// Serves the messages of one connection.
#[derive(Clone, Debug)]
pub struct ServerRunner {
    running: Running,
    connection: Arc<Connection>,
}

/// An outcome together with what it needs to be written.
#[derive(Debug)]
pub struct Shaped {
    outcome: Outcome,
    running: Running,
    version: ProtocolVersion,
    method: Option<Method>,
}

impl Body for Shaped {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.outcome.write(out, self.version, self.running.stamp(self.method))
    }
}

impl Shaped {
    /// What is to be written.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

impl ServerRunner {
    /// A kernel for one connection.
    pub fn new(running: Running, connection: Arc<Connection>) -> Self {
        Self { running, connection }
    }

    /// The connection it serves.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// Handles a request.
    pub async fn request(&self, call: CallContext, message: Invocation) -> Result<Shaped, McpError> {
        let method = Method::parse(message.method());
        let (outcome, version) = self.outcome(call, message).await?;
        Ok(Shaped { outcome, running: self.running.clone(), version, method })
    }

    /// The outcome of a request and the revision it is to be written in.
    pub(super) async fn outcome(
        &self,
        call: CallContext,
        message: Invocation,
    ) -> Result<(Outcome, ProtocolVersion), McpError> {
        let scope = Arc::new(Scope::new(call, Arc::clone(&self.connection), self.running.clone()));
        let method = Method::parse(message.method());
        let cx = Context::new(Arc::clone(&scope), message.clone());
        let outcome = Next::outermost().run(cx, message).await?;
        let mut version = scope.version;
        input::check(&outcome, method, version, self.connection.client())?;
        // Only now, when the whole chain has agreed, is the handshake a fact.
        if let Some(agreed) = scope.agreed.get() {
            version = agreed.version;
            self.connection.agree(agreed.clone());
        }
        Ok((outcome, version))
    }

    /// Handles a notification. Whatever comes of it stays here.
    pub async fn notification(&self, call: CallContext, message: Invocation) {
        let method = message.method().to_owned();
        let scope = Arc::new(Scope::new(call, Arc::clone(&self.connection), self.running.clone()));
        let cx = Context::new(scope, message.clone());
        if let Err(error) = Next::outermost().run(cx, message).await {
            tracing::warn!(?method, %error, "a notification's handler failed");
        }
    }
}

/// Behind all middleware: gate, look-up, handler.
pub(crate) fn innermost(cx: Context<States>) -> BoxFuture<'static, Result<Outcome, McpError>> {
    if cx.request_id().is_some() { request(cx) } else { notification(cx) }
}

fn request(cx: Context<States>) -> BoxFuture<'static, Result<Outcome, McpError>> {
    match admit_request(&cx) {
        Ok(entry) => entry.call(cx),
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

type Admitted = Arc<dyn super::handler::Entry>;

/// The precedence of refusals: no such method in this revision, params that do not fit (even where nobody would handle
/// them), no handler, not open yet.
fn admit_request(cx: &Context<States>) -> Result<Admitted, McpError> {
    let handlers = &cx.server().registry().handlers;
    let version = cx.protocol_version();
    let not_found = || McpError::from(ErrorObject::method_not_found(cx.method()));
    let (entry, phase) = match Method::parse(cx.method()) {
        Some(method) => {
            if !method.exists(Direction::ClientToServer, version) {
                return Err(not_found());
            }
            envelope::check_identity(cx)?;
            let Some(entry) = handlers.spec(method) else {
                if method.is_core() {
                    method.check(cx.raw_params()).map_err(|error| McpError::InvalidParams(error.into()))?;
                }
                return Err(not_found());
            };
            (entry, method.phase())
        }
        None => match handlers.custom(cx.method()) {
            Some(custom) if version.has(custom.window) => (&custom.entry, Phase::Initialised),
            _ => return Err(not_found()),
        },
    };
    if phase == Phase::Initialised && !cx.connection().is_open() {
        return Err(McpError::InvalidParams("the connection has not been initialized".into()));
    }
    Ok(Arc::clone(entry))
}

/// A notification nobody knows, or that comes too early, is passed over.
fn notification(cx: Context<States>) -> BoxFuture<'static, Result<Outcome, McpError>> {
    let passed_over = |reason: &'static str| -> BoxFuture<'static, Result<Outcome, McpError>> {
        tracing::debug!(method = ?cx.method(), reason, "a notification is passed over");
        Box::pin(std::future::ready(Ok(Outcome::empty())))
    };
    let handlers = &cx.server().registry().handlers;
    let entry = match Method::parse(cx.method()) {
        Some(method) => {
            if !method.exists(Direction::ClientToServer, cx.protocol_version()) {
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
