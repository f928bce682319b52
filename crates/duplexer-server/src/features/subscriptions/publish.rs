//! Publishing changes on the bus of a running server.

use super::bus::{Event, Position};
use crate::kernel::context::Context;
use crate::registry::RunningServer;
use duplexer_core::error::Chain;

impl RunningServer {
    /// Publishes a change to all subscribed clients. Without a bus it does nothing.
    ///
    /// An error of the bus is logged. Code that must handle it publishes on the bus itself.
    pub async fn publish(&self, event: Event) {
        let Some(subscriptions) = self.subscriptions() else { return };
        if let Err(error) = subscriptions.plan.bus.publish(event).await {
            tracing::warn!(error = %Chain(&error), "a change could not be published");
        }
    }

    /// Returns the position of the last change that this process knows of. `None` without a bus.
    pub fn latest_change(&self) -> Option<Position> {
        self.subscriptions().map(|subscriptions| subscriptions.plan.bus.latest())
    }
}

/// Publishes changes to all subscribed clients, not only to the client of this request.
impl<S> Context<S> {
    /// Publishes that the list of tools has changed.
    pub async fn notify_tools_changed(&self) {
        self.server().publish(Event::ToolsChanged).await;
    }

    /// Publishes that the list of prompts has changed.
    pub async fn notify_prompts_changed(&self) {
        self.server().publish(Event::PromptsChanged).await;
    }

    /// Publishes that the list of resources has changed.
    pub async fn notify_resources_changed(&self) {
        self.server().publish(Event::ResourcesChanged).await;
    }

    /// Publishes that the resource with this URI has changed.
    pub async fn notify_resource_updated(&self, uri: &str) {
        self.server().publish(Event::resource_updated(uri)).await;
    }
}
