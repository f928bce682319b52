//! Subscriptions of a session, whose changes become events for the page.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use duplexer_client::{Change, Changes, Client};
use duplexer_core::dispatch::lock;
use duplexer_core::error::BoxError;
use duplexer_types::subscription::SubscriptionFilter;
use serde_json::json;
use tokio::task::JoinSet;

use super::Choice;
use crate::state::State;

/// Maximum number of resources that are watched.
const MAX_WATCHED: usize = 100;

/// The tasks that read changes, by the URI of the resource; lists have the empty URI. Dropping a task ends the
/// subscription.
#[derive(Debug, Default)]
pub(crate) struct Watches(Mutex<HashMap<String, JoinSet<()>>>);

impl Watches {
    /// Watches the lists that the server announces changes of.
    pub(super) async fn lists(
        &self,
        state: &Arc<State>,
        choice: Choice,
        client: &Client,
    ) -> Result<(), BoxError> {
        let offered = client.server_capabilities();
        let tools = offered.tools.as_ref().and_then(|it| it.list_changed) == Some(true);
        let prompts = offered.prompts.as_ref().and_then(|it| it.list_changed) == Some(true);
        let resources = offered.resources.as_ref().and_then(|it| it.list_changed) == Some(true);
        if !tools && !prompts && !resources {
            return Ok(());
        }
        let filter = SubscriptionFilter::new()
            .tools_list_changed(tools)
            .prompts_list_changed(prompts)
            .resources_list_changed(resources);
        let changes = client.changes(filter).await?;
        self.read(state, choice, String::new(), changes);
        Ok(())
    }

    /// Watches a resource.
    pub(crate) async fn resource(
        &self,
        state: &Arc<State>,
        choice: Choice,
        client: &Client,
        uri: String,
    ) -> Result<(), BoxError> {
        if lock(&self.0).len() >= MAX_WATCHED {
            return Err(format!("at most {MAX_WATCHED} resources can be watched").into());
        }
        let filter = SubscriptionFilter::new().resource_subscriptions([uri.clone()]);
        let changes = client.changes(filter).await?;
        self.read(state, choice, uri, changes);
        Ok(())
    }

    /// Ends the subscription to a resource.
    pub(crate) fn forget(&self, uri: &str) {
        let task = lock(&self.0).remove(uri);
        drop(task);
    }

    pub(super) fn end(&self) {
        let tasks = std::mem::take(&mut *lock(&self.0));
        drop(tasks);
    }

    fn read(&self, state: &Arc<State>, choice: Choice, uri: String, changes: Changes) {
        let (state, mut task) = (Arc::clone(state), JoinSet::new());
        let watched = uri.clone();
        task.spawn(async move { follow(&state, choice, &watched, changes).await });
        let earlier = lock(&self.0).insert(uri, task);
        drop(earlier);
    }
}

async fn follow(state: &State, choice: Choice, watched: &str, mut changes: Changes) {
    let session = choice.name();
    loop {
        let at = state.page.clock.now();
        match changes.next().await {
            Some(Ok(change)) => {
                let (what, uri) = match &change {
                    Change::Tools => ("tools", None),
                    Change::Prompts => ("prompts", None),
                    Change::Resources => ("resources", None),
                    Change::Resource(uri) => ("resource", Some(uri)),
                    _ => continue,
                };
                let at = state.page.clock.now();
                state
                    .tell(&json!({"type": "change", "session": session, "at": at, "what": what, "uri": uri}));
            }
            Some(Err(error)) => {
                let reason = error.to_string();
                state.tell(&json!({
                    "type": "unwatched", "session": session, "at": at, "uri": watched, "reason": reason,
                }));
                return;
            }
            None => return,
        }
    }
}
