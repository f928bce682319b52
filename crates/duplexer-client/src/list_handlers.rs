//! Handlers of list changes: they get the fresh list, once for a burst of changes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_types::prompt::PromptDefinition;
use duplexer_types::resource::ResourceDefinition;
use duplexer_types::subscription::SubscriptionFilter;
use duplexer_types::tool::ToolDefinition;
use tokio::time::timeout;

use super::changes::backoff;
use super::{Change, Changes, Client, ClientBuilder, ClientError, Inner};

/// Time without another change after which the lists are requested.
const QUIET: Duration = Duration::from_millis(300);
/// Maximum number of changes in a burst, so that a server that never pauses does not delay the handlers indefinitely.
const MAX_BURST: usize = 100;
/// Maximum number of attempts to subscribe.
const MAX_ATTEMPTS: u32 = 5;

type Handler<T> = Option<Arc<dyn Fn(Vec<T>) + Send + Sync>>;

/// Handlers of list changes.
#[derive(Clone, Default)]
pub(super) struct ListHandlers {
    tools: Handler<ToolDefinition>,
    prompts: Handler<PromptDefinition>,
    resources: Handler<ResourceDefinition>,
}

impl ClientBuilder {
    /// Sets a handler that gets all tools after their list has changed.
    ///
    /// Changes that follow each other within 300 ms are one change. The client subscribes to them by itself in either
    /// era. The handler must not block.
    pub fn on_tools_changed(mut self, handler: impl Fn(Vec<ToolDefinition>) + Send + Sync + 'static) -> Self {
        self.callbacks.lists.tools = Some(Arc::new(handler));
        self
    }

    /// Sets a handler that gets all prompts after their list has changed; see [`Self::on_tools_changed`].
    pub fn on_prompts_changed(
        mut self,
        handler: impl Fn(Vec<PromptDefinition>) + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.lists.prompts = Some(Arc::new(handler));
        self
    }

    /// Sets a handler that gets all resources after their list has changed; see [`Self::on_tools_changed`].
    pub fn on_resources_changed(
        mut self,
        handler: impl Fn(Vec<ResourceDefinition>) + Send + Sync + 'static,
    ) -> Self {
        self.callbacks.lists.resources = Some(Arc::new(handler));
        self
    }
}

impl ListHandlers {
    /// Returns the changes that have a handler, or `None` without handlers.
    fn filter(&self) -> Option<SubscriptionFilter> {
        let mut filter = SubscriptionFilter::new();
        filter.tools_list_changed = self.tools.as_ref().map(|_| true);
        filter.prompts_list_changed = self.prompts.as_ref().map(|_| true);
        filter.resources_list_changed = self.resources.as_ref().map(|_| true);
        (filter != SubscriptionFilter::new()).then_some(filter)
    }

    /// Starts the task that runs the handlers of a session, if there are any.
    pub(super) fn start(client: &Client) {
        if let Some(filter) = client.0.callbacks.lists.filter() {
            client.0.resources.spawn(run(Arc::downgrade(&client.0), filter));
        }
    }

    /// Requests a list and gives it to its handler.
    async fn refresh(&self, client: &Client, change: &Change) -> Result<(), ClientError> {
        match change {
            Change::Tools => call(self.tools.as_ref(), client.all_tools().await?),
            Change::Prompts => call(self.prompts.as_ref(), client.all_prompts().await?),
            Change::Resources => call(self.resources.as_ref(), client.all_resources().await?),
            Change::Resource(_) => {}
        }
        Ok(())
    }
}

fn call<T>(handler: Option<&Arc<dyn Fn(Vec<T>) + Send + Sync>>, list: Vec<T>) {
    let Some(handler) = handler else { return };
    if catch_unwind(AssertUnwindSafe(|| handler(list))).is_err() {
        tracing::error!("a handler of list changes panicked");
    }
}

/// Waits for changes and runs the handlers, until the session or its subscription ends.
async fn run(session: Weak<Inner>, filter: SubscriptionFilter) {
    let Some(mut changes) = subscribe(&session, &filter).await else { return };
    loop {
        let burst = match changes.next().await {
            None => return,
            Some(Ok(first)) => burst(first, &mut changes).await,
            Some(Err(error)) => {
                tracing::warn!(%error, "the handlers of list changes end");
                return;
            }
        };
        let Some(client) = session.upgrade().map(Client) else { return };
        for change in &burst {
            if let Err(error) = client.0.callbacks.lists.refresh(&client, change).await {
                tracing::warn!(%error, ?change, "a changed list could not be requested");
            }
        }
    }
}

async fn subscribe(session: &Weak<Inner>, filter: &SubscriptionFilter) -> Option<Changes> {
    for attempt in 0..MAX_ATTEMPTS {
        let client = session.upgrade().map(Client)?;
        match client.changes(filter.clone()).await {
            Ok(changes) => return Some(changes),
            Err(error) if attempt + 1 == MAX_ATTEMPTS => {
                tracing::warn!(%error, "the client could not subscribe to list changes");
            }
            Err(_) => {}
        }
        drop(client);
        tokio::time::sleep(backoff(attempt)).await;
    }
    None
}

/// Collects the changes that follow the first one without a pause, each once.
async fn burst(first: Change, changes: &mut Changes) -> Vec<Change> {
    let mut all = vec![first];
    for _ in 0..MAX_BURST {
        match timeout(QUIET, changes.next()).await {
            Ok(Some(Ok(change))) if !all.contains(&change) => all.push(change),
            Ok(Some(Ok(_))) => {}
            // The error or the end of the stream is returned again.
            Ok(Some(Err(_)) | None) | Err(_) => break,
        }
    }
    all
}
