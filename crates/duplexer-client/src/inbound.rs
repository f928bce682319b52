//! Routes requests and notifications of the server from the dispatcher to the callbacks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::methods::{
    self, Direction, ElicitationCreate, Method, Notification, Request, SamplingCreateMessage,
};
use duplexer_types::version::{ProtocolVersion, feature};
use duplexer_types::wire::{ForRevision, Shape, Wire};

use super::handler::{Callbacks, ServerNotification, invalid_result};
use super::negotiate::PROPOSED;
use super::resources::Resources;
use super::subscriptions::{Change, Routes};
use duplexer_core::dispatch::{Batches, CallClock, CallContext, Inbound, Message, NotificationRoute};
use duplexer_core::error::McpError;

/// Inbound side of a client's dispatcher.
pub(super) struct ClientInbound {
    callbacks: Callbacks,
    negotiated: OnceLock<ProtocolVersion>,
    routes: Arc<Routes>,
    resources: Arc<Resources>,
    /// Clock of all timeouts of the session.
    clock: CallClock,
}

impl ClientInbound {
    pub(super) fn new(
        callbacks: Callbacks,
        routes: Arc<Routes>,
        resources: Arc<Resources>,
        clock: CallClock,
    ) -> Self {
        Self { callbacks, negotiated: OnceLock::new(), routes, resources, clock }
    }

    /// Sets the revision of the session.
    pub(super) fn set_version(&self, version: ProtocolVersion) {
        // A session is negotiated once.
        let _ = self.negotiated.set(version);
    }

    /// Returns a method that the server can send: before negotiation, a server method of any revision.
    fn known(&self, method: &str) -> Option<Method> {
        let known = |method: &Method| match self.negotiated.get() {
            Some(version) => method.exists(Direction::ServerToClient, *version),
            None => method.window(Direction::ServerToClient).is_some(),
        };
        Method::parse(method).filter(known)
    }

    fn version(&self) -> ProtocolVersion {
        self.negotiated.get().copied().unwrap_or(PROPOSED)
    }

    /// Answers a request of the server. While a callback asks a person or a model, no timeout of the session runs.
    async fn respond(&self, call: &Arc<Message>) -> Result<Json, McpError> {
        if let Some(relayed) = &self.callbacks.relay
            && call.known() != Some(Method::Ping)
        {
            let _paused = self.clock.pause();
            return relayed.relay.request(Arc::clone(call)).await;
        }
        match self.known(call.method()) {
            Some(Method::SamplingCreateMessage) => {
                let params = request_params::<SamplingCreateMessage>(call)?;
                let _paused = self.clock.pause();
                self.encode(&self.callbacks.create_message(params).await?)
            }
            Some(Method::ElicitationCreate) => {
                let params = request_params::<ElicitationCreate>(call)?;
                let _paused = self.clock.pause();
                self.encode(&self.callbacks.elicit(params, self.version()).await?)
            }
            Some(Method::RootsList) => self.encode(&self.callbacks.list_roots().await?),
            Some(Method::Ping) => Ok(Json::object()),
            _ => Err(ErrorObject::method_not_found(call.method()).into()),
        }
    }

    /// Encodes the result of a callback for the session's revision.
    fn encode<R: Wire>(&self, result: &R) -> Result<Json, McpError> {
        Json::encode(&ForRevision(result, Shape::new(self.version()))).map_err(|error| {
            tracing::error!(%error, "a callback's answer cannot be written");
            invalid_result()
        })
    }

    /// Offers a notification to the extensions of the session. Returns whether one of them has taken it.
    fn is_claimed(&self, method: &str, params: Option<&Json>) -> bool {
        let version = self.version();
        let mut active = self.callbacks.extensions.iter().filter(|it| it.window().contains(version));
        active.any(|extension| {
            catch_unwind(AssertUnwindSafe(|| extension.notification(method, params))).unwrap_or_else(|_| {
                tracing::error!(extension = extension.id(), method, "a notification callback panicked");
                true
            })
        })
    }

    /// Delivers a notification to the listen stream it belongs to and to the callbacks.
    fn notify(&self, call: &Message) {
        if let Some(relayed) = &self.callbacks.relay {
            relayed.notify(call);
        }
        let notification = match self.known(call.method()) {
            // The dispatcher has handled them; without a matching call they are dropped.
            Some(Method::Cancelled | Method::Progress) => return,
            Some(Method::SubscriptionsAcknowledged) => {
                if let Ok(params) = notification_params::<methods::SubscriptionsAcknowledged>(call) {
                    self.routes.acknowledge(call, params.notifications);
                }
                return;
            }
            Some(Method::LoggingMessage) => {
                notification_params::<methods::LoggingMessage>(call).map(ServerNotification::Log)
            }
            Some(Method::ToolsListChanged) => Ok(ServerNotification::ToolsListChanged),
            Some(Method::PromptsListChanged) => Ok(ServerNotification::PromptsListChanged),
            Some(Method::ResourcesListChanged) => Ok(ServerNotification::ResourcesListChanged),
            Some(Method::ResourcesUpdated) => notification_params::<methods::ResourcesUpdated>(call)
                .map(ServerNotification::ResourceUpdated),
            Some(Method::ElicitationComplete) => notification_params::<methods::ElicitationComplete>(call)
                .map(ServerNotification::ElicitationComplete),
            _ => match call.params().map(Json::parse).transpose() {
                Ok(params) if self.is_claimed(call.method(), params.as_ref()) => return,
                params => params
                    .map(|params| ServerNotification::Other { method: call.method().to_owned(), params }),
            },
        };
        match notification {
            Ok(notification) => {
                if let Some(change) = change(&notification) {
                    self.resources.cache.invalidate(&change);
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

/// Returns the change that a notification reports.
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

    async fn request(self: &Arc<Self>, _: CallContext, call: Arc<Message>) -> Result<Json, McpError> {
        self.respond(&call).await
    }

    async fn notification(self: &Arc<Self>, _: CallContext, _: Arc<Message>) {}

    /// Runs the callbacks in the read loop: in wire order, and before the responses that follow.
    fn on_notification_read(&self, call: &Message) -> NotificationRoute {
        self.notify(call);
        NotificationRoute::Consume
    }

    fn batches(&self) -> Batches {
        match self.negotiated.get() {
            Some(version) if version.has(feature::BATCHES) => Batches::Accepted,
            _ => Batches::Refused,
        }
    }
}

fn request_params<M: Request>(call: &Message) -> Result<M::Params, McpError> {
    serde_json::from_str(call.params().unwrap_or("{}")).map_err(|error| McpError::InvalidParams(error.into()))
}

fn notification_params<N: Notification>(call: &Message) -> Result<N::Params, serde_json::Error> {
    serde_json::from_str(call.params().unwrap_or("{}"))
}
