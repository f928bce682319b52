//! A client that shows what it sees of the cluster. It knows one address, and nothing of the nodes.

use std::time::Duration;

use duplexer::CallError;
use duplexer::client::prelude::*;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::node::COLOUR;

/// The client, and its calls that run.
pub(crate) struct Demo {
    client: Client,
    calls: JoinSet<()>,
    started: u32,
}

impl Demo {
    /// Opens a session (of the handshake era, whose streams can be resumed), and listens for changes.
    pub(crate) async fn open(url: &str) -> Result<Self, BoxError> {
        let answer = |_| std::future::ready(Ok(ElicitResult::accept(json!({"colour": "blue"}))));
        let builder = Client::builder("cluster", "1.0.0").negotiation(Negotiation::Handshake);
        let client = builder.on_elicitation(answer).open(url).await?;
        Ok(Self { client, calls: JoinSet::new(), started: 0 })
    }

    /// Starts a long call, and prints its progress.
    pub(crate) fn work(&mut self, steps: u32) {
        self.started += 1;
        self.calls.spawn(work(self.client.clone(), self.started, steps));
    }

    /// Calls a tool that asks. The answer goes to any node, which passes it on.
    pub(crate) async fn ask(&self) {
        match self.client.call_tool("ask", json!({})).text().await {
            Ok(text) => println!("ask: {text}"),
            Err(error) => println!("ask: failed: {error}"),
        }
    }

    /// Publishes a change at any node, and hears of it through any other.
    pub(crate) async fn change(&self) {
        match timeout(Duration::from_secs(10), self.hear_of_a_change()).await {
            Ok(Ok(text)) => println!("change: {text}, and heard"),
            Ok(Err(error)) => println!("change: failed: {error}"),
            Err(_) => println!("change: failed: not heard"),
        }
    }

    async fn hear_of_a_change(&self) -> Result<String, BoxError> {
        let filter = SubscriptionFilter::new().resource_subscriptions([COLOUR.to_owned()]);
        let mut changes = self.client.changes(filter).await?;
        let published = self.client.call_tool("change", json!({})).text().await?;
        changes.next().await.ok_or("the session has ended")??;
        Ok(published)
    }
}

async fn work(client: Client, number: u32, steps: u32) {
    loop {
        let call =
            client.call_tool("work", json!({"steps": steps})).no_timeout().on_progress(move |progress| {
                if let Some(text) = progress.message {
                    println!("call {number}: {text}");
                }
            });
        match call.text().await {
            Ok(text) => return println!("call {number}: {text}"),
            // The call may have run. Its tool is idempotent, so that does not matter.
            Err(ClientError::Call(error)) if is_lost(&error) => {
                println!("call {number}: its node is gone; it is called again");
            }
            Err(error) => return println!("call {number}: failed: {error}"),
        }
    }
}

/// Returns whether a call has failed with its node, or with the connection to it.
fn is_lost(error: &CallError) -> bool {
    match error {
        CallError::Rpc(error) => error.data.as_ref().is_some_and(|data| data.as_str().contains("node_lost")),
        other => {
            other.kind() == ErrorKind::Closed || other.refusal().is_some_and(|refusal| refusal.status == 502)
        }
    }
}
