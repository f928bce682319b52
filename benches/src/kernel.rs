//! The kernel of the server alone: from a parsed message through middleware and registry to an echo and its response.
//! No dispatcher, no task, no transport.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, CallContext, Cancellation, Channel, Frame, Message, NoChannel, NotifyFuture, Outbound,
    OutboundRequest,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::TransportContext;
use duplexer_server::driver::{serve_envelope, serve_on};
use duplexer_server::middleware::Next;
use duplexer_server::{
    Caller, ClientProfile, Connection, Context, Principal, RunningServer, Server, ServerBuilder,
};
use duplexer_types::jsonrpc::{self, Body, RequestId};
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use duplexer_types::version::{Era, ProtocolVersion};

use crate::message::META;

const ARGUMENTS: &str = r#""name":"echo","arguments":{"text":"The quick brown fox jumps over the lazy dog"}"#;

/// A server that is called in this thread.
#[derive(Debug)]
pub struct Kernel {
    running: RunningServer,
    connection: Arc<Connection>,
    message: Message,
    transport: Arc<TransportContext>,
    channel: Arc<NoPeer>,
    caller: Caller,
}

impl Kernel {
    /// Creates an echo behind this many middlewares, at the level of the registry.
    pub fn echo(version: ProtocolVersion, middlewares: usize) -> Option<Self> {
        Self::new(&server(middlewares)?, version, "tools/call", ARGUMENTS)
    }

    /// Creates a server with a repeated request. `params` are the members of an object, without `_meta`.
    pub fn new(server: &Server, version: ProtocolVersion, method: &str, params: &str) -> Option<Self> {
        Self::with_meta(server, version, (method, params), META)
    }

    /// Creates the same with other members of `_meta` (envelope era).
    pub fn with_meta(
        server: &Server,
        version: ProtocolVersion,
        (method, params): (&str, &str),
        meta: &str,
    ) -> Option<Self> {
        let comma = if params.is_empty() { "" } else { "," };
        let params = match version.era() {
            Era::Envelope => format!(r#"{{{params}{comma}"_meta":{{{meta}}}}}"#),
            Era::Handshake => format!("{{{params}}}"),
        };
        Some(Self {
            running: now(server.start())?.ok()?,
            connection: Arc::new(Connection::ready(version, ClientProfile::UNKNOWN)),
            message: arrived(method, &params)?,
            transport: Arc::new(TransportContext::stream("bench")),
            channel: Arc::default(),
            caller: Caller::default(),
        })
    }

    /// Sends the request on behalf of this principal (envelope era).
    #[must_use]
    pub fn on_behalf_of(mut self, principal: Principal) -> Self {
        self.caller.principal = Some(Arc::new(principal));
        self
    }

    /// Returns the running server.
    pub fn running(&self) -> &RunningServer {
        &self.running
    }

    /// Answers the call once; `None` on failure.
    pub fn answer(&self, out: &mut Vec<u8>) -> Option<()> {
        let id = RequestId::from(42_i64);
        let cx =
            CallContext::new(Some(id.clone()), Arc::clone(&self.transport), Arc::clone(&self.channel) as _);
        let (running, message) = (&self.running, self.message.clone());
        let reply = match self.connection.era() {
            Era::Envelope => now(serve_envelope(running, cx, message, None, self.caller.clone()))?,
            Era::Handshake => now(serve_on(running, &self.connection, None, cx, message))??,
        };
        jsonrpc::write_success(out, &id, &reply.ok()?).ok()
    }
}

/// Returns the message of a request as it arrives: one text, with the places of method and params.
fn arrived(method: &str, params: &str) -> Option<Message> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":42,"method":"{method}","params":{params}}}"#);
    match Frame::parse(&text.into()) {
        Ok(Frame::Request(_, message)) => Some(message),
        _ => None,
    }
}

/// Returns the context of a request whose channel has no peer.
pub fn call_context() -> CallContext {
    let transport = Arc::new(TransportContext::stream("bench"));
    CallContext::new(Some(RequestId::from(42_i64)), transport, Arc::<NoPeer>::default())
}

fn server(middlewares: usize) -> Option<Server> {
    let pass = |cx: Context, message: Message, next: Next| async move { next.run(cx, message).await };
    let builder = Server::builder("bench-server", "1.0.0").on(methods::ToolsCall, echo);
    let builder = (0..middlewares).fold(builder, |builder: ServerBuilder<()>, _| builder.middleware(pass));
    builder.build().ok()
}

#[derive(serde::Deserialize)]
struct Arguments {
    text: String,
}

async fn echo(params: CallToolParams) -> Result<CallToolResult, McpError> {
    let arguments = params.arguments.ok_or_else(|| McpError::internal("no arguments"))?;
    let Arguments { text } = arguments.decode().map_err(McpError::internal)?;
    Ok(CallToolResult::text(text))
}

/// Returns the output of a future that is ready at once.
fn now<F: Future>(future: F) -> Option<F::Output> {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

/// A channel without a peer.
#[derive(Debug, Default)]
struct NoPeer(Cancellation);

impl Outbound for NoPeer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        NoChannel.notify(method, params)
    }
}

impl Channel for NoPeer {
    fn cancellation(&self) -> &Cancellation {
        &self.0
    }

    fn closing(&self) -> &Cancellation {
        &self.0
    }
}
