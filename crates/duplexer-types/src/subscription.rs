//! `subscriptions/listen`: a stream of change notifications (envelope era).

use crate::model::model;

model! {
    /// [Filter](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#notification-filter) of a subscription: what the client requests, or
    /// what the server acknowledges.
    ///
    /// ```
    /// use duplexer_types::subscription::SubscriptionFilter;
    ///
    /// let filter = SubscriptionFilter::new().tools_list_changed(true).resource_subscriptions(["clock://now".to_owned()]);
    /// assert_eq!(filter.prompts_list_changed, None);
    /// ```
    pub struct SubscriptionFilter {} optional {
        /// Sends `notifications/tools/list_changed`.
        tools_list_changed: bool = "toolsListChanged",
        /// Sends `notifications/prompts/list_changed`.
        prompts_list_changed: bool = "promptsListChanged",
        /// Sends `notifications/resources/list_changed`.
        resources_list_changed: bool = "resourcesListChanged",
        /// Sends `notifications/resources/updated` for the resources with these URIs.
        resource_subscriptions: Vec<String> = "resourceSubscriptions",
        /// Sends `notifications/tasks` for these tasks (tasks extension).
        task_ids: Vec<String> = "taskIds",
    }
}

model! {
    /// Parameters of a [`subscriptions/listen`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#opening-a-stream) request.
    #[doc(alias = "subscriptions/listen")]
    pub struct SubscriptionsListenParams {
        /// The requested notifications.
        notifications: SubscriptionFilter = "notifications",
    }
}

model! {
    /// Parameters of a [`notifications/subscriptions/acknowledged`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#acknowledgment)
    /// notification, the first message of the stream.
    #[doc(alias = "notifications/subscriptions/acknowledged")]
    pub struct SubscriptionsAcknowledgedParams {
        /// The notifications that the server will send: a subset of the requested ones.
        notifications: SubscriptionFilter = "notifications",
    }
}

model! {
    /// Result of a [`subscriptions/listen`](https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions#cancellation) request: the server ends the
    /// stream. Its `_meta` holds the id of the subscription.
    #[doc(alias = "subscriptions/listen")]
    pub result SubscriptionsListenResult {}
}
