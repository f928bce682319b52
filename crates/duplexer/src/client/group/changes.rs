//! Changes of all servers of a group, in one queue.

use duplexer_types::subscription::SubscriptionFilter;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::ClientGroup;
use crate::client::{Change, Client};

/// Maximum number of changes that wait for the reader. Then the servers' own queues merge equal changes.
const MAX_QUEUED: usize = 64;

/// Changes of the servers of a group, from [`ClientGroup::changes`]. Dropping it ends the subscriptions.
#[derive(Debug)]
pub struct GroupChanges {
    queue: mpsc::Receiver<(String, Change)>,
    _tasks: JoinSet<()>,
}

impl GroupChanges {
    /// Returns the next change with the name of its server, or `None` when no server reports changes any more.
    pub async fn next(&mut self) -> Option<(String, Change)> {
        self.queue.recv().await
    }
}

impl ClientGroup {
    /// Subscribes to changes of all servers. A server that refuses, or whose subscription is lost, is logged and left out.
    pub fn changes(&self, filter: &SubscriptionFilter) -> GroupChanges {
        let (sender, queue) = mpsc::channel(MAX_QUEUED);
        let mut tasks = JoinSet::new();
        for (name, client) in self.members.clone() {
            tasks.spawn(forward(name, client, filter.clone(), sender.clone()));
        }
        GroupChanges { queue, _tasks: tasks }
    }
}

async fn forward(
    server: String,
    client: Client,
    filter: SubscriptionFilter,
    sender: mpsc::Sender<(String, Change)>,
) {
    let mut changes = match client.changes(filter).await {
        Ok(changes) => changes,
        Err(error) => {
            tracing::warn!(%error, server, "a server of a group reports no changes");
            return;
        }
    };
    // The stream ends with the session, which it must not keep open.
    drop(client);
    while let Some(change) = changes.next().await {
        match change {
            Ok(change) => {
                if sender.send((server.clone(), change)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, server, "the changes of a server of a group were lost");
                return;
            }
        }
    }
}
