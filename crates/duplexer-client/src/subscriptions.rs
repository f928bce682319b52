//! `subscriptions/listen` seen from the client: a stream of changes that begins with the server's word for it.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::meta::key;
use duplexer_types::methods::{Request, SubscriptionsListen};
use duplexer_types::subscription::{SubscriptionFilter, SubscriptionsListenParams};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::{Client, ClientError};
use duplexer_core::dispatch::{Invocation, lock};
use duplexer_core::error::CallError;

/// How many changes wait for a slow reader before the stream is given up.
const BACKLOG: usize = 1024;

/// Something the server offers has changed.
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

/// The stream ended without the server's word for it: changes may have been missed.
#[derive(Debug, thiserror::Error)]
#[error("the subscription was lost")]
pub struct SubscriptionLost(#[source] Option<CallError>);

/// Changes as they happen. Dropped, the server is told to stop.
#[derive(Debug)]
pub struct ListenStream {
    acknowledged: SubscriptionFilter,
    route: Arc<Route>,
    _listening: JoinSet<()>,
}

impl ListenStream {
    /// What the server has agreed to report: perhaps less than was asked for.
    pub fn acknowledged(&self) -> &SubscriptionFilter {
        &self.acknowledged
    }

    /// The next change; `None` when the server has ended the stream in order. Equal changes that wait are one.
    pub async fn next(&mut self) -> Option<Result<Change, SubscriptionLost>> {
        loop {
            let news = self.route.news.notified();
            match self.route.take() {
                Next::Nothing => news.await,
                Next::Change(change) => return Some(Ok(change)),
                Next::Ended => return None,
                Next::Lost(lost) => return Some(Err(lost)),
            }
        }
    }
}

impl Client {
    /// Listens to changes; returns when the server has acknowledged it.
    pub async fn listen(&self, filter: SubscriptionFilter) -> Result<ListenStream, ClientError> {
        self.check_available(SubscriptionsListen::METHOD)?;
        let params = SubscriptionsListenParams::new(filter);
        let mut request =
            self.0.session.envelope.attach::<SubscriptionsListen>(&params, JsonObject::new())?;
        let (id, route) = self.0.routes.open();
        request.options.id = Some(id.clone());
        let mut listening = JoinSet::new();
        let (client, end) = (self.clone(), Arc::clone(&route));
        listening.spawn(async move {
            let _closing = Closing { client: &client, id };
            let ended = client.0.peer.request(request).await;
            end.end(ended.map(|_| ()));
        });
        let acknowledged = self.wait_for_acknowledgement(&route).await?;
        Ok(ListenStream { acknowledged, route, _listening: listening })
    }

    async fn wait_for_acknowledgement(&self, route: &Route) -> Result<SubscriptionFilter, ClientError> {
        let acknowledged = async {
            loop {
                let news = route.news.notified();
                match route.acknowledgement() {
                    Some(answer) => return answer.map_err(ClientError::Call),
                    None => news.await,
                }
            }
        };
        let patience = self.0.timeout.unwrap_or(Duration::MAX);
        match timeout(patience, acknowledged).await {
            Ok(answer) => answer,
            Err(_) => Err(CallError::timeout(SubscriptionsListen::METHOD.name()).into()),
        }
    }
}

/// Forgets a route when its request has ended, however it did.
struct Closing<'a> {
    client: &'a Client,
    id: RequestId,
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        lock(&self.client.0.routes.open).remove(&self.id);
    }
}

/// Which streams are open, by the id of the request that opened them.
#[derive(Debug, Default)]
pub(super) struct Routes {
    open: Mutex<HashMap<RequestId, Arc<Route>>>,
    opened: AtomicU64,
}

impl Routes {
    fn open(&self) -> (RequestId, Arc<Route>) {
        let number = self.opened.fetch_add(1, Ordering::Relaxed) + 1;
        let id = RequestId::from(format!("listen-{number}").as_str());
        let route = Arc::new(Route::default());
        lock(&self.open).insert(id.clone(), Arc::clone(&route));
        (id, route)
    }

    /// The stream a notification belongs to, if it says so.
    fn of(&self, call: &Invocation) -> Option<Arc<Route>> {
        let meta: JsonObject = serde_json::from_str(call.meta()?).ok()?;
        let id: RequestId = meta.get(key::SUBSCRIPTION_ID)?.decode().ok()?;
        let open = lock(&self.open);
        open.get(&id).or_else(|| open.get(&id.twin()?)).map(Arc::clone)
    }

    /// The server has agreed to a stream.
    pub(super) fn acknowledge(&self, call: &Invocation, acknowledged: SubscriptionFilter) {
        if let Some(route) = self.of(call) {
            lock(&route.state).acknowledged.get_or_insert(acknowledged);
            route.news.notify_one();
        }
    }

    /// Something has changed that a stream may be about.
    pub(super) fn deliver(&self, call: &Invocation, change: Change) {
        if let Some(route) = self.of(call) {
            route.deliver(change);
        }
    }
}

/// One stream between the connection and its reader.
#[derive(Debug, Default)]
pub(super) struct Route {
    state: Mutex<State>,
    news: Notify,
}

#[derive(Debug, Default)]
struct State {
    acknowledged: Option<SubscriptionFilter>,
    waiting: VecDeque<Change>,
    ended: Option<Result<(), Option<CallError>>>,
}

impl Route {
    fn deliver(&self, change: Change) {
        let mut state = lock(&self.state);
        if state.ended.is_some() || state.waiting.contains(&change) {
            return;
        }
        if state.waiting.len() >= BACKLOG {
            state.ended = Some(Err(None));
        } else {
            state.waiting.push_back(change);
        }
        drop(state);
        self.news.notify_one();
    }

    fn end(&self, how: Result<(), CallError>) {
        lock(&self.state).ended.get_or_insert(how.map_err(Some));
        self.news.notify_one();
    }

    fn acknowledgement(&self) -> Option<Result<SubscriptionFilter, CallError>> {
        let mut state = lock(&self.state);
        if let Some(acknowledged) = &state.acknowledged {
            return Some(Ok(acknowledged.clone()));
        }
        let ended = state.ended.take()?;
        Some(Err(ended.err().flatten().unwrap_or(CallError::Closed)))
    }

    fn take(&self) -> Next {
        let mut state = lock(&self.state);
        if let Some(change) = state.waiting.pop_front() {
            return Next::Change(change);
        }
        match &mut state.ended {
            None => Next::Nothing,
            Some(Ok(())) => Next::Ended,
            Some(Err(cause)) => Next::Lost(SubscriptionLost(cause.take())),
        }
    }
}

/// What there is to tell the reader of a stream.
enum Next {
    Nothing,
    Change(Change),
    Ended,
    Lost(SubscriptionLost),
}
