//! Requests and notifications of the server, from the dispatcher to the callbacks.

use std::sync::{Arc, OnceLock};

use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::methods::{
    self, Direction, ElicitationCreate, Method, Notification, Request, SamplingCreateMessage,
};
use duplexer_types::version::{ProtocolVersion, feature};
use duplexer_types::wire::{ForRevision, Shape, Wire};

use super::handler::{Callbacks, ServerNotification, invalid_result};
use super::negotiate::OFFERED;
use super::subscriptions::{Change, Routes};
use duplexer_core::dispatch::{Batches, CallContext, Inbound, Intercept, Invocation};
use duplexer_core::error::McpError;

/// What sits above the dispatcher of a client.
pub(super) struct ClientInbound {
    callbacks: Callbacks,
    agreed: OnceLock<ProtocolVersion>,
    routes: Arc<Routes>,
}

impl ClientInbound {
    pub(super) fn new(callbacks: Callbacks, routes: Arc<Routes>) -> Self {
        Self { callbacks, agreed: OnceLock::new(), routes }
    }

    /// From now on `version` is spoken.
    pub(super) fn agree(&self, version: ProtocolVersion) {
        // A session is negotiated once.
        let _ = self.agreed.set(version);
    }

    /// What the server may send: until a revision is agreed on, whatever servers send in any.
    fn known(&self, method: &str) -> Option<Method> {
        let known = |method: &Method| match self.agreed.get() {
            Some(version) => method.exists(Direction::ServerToClient, *version),
            None => method.window(Direction::ServerToClient).is_some(),
        };
        Method::parse(method).filter(known)
    }

    fn version(&self) -> ProtocolVersion {
        self.agreed.get().copied().unwrap_or(OFFERED)
    }

    async fn answer(&self, call: &Invocation) -> Result<Json, McpError> {
        match self.known(call.method()) {
            Some(Method::SamplingCreateMessage) => {
                let params = params_of::<SamplingCreateMessage>(call)?;
                self.encode(&self.callbacks.create_message(params).await?)
            }
            Some(Method::ElicitationCreate) => {
                let params = params_of::<ElicitationCreate>(call)?;
                self.encode(&self.callbacks.elicit(params, self.version()).await?)
            }
            Some(Method::RootsList) => self.encode(&self.callbacks.list_roots().await?),
            // Whatever has been agreed on: whoever asks gets to know that somebody is there.
            _ if Method::parse(call.method()) == Some(Method::Ping) => Ok(Json::object()),
            _ => Err(ErrorObject::method_not_found(call.method()).into()),
        }
    }

    /// A callback's answer as the revision that is spoken has it.
    fn encode<R: Wire>(&self, result: &R) -> Result<Json, McpError> {
        Json::encode(&ForRevision(result, Shape::new(self.version()))).map_err(|error| {
            tracing::error!(%error, "a callback's answer cannot be written");
            invalid_result()
        })
    }

    fn notify(&self, call: &Invocation) {
        let notification = match self.known(call.method()) {
            // The dispatcher has done what there is to do, or there is nobody to tell.
            Some(Method::Cancelled | Method::Progress) => return,
            Some(Method::SubscriptionsAcknowledged) => {
                if let Ok(params) = notification_params::<methods::SubscriptionsAcknowledged>(call) {
                    self.routes.acknowledge(call, params.notifications);
                }
                return;
            }
            Some(Method::Message) => {
                notification_params::<methods::Message>(call).map(ServerNotification::Log)
            }
            Some(Method::ToolsListChanged) => Ok(ServerNotification::ToolsListChanged),
            Some(Method::PromptsListChanged) => Ok(ServerNotification::PromptsListChanged),
            Some(Method::ResourcesListChanged) => Ok(ServerNotification::ResourcesListChanged),
            Some(Method::ResourcesUpdated) => notification_params::<methods::ResourcesUpdated>(call)
                .map(ServerNotification::ResourceUpdated),
            Some(Method::ElicitationComplete) => notification_params::<methods::ElicitationComplete>(call)
                .map(ServerNotification::ElicitationComplete),
            _ => call.params().map(Json::parse).transpose().map(|params| {
                let method = call.method().to_owned();
                ServerNotification::Other { method, params }
            }),
        };
        match notification {
            Ok(notification) => {
                if let Some(change) = change(&notification) {
                    self.routes.deliver(call, change);
                }
                self.callbacks.notify(notification);
            }
            Err(error) => {
                tracing::warn!(method = call.method(), %error, "a malformed notification is dropped");
            }
        }
    }
}

/// What a notification says has changed.
fn change(notification: &ServerNotification) -> Option<Change> {
    match notification {
        ServerNotification::ToolsListChanged => Some(Change::Tools),
        ServerNotification::PromptsListChanged => Some(Change::Prompts),
        ServerNotification::ResourcesListChanged => Some(Change::Resources),
        ServerNotification::ResourceUpdated(params) => Some(Change::Resource(params.uri.clone())),
        _ => None,
    }
}

impl Inbound for ClientInbound {
    type Reply = Json;

    async fn request(self: Arc<Self>, _: CallContext, call: Arc<Invocation>) -> Result<Json, McpError> {
        self.answer(&call).await
    }

    async fn notification(self: Arc<Self>, _: CallContext, _: Arc<Invocation>) {}

    /// Callbacks see notifications in the order of the wire, and before the answers that follow them.
    fn intercept(&self, call: &Invocation) -> Intercept {
        self.notify(call);
        Intercept::Consume
    }

    fn batches(&self) -> Batches {
        match self.agreed.get() {
            Some(version) if version.has(feature::BATCHES) => Batches::Accepted,
            _ => Batches::Refused,
        }
    }
}

fn params_of<M: Request>(call: &Invocation) -> Result<M::Params, McpError> {
    serde_json::from_str(call.params().unwrap_or("{}")).map_err(|error| McpError::InvalidParams(error.into()))
}

fn notification_params<N: Notification>(call: &Invocation) -> Result<N::Params, serde_json::Error> {
    serde_json::from_str(call.params().unwrap_or("{}"))
}
