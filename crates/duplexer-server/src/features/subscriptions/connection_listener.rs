//! The handshake era: change notifications on the client's connection, outside a request. An idle connection has no
//! task. The first waiting event starts a delivery, which ends with the last one; meanwhile events are merged, so that
//! a client that does not read blocks neither the bus nor other clients.

use std::sync::{Arc, Mutex, Weak};

use duplexer_types::error::ErrorCode;
use duplexer_types::resource::{SubscribeParams, UnsubscribeParams};
use tokio::runtime::Handle;

use super::Subscriptions;
use super::backlog::{Backlog, Pushed};
use super::bus::{Event, EventListener, Subscription};
use super::filter::{AdvertisedEvents, TooMany, Uris};
use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{Cancellation, lock};
use duplexer_core::error::McpError;

/// Number of events for changes of lists.
const LISTS: usize = 3;

/// Handles `resources/subscribe`.
pub(super) fn subscribe(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let params: SubscribeParams = cx.params()?;
    if let Some(listener) = ConnectionListener::open(cx.server(), cx.connection()) {
        let limits = listener.service.limits();
        lock(&listener.state)
            .uris
            .add(&params.uri, limits)
            .map_err(|TooMany| McpError::new(ErrorCode::INTERNAL_ERROR, "Subscription limit reached"))?;
    }
    Ok(Outcome::empty())
}

/// Handles `resources/unsubscribe`. A URI without a subscription is accepted.
pub(super) fn unsubscribe(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let params: UnsubscribeParams = cx.params()?;
    remove(cx.connection(), &[params.uri]);
    Ok(Outcome::empty())
}

/// Removes subscriptions of a connection.
pub(super) fn remove(connection: &Connection, uris: &[String]) {
    let Some(listener) = connection.state::<ConnectionListener>() else { return };
    let mut state = lock(&listener.state);
    for uri in uris {
        state.uris.remove(uri);
        state.backlog.remove(&Event::resource_updated(uri.as_str()));
    }
}

/// Returns the URIs that a connection is subscribed to, sorted.
pub(super) fn uris(connection: &Connection) -> Vec<String> {
    let listener = connection.state::<ConnectionListener>();
    listener.map_or_else(Vec::new, |listener| lock(&listener.state).uris.sorted())
}

/// Restores the subscriptions of a connection.
pub(super) fn restore(running: &RunningServer, connection: &Arc<Connection>, uris: &[String]) {
    let Some(listener) = ConnectionListener::open(running, connection) else { return };
    let mut state = lock(&listener.state);
    for uri in uris {
        if state.uris.add(uri, listener.service.limits()).is_err() {
            tracing::warn!("a connection was subscribed to more elsewhere than is allowed here");
            break;
        }
    }
}

/// The subscriptions of one connection. Owned by the connection.
pub(super) struct ConnectionListener {
    connection: Weak<Connection>,
    service: Arc<Subscriptions>,
    runtime: Handle,
    advertised: AdvertisedEvents,
    state: Mutex<ListenerState>,
    subscription: Mutex<Option<Subscription>>,
    closed: Cancellation,
}

/// Only lists and subscribed URIs are queued, so the backlog always has capacity.
struct ListenerState {
    uris: Uris,
    backlog: Backlog,
    delivering: bool,
}

impl ConnectionListener {
    /// Returns the listener of a connection, created and subscribed if necessary; `None` if the connection cannot be
    /// notified.
    pub(super) fn open(running: &RunningServer, connection: &Arc<Connection>) -> Option<Arc<Self>> {
        let service = running.subscriptions()?;
        if !connection.outlives_a_request() {
            return None;
        }
        let runtime = Handle::try_current().ok()?;
        let listener = connection.state_or(|| Self {
            connection: Arc::downgrade(connection),
            service: Arc::clone(service),
            runtime,
            advertised: AdvertisedEvents::from_capabilities(
                &running.handshake_capabilities(connection.version()),
            ),
            state: Mutex::new(ListenerState {
                uris: Uris::default(),
                backlog: Backlog::new(service.limits().uris.saturating_add(LISTS)),
                delivering: false,
            }),
            subscription: Mutex::default(),
            closed: Cancellation::new(),
        });
        let mut subscription = lock(&listener.subscription);
        if subscription.is_none() && !listener.closed.is_cancelled() {
            *subscription = Some(service.plan.bus.subscribe(listener.callback()));
            let closing = Arc::downgrade(&listener);
            connection.on_close(move || async move {
                if let Some(listener) = closing.upgrade() {
                    listener.close();
                }
            });
        }
        drop(subscription);
        Some(listener)
    }

    fn close(&self) {
        self.closed.cancel();
        let subscription = lock(&self.subscription).take();
        drop(subscription);
    }

    /// Returns the callback for the bus, which holds a weak reference only.
    fn callback(self: &Arc<Self>) -> EventListener {
        let listener = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(listener) = listener.upgrade() {
                listener.offer(event);
            }
        })
    }

    fn offer(self: Arc<Self>, event: &Event) {
        let mut state = lock(&self.state);
        let wanted = match event {
            Event::ToolsChanged => self.advertised.tools,
            Event::PromptsChanged => self.advertised.prompts,
            Event::ResourcesChanged => self.advertised.resources.list,
            Event::ResourceUpdated { uri } => state.uris.contains(uri),
        };
        if !wanted || state.backlog.push(event) != Pushed::Taken || state.delivering {
            return;
        }
        state.delivering = true;
        drop(state);
        let (tasks, runtime) = (self.service.tasks.clone(), self.runtime.clone());
        tasks.spawn_on(self.deliver(), &runtime);
    }

    /// Sends all waiting events. Aborted when the connection or the server closes.
    async fn deliver(self: Arc<Self>) {
        let all = async {
            while let (Some(event), Some(connection)) = (self.next(), self.connection.upgrade()) {
                notify(&connection, &event).await;
            }
        };
        tokio::select! {
            biased;
            () = self.closed.cancelled() => {}
            () = self.service.closing.cancelled() => {}
            () = all => {}
        }
    }

    fn next(&self) -> Option<Event> {
        let mut state = lock(&self.state);
        let event = state.backlog.pop();
        state.delivering = event.is_some();
        event
    }
}

async fn notify(connection: &Connection, event: &Event) {
    match event {
        Event::ToolsChanged => connection.tools_changed(),
        Event::PromptsChanged => connection.prompts_changed(),
        Event::ResourcesChanged => connection.resources_changed(),
        Event::ResourceUpdated { uri } => connection.resource_updated(uri),
    }
    .await;
}
