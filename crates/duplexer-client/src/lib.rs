//! MCP client: a session with one server, of either era, over any transport or in-process.
//!
//! [`ClientBuilder::connect`] opens the session and selects the era (`negotiate`). After that, `session` holds what every
//! request carries and how results are decoded, and no other code depends on the era. `inbound` serves the server's
//! requests and notifications through the callbacks of `handler`. The crate does not know servers.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod arguments;
mod builder;
mod cache;
mod call;
mod changes;
mod connection_task;
mod endpoint;
mod error;
mod extension;
mod handler;
mod inbound;
mod input;
mod items;
mod list_handlers;
mod negotiate;
#[cfg(feature = "schema")]
mod output_schemas;
mod params;
mod relay;
mod renewal;
mod requests;
mod resources;
mod restart;
mod session;
mod subscriptions;
mod tasks;
#[cfg(test)]
mod tests;
mod timeouts;
mod tool_call;
mod tool_headers;

use std::fmt;
use std::sync::Arc;

use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::json::Json;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods::{Direction, Method, Notification, Request};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ForRevision, Shape};

use self::connection_task::ConnectionTask;
use self::handler::Callbacks;
use self::renewal::Renewal;
use self::resources::Resources;
use self::session::Session;
use self::subscriptions::Routes;
use self::timeouts::Timeouts;
use self::tool_headers::ToolHeaders;
use duplexer_core::dispatch::{Outbound, OutboundRequest, RunError};
use duplexer_core::error::CallError;

pub use arguments::IntoArguments;
pub use builder::{ClientBuilder, Negotiation, PinnedVersion};
pub use cache::Cache;
pub use call::{Call, CallResponse, CompletedCall, ResultValidator};
pub use changes::Changes;
pub use endpoint::Endpoint;
pub use error::{ClientError, ConnectError};
pub use extension::{ClaimedResult, ClientExtension};
pub use handler::ServerNotification;
pub use items::Items;
#[cfg(feature = "schema")]
pub use output_schemas::OutputValidation;
pub use relay::Relay;
pub use restart::{RestartPolicy, RestartingCommand, StartProcessError};
pub use subscriptions::{Change, ListenStream, SubscriptionLost};
pub use tasks::{Started, TaskHandle, TaskOptions};

pub use duplexer_core::error::ErrorKind;
pub use duplexer_core::transport::HttpRefusal;

/// Session with a server. Clones share it. It ends with [`Client::close`] or when the last clone is dropped.
///
/// Every request is a [`Call`], which is sent when it is awaited. Dropping its future cancels the request.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer::client::prelude::*;
/// use serde_json::json;
///
/// # /// Adds.
/// # #[duplexer::tool]
/// # async fn add(a: i64, b: i64) -> i64 { a + b }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), BoxError> {
/// # let server = duplexer::Server::builder("calculator", "1.0.0").tool(add).build()?.in_process();
/// let client = Client::builder("my-agent", "1.0").timeout(Duration::from_secs(30)).connect(server).await?;
/// let tools = client.all_tools().await?;
/// assert_eq!(tools[0].name, "add");
/// let sum = client.call_tool("add", json!({"a": 1, "b": 2})).text().await?;
/// assert_eq!(sum, "3");
/// client.close().await?;
/// # Ok(())
/// # }
/// ```
#[doc(alias("session", "connect"))]
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    peer: Arc<dyn Outbound>,
    session: Session,
    timeouts: Timeouts,
    renewal: Renewal,
    tool_headers: ToolHeaders,
    known_tools: tasks::KnownTools,
    max_pages: usize,
    validator: Option<call::Validator>,
    callbacks: Callbacks,
    routes: Arc<Routes>,
    resources: Arc<Resources>,
    task: ConnectionTask,
}

impl Client {
    /// Starts the configuration of a client with this name and version, which servers get to see.
    ///
    /// Without callbacks the client declares no capabilities.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(name, version)
    }

    /// Closes the session: writes queued messages and drains requests of the server. Requests in flight fail with
    /// [`CallError::Closed`]. Then it ends what the session owns, such as a server process ([`Client::on_close`]).
    ///
    /// # Errors
    ///
    /// Fails with the reason if the connection had broken. A second call returns `Ok` without waiting.
    pub async fn close(&self) -> Result<(), RunError> {
        self.0.resources.stop_tasks();
        let ended = self.0.task.end().await;
        self.0.resources.close().await;
        ended
    }

    /// Waits until the connection has ended, on either side. For clients that only receive notifications.
    pub async fn closed(&self) {
        self.0.task.ended().await;
    }

    /// Returns the protocol revision of the session.
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.0.session.version
    }

    /// Returns the era of the session's revision.
    pub fn era(&self) -> Era {
        self.0.session.version.era()
    }

    /// Returns the identity of the server. It is optional in the envelope era.
    pub fn server_info(&self) -> Option<&Implementation> {
        self.0.session.server_info.as_ref()
    }

    /// Returns the capabilities of the server.
    pub fn server_capabilities(&self) -> &ServerCapabilities {
        &self.0.session.capabilities
    }

    /// Returns the server's instructions for the model.
    pub fn instructions(&self) -> Option<&str> {
        self.0.session.instructions.as_deref()
    }

    /// Creates a call of any request of the protocol.
    pub fn request<M: Request>(&self, params: M::Params) -> Call<M> {
        Call::new(self.clone(), params)
    }

    /// Sends a request that the protocol does not define, with the session's metadata. Returns the result verbatim.
    ///
    /// # Errors
    ///
    /// Fails like a [`Call`], and with [`ClientError::Unavailable`] for a method of the protocol that the session's
    /// revision does not have.
    pub async fn request_custom(&self, request: OutboundRequest) -> Result<Json, ClientError> {
        if let Some(method) = Method::parse(&request.method) {
            self.check_available(method)?;
        }
        let mut request = self.0.session.envelope.attach_to_custom(request);
        self.0.timeouts.apply(&mut request.options);
        let text = self.send(request).await?;
        Json::parse(&text).map_err(|error| CallError::Unexpected(error).into())
    }

    /// Sends a notification.
    ///
    /// # Errors
    ///
    /// Fails with [`ClientError::Unavailable`] if the session's revision does not have the notification. A lost
    /// connection is no error.
    pub async fn notify<N: Notification>(&self, params: N::Params) -> Result<(), ClientError> {
        self.check_available(N::METHOD)?;
        let params = Json::encode(&ForRevision(&params, Shape::new(self.0.session.version)));
        let params = params.map_err(CallError::Encode)?;
        self.0.peer.notify(N::METHOD.name(), Some(&params)).await;
        Ok(())
    }

    /// Methods that the negotiated revision does not have are not sent.
    fn check_available(&self, method: Method) -> Result<(), ClientError> {
        let version = self.0.session.version;
        if method.exists(Direction::ClientToServer, version) {
            return Ok(());
        }
        Err(ClientError::Unavailable { method, version })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.protocol_version())
            .field("server", &self.server_info().map(|info| &info.name))
            .finish_non_exhaustive()
    }
}
