//! `subscriptions/listen`: change notifications on a stream of their own (envelope era).

use crate::model::model;

model! {
    /// Which changes a client wants to hear of, or which of them the server will tell.
    pub struct SubscriptionFilter {} optional {
        /// Of the list of tools.
        tools_list_changed: bool = "toolsListChanged",
        /// Of the list of prompts.
        prompts_list_changed: bool = "promptsListChanged",
        /// Of the list of resources.
        resources_list_changed: bool = "resourcesListChanged",
        /// Of the resources with these URIs.
        resource_subscriptions: Vec<String> = "resourceSubscriptions",
        /// Of these tasks (tasks extension).
        task_ids: Vec<String> = "taskIds",
    }
}

model! {
    /// Opens a stream of change notifications.
    pub struct SubscriptionsListenParams {
        /// What is asked for.
        notifications: SubscriptionFilter = "notifications",
    }
}

model! {
    /// The first message of the stream.
    pub struct SubscriptionsAcknowledgedParams {
        /// What will be told: a part of what was asked for.
        notifications: SubscriptionFilter = "notifications",
    }
}

model! {
    /// The server ends the stream. Its `_meta` names the subscription.
    pub result SubscriptionsListenResult {}
}
