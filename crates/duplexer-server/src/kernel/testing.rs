//! Calls of a running server without a transport, for tests of this crate.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, CallContext, Cancellation, Channel, NoChannel, NotifyFuture, Outbound, OutboundRequest,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::TransportContext;
use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;

use super::connection::{ClientProfile, Connection};
use super::outcome::Outcome;
use crate::registry::RunningServer;

/// A connection of the envelope era whose client has declared nothing.
pub(crate) fn anonymous() -> Arc<Connection> {
    Arc::new(Connection::ready(ProtocolVersion::V2026_07_28, ClientProfile::UNKNOWN))
}

struct Silent(Cancellation);

impl Outbound for Silent {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(async move { NoChannel.request(request).await })
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        NoChannel.notify(method, params)
    }
}

impl Channel for Silent {
    fn cancellation(&self) -> &Cancellation {
        &self.0
    }

    fn closing(&self) -> &Cancellation {
        &self.0
    }
}

/// Calls the handler of `method` as a request of `connection` would.
pub(crate) async fn call(
    running: &RunningServer,
    connection: &Arc<Connection>,
    method: Method,
    params: &str,
) -> Result<Outcome, McpError> {
    running.call(connection, context(Some(1_i64.into())), method.name(), Some(params)).await
}

/// The context of a message with this id, whose channel drops what is sent.
pub(crate) fn context(id: Option<RequestId>) -> CallContext {
    let channel = Arc::new(Silent(Cancellation::new()));
    CallContext::new(id, Arc::new(TransportContext::stream("test")), channel)
}
