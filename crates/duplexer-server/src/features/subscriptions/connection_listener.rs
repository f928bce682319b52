//! The handshake era: change notifications on the client's connection, outside a request. An idle connection has no
//! task. The first waiting event starts a delivery, which ends with the last one; meanwhile events are merged, so that
//! a client that does not read blocks neither the bus nor other clients.

use std::sync::{Arc, Mutex, Once, Weak};

use duplexer_types::error::ErrorCode;
use duplexer_types::jsonrpc::Body;
use duplexer_types::resource::{SubscribeParams, UnsubscribeParams};
use tokio::runtime::Handle;

use super::backlog::{Backlog, Pushed};
use super::bus::{BusMessage, Event};
use super::feed::ChangeDelivery;
use super::filter::{AdvertisedEvents, TooMany, Uris};
use super::notification::notification;
use super::router::{ChangeListener, RouteId};
use super::{SubscriptionLimits, Subscriptions};
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
        listener
            .add_uri(&params.uri)
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
    for uri in uris {
        listener.remove_uri(uri);
    }
}

/// Returns the URIs that a connection is subscribed to, sorted.
pub(super) fn uris(connection: &Connection) -> Vec<String> {
    let listener = connection.state::<ConnectionListener>();
    listener.map_or_else(Vec::new, |listener| lock(&listener.state).uris.sorted())
}

/// Adds subscriptions to a connection.
pub(super) fn restore(running: &RunningServer, connection: &Arc<Connection>, uris: &[String]) {
    let Some(listener) = ConnectionListener::open(running, connection) else { return };
    if uris.iter().any(|uri| listener.add_uri(uri).is_err()) {
        tracing::warn!("a connection was subscribed to more elsewhere than is allowed here");
    }
}

/// The subscriptions of one connection. Owned by the connection.
pub(super) struct ConnectionListener {
    connection: Weak<Connection>,
    service: Arc<Subscriptions>,
    runtime: Handle,
    advertised: AdvertisedEvents,
    state: Mutex<ListenerState>,
    registration: Once,
    closed: Cancellation,
}

/// Only lists and subscribed URIs are queued, so the backlog always has capacity.
struct ListenerState {
    uris: Uris,
    /// The routes that the URIs are registered under: of the listener itself, or of the feeds that are open.
    routes: Vec<RouteId>,
    backlog: Backlog,
    delivering: bool,
}

impl ConnectionListener {
    /// Returns the listener of a connection, created and registered if necessary; `None` if the connection cannot be
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
                routes: Vec::new(),
                backlog: Backlog::new(service.limits().uris.saturating_add(LISTS)),
                delivering: false,
            }),
            registration: Once::new(),
            closed: Cancellation::new(),
        });
        if connection.change_delivery() == ChangeDelivery::Pushed {
            listener.registration.call_once(|| listener.register(connection));
        }
        Some(listener)
    }

    fn register(self: &Arc<Self>, connection: &Connection) {
        let own = Arc::clone(self) as Arc<dyn ChangeListener>;
        self.add_route(&own);
        let closing = Arc::downgrade(self);
        connection.on_close(move || async move {
            if let Some(listener) = closing.upgrade() {
                listener.close();
            }
        });
    }

    /// Registers a listener for the lists and for the URIs of this connection, present and future.
    pub(super) fn add_route(&self, listener: &Arc<dyn ChangeListener>) -> RouteId {
        // The bus may call the listener at once, which locks the state.
        let route = self.service.router.add(Arc::downgrade(listener), std::iter::empty());
        let mut state = lock(&self.state);
        state.routes.push(route);
        for uri in state.uris.iter() {
            self.service.router.add_uri(route, uri);
        }
        drop(state);
        if self.closed.is_cancelled() {
            self.remove_route(route);
        }
        route
    }

    pub(super) fn remove_route(&self, route: RouteId) {
        let mut state = lock(&self.state);
        state.routes.retain(|own| *own != route);
        self.service.router.remove(route, state.uris.iter());
    }

    fn add_uri(&self, uri: &str) -> Result<(), TooMany> {
        let mut state = lock(&self.state);
        if let Some(added) = state.uris.add(uri, self.limits())? {
            for route in &state.routes {
                self.service.router.add_uri(*route, &added);
            }
        }
        Ok(())
    }

    fn remove_uri(&self, uri: &str) {
        let mut state = lock(&self.state);
        state.uris.remove(uri);
        state.backlog.remove(&Event::resource_updated(uri));
        for route in &state.routes {
            self.service.router.remove_uri(*route, uri);
        }
    }

    fn limits(&self) -> &SubscriptionLimits {
        self.service.limits()
    }

    pub(super) fn service(&self) -> &Arc<Subscriptions> {
        &self.service
    }

    /// Returns whether the client is to hear of an event.
    pub(super) fn includes(&self, event: &Event) -> bool {
        lock(&self.state).includes(event, self.advertised)
    }

    /// Returns everything that the client is to hear of.
    pub(super) fn all_events(&self) -> Vec<Event> {
        self.advertised.list_events().chain(lock(&self.state).uris.events()).collect()
    }

    fn close(&self) {
        self.closed.cancel();
        let mut state = lock(&self.state);
        for route in std::mem::take(&mut state.routes) {
            self.service.router.remove(route, state.uris.iter());
        }
    }

    /// Starts a delivery, unless one runs.
    fn start(self: Arc<Self>) {
        if std::mem::replace(&mut lock(&self.state).delivering, true) {
            return;
        }
        let (tasks, runtime) = (self.service.tasks.clone(), self.runtime.clone());
        tasks.spawn_on(self.deliver(), &runtime);
    }

    /// Sends all waiting events. Aborted when the connection or the server closes.
    async fn deliver(self: Arc<Self>) {
        let all = async {
            while let (Some(event), Some(connection)) = (self.next(), self.connection.upgrade()) {
                let send =
                    |method: &str, params: &dyn Body| connection.outbound().notify(method, Some(params));
                if let Some(sent) = notification(&event, connection.version(), None, send) {
                    sent.await;
                }
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
        let event = state.backlog.pop().map(|(event, _)| event);
        state.delivering = event.is_some();
        event
    }
}

impl ListenerState {
    fn includes(&self, event: &Event, advertised: AdvertisedEvents) -> bool {
        match event {
            Event::ToolsChanged => advertised.tools,
            Event::PromptsChanged => advertised.prompts,
            Event::ResourcesChanged => advertised.resources.list,
            Event::ResourceUpdated { uri } => self.uris.contains(uri),
            // Clients of 2025-11-25 poll their tasks; the notification is optional there.
            Event::SessionChanged { .. } | Event::TaskChanged { .. } => false,
        }
    }
}

impl ChangeListener for ConnectionListener {
    fn hear(self: Arc<Self>, message: BusMessage<'_>) {
        match message {
            BusMessage::Event(event, position) => {
                let mut state = lock(&self.state);
                if !state.includes(event, self.advertised)
                    || state.backlog.push(event, position) != Pushed::Taken
                {
                    return;
                }
            }
            BusMessage::Missed(position) => {
                let everything = self.all_events();
                lock(&self.state).backlog.replace(everything.into_iter(), position);
            }
        }
        self.start();
    }
}

impl Drop for ConnectionListener {
    fn drop(&mut self) {
        self.close();
    }
}
