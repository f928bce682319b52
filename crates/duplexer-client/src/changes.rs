//! Changes of what a server offers, with one interface for both eras.
//!
//! In the envelope era a task keeps a `subscriptions/listen` stream open and opens it again when it is lost. In the
//! handshake era the server sends list changes by itself, and `resources/subscribe` requests the rest.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_types::subscription::SubscriptionFilter;
use duplexer_types::version::Era;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::subscriptions::{Change, ListenStream, Route, SubscriptionLost, all_changes};
use super::{Client, ClientError, Inner};
use duplexer_core::dispatch::Cancellation;

/// Back-off before a lost stream is opened again: doubled with each attempt in a row, up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Maximum number of attempts in a row.
const MAX_ATTEMPTS: u32 = 10;
/// Minimum duration of a stream that starts a new row. A stream that ends at once would otherwise be opened indefinitely.
const HEALTHY: Duration = Duration::from_secs(5);

/// Changes of what a server offers, from [`Client::changes`]. Dropping it ends the subscription.
///
/// ```
/// use duplexer::client::prelude::*;
/// use duplexer::server::subscriptions::MemoryBus;
/// use duplexer::{Context, Resource, Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("clock", "1.0.0")
///     .subscriptions(MemoryBus::new())
///     .resource(Resource::text("clock://now", "noon").name("now"))
///     .tool(Tool::new("set", |cx: Context| async move { cx.notify_resource_updated("clock://now").await }))
///     .build()?;
/// let client = Client::builder("my-agent", "1.0").connect(server.in_process()).await?;
/// let filter = SubscriptionFilter::new().resource_subscriptions(["clock://now".to_owned()]);
/// let mut changes = client.changes(filter).await?;
/// client.call_tool("set", ()).await?;
/// assert_eq!(changes.next().await.unwrap()?, Change::Resource("clock://now".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Changes {
    route: Arc<Route>,
    source: Source,
}

/// What feeds the queue of changes.
#[derive(Debug)]
enum Source {
    Listening { _task: JoinSet<()> },
    Subscribed(Subscribed),
}

impl Changes {
    /// Returns the next change, or `None` after the session has ended. Equal queued changes are merged.
    ///
    /// # Errors
    ///
    /// Fails if the subscription was lost and could not be opened again, and if the reader has fallen too far behind.
    pub async fn next(&mut self) -> Option<Result<Change, SubscriptionLost>> {
        if let Source::Subscribed(subscribed) = &self.source {
            tokio::select! {
                biased;
                next = self.route.next() => return next,
                () = subscribed.session_ended.cancelled() => self.route.end(Ok(())),
            }
        }
        self.route.next().await
    }
}

impl Client {
    /// Subscribes to changes in either era. Returns when the server has accepted the subscription.
    ///
    /// A subscription that is lost is opened again: up to ten times in a row, with a growing delay. A stream that lasts five
    /// seconds starts a new row. Every change that can have been missed is then reported.
    ///
    /// ```no_run
    /// # use duplexer_client::Client;
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use duplexer_types::subscription::SubscriptionFilter;
    ///
    /// let filter = SubscriptionFilter::new()
    ///     .tools_list_changed(true)
    ///     .resource_subscriptions(["file:///work/notes.md".to_owned()]);
    /// let mut changes = client.changes(filter).await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{:?} changed", change?);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the server refuses the subscription, or a subscription to one of the resources (handshake era).
    pub async fn changes(&self, filter: SubscriptionFilter) -> Result<Changes, ClientError> {
        let (route, source) = match self.era() {
            Era::Envelope => {
                let stream = self.listen(filter.clone()).await?;
                let (route, mut task) = (Arc::new(Route::default()), JoinSet::new());
                task.spawn(follow(Arc::downgrade(&self.0), filter, stream, Arc::clone(&route)));
                (route, Source::Listening { _task: task })
            }
            Era::Handshake => {
                let route = self.0.routes.watch(filter.clone());
                let guard = Subscribed {
                    client: Arc::downgrade(&self.0),
                    session_ended: self.0.task.end_signal(),
                    route: Arc::clone(&route),
                    uris: Vec::new(),
                };
                (route, Source::Subscribed(self.subscribe_all(guard, filter).await?))
            }
        };
        Ok(Changes { route, source })
    }

    /// Subscribes to the resources of a filter. If one is refused, the guard ends the earlier ones.
    async fn subscribe_all(
        &self,
        mut guard: Subscribed,
        filter: SubscriptionFilter,
    ) -> Result<Subscribed, ClientError> {
        for uri in filter.resource_subscriptions.unwrap_or_default() {
            self.0.routes.add_reader(&uri);
            guard.uris.push(uri.clone());
            self.subscribe(uri).await?;
        }
        Ok(guard)
    }
}

/// Forwards changes of a stream, and opens the stream again when it ends.
async fn follow(client: Weak<Inner>, filter: SubscriptionFilter, first: ListenStream, route: Arc<Route>) {
    let (mut stream, mut attempts) = (first, 0);
    loop {
        let opened = Instant::now();
        let lost = forward(&mut stream, &route).await;
        if opened.elapsed() >= HEALTHY {
            attempts = 0;
        }
        stream = match reopen(&client, &filter, &mut attempts).await {
            Reopened::Stream(stream) => stream,
            Reopened::SessionEnded => return route.end(Ok(())),
            Reopened::Refused => return route.fail(lost),
        };
        // What can have changed meanwhile is reported, and no longer taken from the cache.
        for change in all_changes(&filter) {
            if let Some(session) = client.upgrade() {
                session.resources.cache.invalidate(&change);
            }
            route.deliver(change);
        }
    }
}

/// Forwards changes until the stream ends. Returns the error, if it ended with one.
async fn forward(stream: &mut ListenStream, route: &Route) -> Option<SubscriptionLost> {
    loop {
        match stream.next().await {
            Some(Ok(change)) => route.deliver(change),
            Some(Err(lost)) => return Some(lost),
            None => return None,
        }
    }
}

enum Reopened {
    Stream(ListenStream),
    SessionEnded,
    Refused,
}

/// Opens a stream again. The task holds the session only while it sends a request, so that it does not keep it open.
async fn reopen(client: &Weak<Inner>, filter: &SubscriptionFilter, attempts: &mut u32) -> Reopened {
    while *attempts < MAX_ATTEMPTS {
        sleep(backoff(*attempts)).await;
        *attempts += 1;
        let Some(client) = client.upgrade().map(Client) else { return Reopened::SessionEnded };
        if client.0.task.has_ended() {
            return Reopened::SessionEnded;
        }
        match client.listen(filter.clone()).await {
            Ok(stream) => return Reopened::Stream(stream),
            Err(error) => tracing::debug!(%error, attempts, "a subscription could not be opened again"),
        }
    }
    Reopened::Refused
}

/// Returns a random delay between half the back-off and the back-off, so that clients do not return all at once.
pub(super) fn backoff(attempt: u32) -> Duration {
    let full = (FIRST_BACKOFF * 2_u32.saturating_pow(attempt.min(8))).min(MAX_BACKOFF);
    let random = RandomState::new().hash_one(attempt) % 1000;
    full / 2 + full / 2 * u32::try_from(random).unwrap_or(0) / 1000
}

/// Subscriptions of the handshake era. Dropping them unsubscribes from resources that have no other reader.
#[derive(Debug)]
struct Subscribed {
    client: Weak<Inner>,
    session_ended: Arc<Cancellation>,
    route: Arc<Route>,
    uris: Vec<String>,
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        let Some(client) = self.client.upgrade().map(Client) else { return };
        client.0.routes.unwatch(&self.route);
        for uri in self.uris.drain(..).filter(|uri| client.0.routes.remove_reader(uri)) {
            let session = Arc::downgrade(&client.0);
            client.0.resources.spawn(async move {
                let Some(client) = session.upgrade().map(Client) else { return };
                if let Err(error) = client.unsubscribe(uri).await {
                    tracing::debug!(%error, "a subscription could not be ended");
                }
            });
        }
    }
}
