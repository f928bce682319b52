//! Callbacks for requests and notifications of the server, and the capabilities that follow from them.
//!
//! It does not know how a request arrives: as a message, or as an input request inside a result.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use duplexer_types::capabilities::{
    ClientCapabilities, ElicitationCapability, RootsCapability, SamplingCapability,
};
use duplexer_types::elicitation::{ElicitParams, ElicitResult, ElicitationCompleteParams};
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::logging::LoggingMessageParams;
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use duplexer_types::version::{ProtocolVersion, feature};

use super::extension::{ClientExtension, DeclaredExtension};
use super::input::MAX_RETRIES;
use super::list_handlers::ListHandlers;
use super::relay::Relayed;
use super::tasks::TaskOptions;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;

/// Notification of the server.
///
/// Progress notifications go to the callback of their call, and cancellations cancel the request's callback; neither
/// appears here.
///
/// ```
/// use duplexer::client::{Client, ServerNotification};
///
/// let client = Client::builder("my-agent", "1.0").on_notification(|notification| match notification {
///     ServerNotification::ToolsListChanged => println!("other tools"),
///     ServerNotification::ResourceUpdated(resource) => println!("{} has changed", resource.uri),
///     _ => {}
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerNotification {
    /// A log message.
    Log(LoggingMessageParams),
    /// The list of tools has changed.
    ToolsListChanged,
    /// The list of prompts has changed.
    PromptsListChanged,
    /// The list of resources has changed.
    ResourcesListChanged,
    /// A resource has changed.
    ResourceUpdated(ResourceUpdatedParams),
    /// The interaction at the URL of an elicitation is complete.
    ElicitationComplete(ElicitationCompleteParams),
    /// The server had ended the session, and a new one is open (handshake era). What the server reported in between is lost;
    /// log level and subscriptions are restored. It comes from this client, not from the server.
    SessionRenewed,
    /// A notification that the session's revision does not define.
    Other {
        /// Method of the notification.
        method: String,
        /// Parameters, verbatim.
        params: Option<Json>,
    },
}

type RequestCallback<P, R> = Arc<dyn Fn(P) -> BoxFuture<'static, Result<R, McpError>> + Send + Sync>;
type NotificationCallback<T> = Arc<dyn Fn(T) + Send + Sync>;

/// Callbacks of a client.
#[derive(Clone)]
pub(super) struct Callbacks {
    pub(super) sampling: Option<RequestCallback<CreateMessageParams, CreateMessageResult>>,
    pub(super) elicitation: Option<RequestCallback<ElicitParams, ElicitResult>>,
    pub(super) roots: Option<RequestCallback<(), ListRootsResult>>,
    pub(super) log: Option<NotificationCallback<LoggingMessageParams>>,
    pub(super) notification: Option<NotificationCallback<ServerNotification>>,
    pub(super) declared: DeclaredCapabilities,
    pub(super) lists: ListHandlers,
    pub(super) extensions: Vec<Arc<dyn ClientExtension>>,
    /// The client that the session belongs to, if this one only relays its messages.
    pub(super) relay: Option<Arc<Relayed>>,
    /// How tasks are waited for, if the client has them.
    pub(super) tasks: Option<TaskOptions>,
    /// Maximum number of times that a request is sent again with input.
    pub(super) input_rounds: u32,
}

/// Details of the capabilities that have a callback, and declared extensions.
#[derive(Clone)]
pub(super) struct DeclaredCapabilities {
    pub(super) sampling: SamplingCapability,
    pub(super) elicitation: ElicitationCapability,
    pub(super) extensions: Vec<DeclaredExtension>,
}

impl Default for DeclaredCapabilities {
    fn default() -> Self {
        let both = ElicitationCapability::new().form(JsonObject::new()).url(JsonObject::new());
        Self { sampling: SamplingCapability::new(), elicitation: both, extensions: Vec::new() }
    }
}

impl Default for Callbacks {
    fn default() -> Self {
        Self {
            sampling: None,
            elicitation: None,
            roots: None,
            log: None,
            notification: None,
            declared: DeclaredCapabilities::default(),
            lists: ListHandlers::default(),
            extensions: Vec::new(),
            relay: None,
            tasks: None,
            input_rounds: MAX_RETRIES,
        }
    }
}

impl Callbacks {
    /// Returns the capabilities of the client in a revision: those that have a callback, and the extensions that are
    /// declared there.
    pub(super) fn capabilities(&self, version: ProtocolVersion) -> ClientCapabilities {
        if let Some(relayed) = &self.relay {
            return relayed.capabilities.clone();
        }
        let mut capabilities = ClientCapabilities::new();
        capabilities.sampling = self.sampling.as_ref().map(|_| self.declared.sampling.clone());
        capabilities.elicitation = self.elicitation.as_ref().map(|_| self.declared.elicitation.clone());
        capabilities.roots = self.roots.as_ref().map(|_| RootsCapability::new().list_changed(true));
        let declared = self.declared.extensions.iter().filter(|it| it.window.contains(version));
        let extensions: JsonObject = declared.map(|it| (it.id.clone(), it.settings.clone())).collect();
        capabilities.extensions = (!extensions.is_empty()).then_some(extensions);
        capabilities
    }

    pub(super) async fn create_message(
        &self,
        params: CreateMessageParams,
    ) -> Result<CreateMessageResult, McpError> {
        let Some(callback) = &self.sampling else { return Err(unsupported("Sampling not supported")) };
        let uses_tools = params.tools.is_some() || params.tool_choice.is_some();
        if uses_tools && self.declared.sampling.tools.is_none() {
            return Err(undeclared("the client did not declare sampling with tools"));
        }
        callback(params).await
    }

    pub(super) async fn elicit(
        &self,
        params: ElicitParams,
        version: ProtocolVersion,
    ) -> Result<ElicitResult, McpError> {
        let Some(callback) = &self.elicitation else { return Err(unsupported("Elicitation not supported")) };
        let declared = &self.declared.elicitation;
        let can = match &params {
            ElicitParams::Form(_) => declared.asks_by_form(),
            ElicitParams::Url(_) => declared.asks_by_url() && version.has(feature::URL_ELICITATION),
            _ => false,
        };
        if !can {
            return Err(undeclared("the client did not declare this mode of elicitation"));
        }
        callback(params).await
    }

    pub(super) async fn list_roots(&self) -> Result<ListRootsResult, McpError> {
        let Some(callback) = &self.roots else {
            return Err(McpError::new(ErrorCode::METHOD_NOT_FOUND, "List roots not supported"));
        };
        let result = callback(()).await?;
        if result.roots.iter().all(|root| root.uri.starts_with("file://")) {
            Ok(result)
        } else {
            tracing::error!("a root is not a file:// URI");
            Err(invalid_result())
        }
    }

    /// Runs the notification callbacks. A panic in one of them does not end the connection.
    pub(super) fn notify(&self, notification: ServerNotification) {
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            if let (Some(log), ServerNotification::Log(params)) = (&self.log, &notification) {
                log(params.clone());
            }
            if let Some(callback) = &self.notification {
                callback(notification);
            }
        }));
        if outcome.is_err() {
            tracing::error!("a notification callback panicked");
        }
    }
}

/// The error for a callback result that cannot be sent.
pub(super) fn invalid_result() -> McpError {
    McpError::new(ErrorCode::INTERNAL_ERROR, "Client callback returned an invalid result")
}

fn unsupported(message: &'static str) -> McpError {
    McpError::new(ErrorCode::INVALID_REQUEST, message)
}

fn undeclared(reason: &'static str) -> McpError {
    McpError::InvalidParams(reason.into())
}
