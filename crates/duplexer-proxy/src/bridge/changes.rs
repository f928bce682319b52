//! Changes of an envelope server for clients of the handshake era: one stream for the lists, and one per subscription.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use duplexer_client::{Change, Changes};
use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::subscription::SubscriptionFilter;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

use super::listen::accepted;
use crate::failure;
use crate::link::Link;

/// Delay before a lost stream is opened again.
const DELAY: Duration = Duration::from_secs(1);
/// Maximum number of resources that one client is subscribed to.
const MAX_SUBSCRIPTIONS: usize = 1024;

/// The streams of one session. Dropping it ends them.
#[derive(Default)]
pub(crate) struct Streams {
    tasks: Mutex<JoinSet<()>>,
    resources: Mutex<HashMap<String, AbortHandle>>,
}

impl Streams {
    /// Opens the stream of list changes.
    pub(crate) fn follow_lists(&self, link: &Arc<Link>) {
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .prompts_list_changed(true)
            .resources_list_changed(true);
        lock(&self.tasks).spawn(follow(Arc::downgrade(link), filter, None));
    }

    /// Subscribes to a resource. Returns when the server has accepted it.
    pub(crate) async fn subscribe(&self, link: &Arc<Link>, uri: String) -> Result<(), McpError> {
        if lock(&self.resources).len() >= MAX_SUBSCRIPTIONS {
            let text = format!("a client can subscribe to at most {MAX_SUBSCRIPTIONS} resources");
            return Err(McpError::new(ErrorCode::INVALID_REQUEST, text));
        }
        let filter = SubscriptionFilter::new().resource_subscriptions([uri.clone()]);
        let first = link.upstream().await?.client.changes(filter.clone()).await;
        let first = first.map_err(failure::of_client)?;
        let task = lock(&self.tasks).spawn(follow(Arc::downgrade(link), filter, Some(first)));
        if let Some(earlier) = lock(&self.resources).insert(uri, task) {
            earlier.abort();
        }
        Ok(())
    }

    /// Runs work that the session owns.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = lock(&self.tasks);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work);
    }

    pub(crate) fn unsubscribe(&self, uri: &str) {
        if let Some(task) = lock(&self.resources).remove(uri) {
            task.abort();
        }
        while lock(&self.tasks).try_join_next().is_some() {}
    }
}

/// Reports changes to the clients of a session, over as many sessions with the server as there are.
async fn follow(link: Weak<Link>, filter: SubscriptionFilter, first: Option<Changes>) {
    let mut changes = first;
    let mut is_first = changes.is_none();
    loop {
        if let Some(changes) = &mut changes {
            report(&link, changes).await;
        }
        if !is_first {
            sleep(DELAY).await;
        }
        let Some(link) = link.upgrade() else { return };
        changes = match link.upstream().await {
            Ok(upstream) => {
                let offered = accepted(filter.clone(), upstream.client.server_capabilities());
                if offered == SubscriptionFilter::new() {
                    return;
                }
                upstream.client.changes(offered).await.ok()
            }
            Err(_) => None,
        };
        if !is_first && changes.is_some() {
            for change in everything(&filter) {
                link.connections().report(&change).await;
            }
        }
        is_first = false;
    }
}

/// Reports changes until the session with the server ends.
async fn report(link: &Weak<Link>, changes: &mut Changes) {
    while let Some(Ok(change)) = changes.next().await {
        let Some(link) = link.upgrade() else { return };
        link.connections().report(&change).await;
    }
}

/// Returns every change that a stream can have missed.
fn everything(filter: &SubscriptionFilter) -> Vec<Change> {
    let lists = [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ];
    let lists = lists.into_iter().filter(|(wanted, _)| *wanted == Some(true)).map(|(_, change)| change);
    lists.chain(filter.resource_subscriptions.iter().flatten().cloned().map(Change::Resource)).collect()
}
