//! Saying that something has changed.

use super::bus::Event;
use crate::kernel::context::Context;
use crate::registry::RunningServer;

impl RunningServer {
    /// Tells whoever has subscribed that something has changed. Without a bus there is nobody.
    ///
    /// What a bus fails to carry is logged; whoever wants to know asks the bus itself.
    pub async fn publish(&self, event: Event) {
        let Some(subscriptions) = self.subscriptions() else { return };
        if let Err(error) = subscriptions.plan.bus.publish(event).await {
            tracing::warn!(error, "a change could not be published");
        }
    }
}

/// Saying to all subscribed clients, not only to this one, that something has changed.
impl<S> Context<S> {
    /// The list of tools.
    pub async fn notify_tools_changed(&self) {
        self.server().publish(Event::ToolsChanged).await;
    }

    /// The list of prompts.
    pub async fn notify_prompts_changed(&self) {
        self.server().publish(Event::PromptsChanged).await;
    }

    /// The list of resources.
    pub async fn notify_resources_changed(&self) {
        self.server().publish(Event::ResourcesChanged).await;
    }

    /// The resource with this URI.
    pub async fn notify_resource_updated(&self, uri: &str) {
        self.server().publish(Event::resource_updated(uri)).await;
    }
}
