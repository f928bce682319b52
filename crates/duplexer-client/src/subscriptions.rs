//! `subscriptions/listen` on the client: a stream of changes that starts with the server's acknowledgement.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use duplexer_types::subscription::{SubscriptionFilter, SubscriptionsListenParams};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::{Client, ClientError};
use duplexer_core::dispatch::{Message, lock};
use duplexer_core::error::CallError;

/// Maximum number of changes queued for a slow reader. Beyond it the stream is lost.
const MAX_QUEUED: usize = 1024;

/// Change of something that the server offers.
///
/// ```
/// use duplexer::client::Change;
///
/// fn text(change: &Change) -> String {
///     match change {
///         Change::Resource(uri) => format!("{uri} has changed"),
///         Change::Tools => "the server has other tools".to_owned(),
///         _ => "a list has changed".to_owned(),
///     }
/// }
/// assert_eq!(text(&Change::Resource("clock://now".to_owned())), "clock://now has changed");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The resource with this URI.
    Resource(String),
}

/// Error of a stream that did not end with the server's result. Changes may have been missed.
#[derive(Debug, thiserror::Error)]
#[error("the subscription was lost")]
pub struct SubscriptionLost(#[source] Option<CallError>);

/// Stream of changes from `subscriptions/listen`. Dropping it cancels the request.
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
/// let mut stream = client.listen(filter).await?;
/// client.call_tool("set", ()).await?;
/// assert_eq!(stream.next().await.unwrap()?, Change::Resource("clock://now".to_owned()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ListenStream {
    acknowledged: SubscriptionFilter,
    route: Arc<Route>,
    _listening: JoinSet<()>,
}

impl ListenStream {
    /// Returns the part of the requested filter that the server has acknowledged.
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// Returns the next change, or `None` after the server has ended the stream. Equal queued changes are merged.
    ///
    /// # Errors
    ///
    /// Fails if the connection was lost, if the server ended the stream with an error, and if the reader has fallen too
    /// far behind.
    pub async fn next(&mut self) -> Option<Result<Change, SubscriptionLost>> {
        self.route.next().await
    }
}

impl Client {
    /// Subscribes to changes (`subscriptions/listen`, envelope era). Returns when the server has acknowledged it.
    ///
    /// ```no_run
    /// # use duplexer_client::{Client, ClientError};
    /// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
    /// use duplexer_types::subscription::SubscriptionFilter;
    ///
    /// let mut changes = client.listen(SubscriptionFilter::new().tools_list_changed(true)).await?;
    /// while let Some(change) = changes.next().await {
    ///     println!("{:?} changed", change?);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the server refuses the subscription or does not acknowledge it within the client's timeout, and with
    /// [`ClientError::Unavailable`] in the handshake era.
    #[doc(alias("subscribe", "notification"))]
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<ListenStream, ClientError> {
        self.check_available(Method::SubscriptionsListen)?;
        let params = SubscriptionsListenParams::new(filter);
        let mut request =
            self.0.session.envelope.attach(Method::SubscriptionsListen, &params, JsonObject::new())?;
        let (id, route) = self.0.routes.open();
        request.options.id = Some(id.clone());
        let mut listening = JoinSet::new();
        // Not the client itself, which a stream must not keep open.
        let (peer, routes) = (Arc::clone(&self.0.peer), Arc::clone(&self.0.routes));
        let listener = Arc::clone(&route);
        listening.spawn(async move {
            let _guard = RouteGuard { routes: &routes, id };
            let ended = peer.request(request).await;
            listener.end(ended.map(|_| ()));
        });
        let acknowledged = self.wait_for_acknowledgement(&route).await?;
        Ok(ListenStream { acknowledged, route, _listening: listening })
    }

    async fn wait_for_acknowledgement(&self, route: &Route) -> Result<SubscriptionFilter, ClientError> {
        let acknowledged = async {
            loop {
                let updated = route.updated.notified();
                match route.acknowledgement() {
                    Some(outcome) => return outcome.map_err(ClientError::Call),
                    None => updated.await,
                }
            }
        };
        tokio::select! {
            biased;
            outcome = acknowledged => outcome,
            () = self.0.timeouts.clock.run_for(self.0.timeouts.idle) => {
                Err(CallError::timeout(Method::SubscriptionsListen.name()).into())
            }
        }
    }
}

/// Removes a route when its request ends, also when its task is aborted.
struct RouteGuard<'a> {
    routes: &'a Routes,
    id: RequestId,
}

impl Drop for RouteGuard<'_> {
    fn drop(&mut self) {
        lock(&self.routes.open).remove(&self.id);
    }
}

/// Open streams by the id of their `subscriptions/listen` request.
#[derive(Debug, Default)]
pub(super) struct Routes {
    open: Mutex<HashMap<RequestId, Arc<Route>>>,
    opened: AtomicU64,
    watchers: Mutex<Watchers>,
}

/// Readers of changes in the handshake era, whose notifications name no stream.
#[derive(Debug, Default)]
struct Watchers {
    routes: Vec<(SubscriptionFilter, Arc<Route>)>,
    /// Number of readers of each resource that is subscribed to.
    readers: HashMap<String, usize>,
}

impl Routes {
    fn open(&self) -> (RequestId, Arc<Route>) {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let id = RequestId::from(format!("listen-{number}").as_str());
        let route = Arc::new(Route::default());
        lock(&self.open).insert(id.clone(), Arc::clone(&route));
        (id, route)
    }

    /// Finds the stream whose subscription id a notification carries.
    fn find(&self, call: &Message) -> Option<Arc<Route>> {
        let meta: JsonObject = serde_json::from_str(call.meta()?).ok()?;
        let id: RequestId = meta.get(key::SUBSCRIPTION_ID)?.decode().ok()?;
        let open = lock(&self.open);
        open.get(&id).or_else(|| open.get(&id.twin()?)).map(Arc::clone)
    }

    /// Records the server's acknowledgement of a stream.
    pub(super) fn acknowledge(&self, call: &Message, filter: SubscriptionFilter) {
        if let Some(route) = self.find(call) {
            lock(&route.state).acknowledged.get_or_insert(filter);
            route.updated.notify_one();
        }
    }

    /// Opens a queue for the changes that `filter` selects (handshake era).
    pub(super) fn watch(&self, filter: SubscriptionFilter) -> Arc<Route> {
        let route = Arc::new(Route::default());
        lock(&self.watchers).routes.push((filter, Arc::clone(&route)));
        route
    }

    pub(super) fn unwatch(&self, route: &Arc<Route>) {
        lock(&self.watchers).routes.retain(|(_, open)| !Arc::ptr_eq(open, route));
    }

    pub(super) fn add_reader(&self, uri: &str) {
        *lock(&self.watchers).readers.entry(uri.to_owned()).or_default() += 1;
    }

    /// Removes a reader of a resource. Returns whether it was the last.
    pub(super) fn remove_reader(&self, uri: &str) -> bool {
        let readers = &mut lock(&self.watchers).readers;
        let Some(count) = readers.get_mut(uri) else { return false };
        *count -= 1;
        let last = *count == 0;
        if last {
            readers.remove(uri);
        }
        last
    }

    /// Queues every change that watchers can have missed.
    pub(super) fn report_missed(&self) {
        for (filter, route) in &lock(&self.watchers).routes {
            for change in all_changes(filter) {
                route.deliver(change);
            }
        }
    }

    /// Queues a change for the stream it belongs to.
    pub(super) fn deliver(&self, call: &Message, change: Change) {
        for (_, route) in lock(&self.watchers).routes.iter().filter(|(filter, _)| selects(filter, &change)) {
            route.deliver(change.clone());
        }
        if let Some(route) = self.find(call) {
            route.deliver(change);
        }
    }
}

/// Returns every change that a filter selects.
pub(super) fn all_changes(filter: &SubscriptionFilter) -> Vec<Change> {
    let lists = [
        (filter.tools_list_changed, Change::Tools),
        (filter.prompts_list_changed, Change::Prompts),
        (filter.resources_list_changed, Change::Resources),
    ];
    let selected =
        lists.into_iter().filter(|(selected, _)| *selected == Some(true)).map(|(_, change)| change);
    selected.chain(filter.resource_subscriptions.iter().flatten().cloned().map(Change::Resource)).collect()
}

fn selects(filter: &SubscriptionFilter, change: &Change) -> bool {
    match change {
        Change::Tools => filter.tools_list_changed == Some(true),
        Change::Prompts => filter.prompts_list_changed == Some(true),
        Change::Resources => filter.resources_list_changed == Some(true),
        Change::Resource(uri) => filter.resource_subscriptions.iter().flatten().any(|own| own == uri),
    }
}

/// Queue of one stream, between the connection and its reader.
#[derive(Debug, Default)]
pub(super) struct Route {
    state: Mutex<RouteState>,
    updated: Notify,
}

#[derive(Debug, Default)]
struct RouteState {
    acknowledged: Option<SubscriptionFilter>,
    queued: VecDeque<Change>,
    ended: Option<Result<(), Option<CallError>>>,
}

impl Route {
    pub(super) async fn next(&self) -> Option<Result<Change, SubscriptionLost>> {
        loop {
            let updated = self.updated.notified();
            match self.take() {
                Next::Pending => updated.await,
                Next::Change(change) => return Some(Ok(change)),
                Next::Ended => return None,
                Next::Lost(lost) => return Some(Err(lost)),
            }
        }
    }

    pub(super) fn deliver(&self, change: Change) {
        let mut state = lock(&self.state);
        if state.ended.is_some() || state.queued.contains(&change) {
            return;
        }
        if state.queued.len() >= MAX_QUEUED {
            state.ended = Some(Err(None));
        } else {
            state.queued.push_back(change);
        }
        drop(state);
        self.updated.notify_one();
    }

    /// Ends the queue with the error of the stream that fed it.
    pub(super) fn fail(&self, lost: Option<SubscriptionLost>) {
        lock(&self.state).ended.get_or_insert(Err(lost.and_then(|lost| lost.0)));
        self.updated.notify_one();
    }

    pub(super) fn end(&self, outcome: Result<(), CallError>) {
        lock(&self.state).ended.get_or_insert(outcome.map_err(Some));
        self.updated.notify_one();
    }

    fn acknowledgement(&self) -> Option<Result<SubscriptionFilter, CallError>> {
        let mut state = lock(&self.state);
        if let Some(filter) = &state.acknowledged {
            return Some(Ok(filter.clone()));
        }
        let ended = state.ended.take()?;
        Some(Err(ended.err().flatten().unwrap_or(CallError::Closed)))
    }

    fn take(&self) -> Next {
        let mut state = lock(&self.state);
        if let Some(change) = state.queued.pop_front() {
            return Next::Change(change);
        }
        match &mut state.ended {
            None => Next::Pending,
            Some(Ok(())) => Next::Ended,
            Some(Err(cause)) => Next::Lost(SubscriptionLost(cause.take())),
        }
    }
}

/// Next item of a stream.
enum Next {
    Pending,
    Change(Change),
    Ended,
    Lost(SubscriptionLost),
}
