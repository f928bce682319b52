//! The handshake era: changes are told on the client's connection, beside any request.
//!
//! A connection costs no task while nothing changes. The first event that waits for it starts a delivery, which ends when
//! nothing waits any more; meanwhile events are merged, so that a client that does not read holds up nobody.

use std::sync::{Arc, Mutex, Weak};

use duplexer_types::error::ErrorCode;
use duplexer_types::resource::{SubscribeParams, UnsubscribeParams};
use tokio::runtime::Handle;

use super::Subscriptions;
use super::backlog::{Backlog, Pushed};
use super::bus::{Event, Listener, Subscription};
use super::filter::{Promised, TooMany, Uris};
use crate::kernel::connection::Connection;
use crate::kernel::context::{Context, StateMap};
use crate::kernel::outcome::Outcome;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{Cancellation, lock};
use duplexer_core::error::McpError;

/// Changes of lists: one event each.
const LISTS: usize = 3;

/// `resources/subscribe`.
pub(super) fn subscribe(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let params: SubscribeParams = cx.params()?;
    if let Some(session) = Session::open(cx.server(), cx.connection()) {
        let limits = session.service.limits();
        lock(&session.state)
            .uris
            .add(&params.uri, limits)
            .map_err(|TooMany| McpError::new(ErrorCode::INTERNAL_ERROR, "Subscription limit reached"))?;
    }
    Ok(Outcome::empty())
}

/// `resources/unsubscribe`. What was never subscribed to is fine too.
pub(super) fn unsubscribe(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let params: UnsubscribeParams = cx.params()?;
    if let Some(session) = cx.connection().state::<Session>() {
        let mut state = lock(&session.state);
        state.uris.remove(&params.uri);
        state.backlog.remove(&Event::resource_updated(params.uri));
    }
    Ok(Outcome::empty())
}

/// What a connection is subscribed to, in order.
pub(super) fn uris(connection: &Connection) -> Vec<String> {
    let session = connection.state::<Session>();
    session.map_or_else(Vec::new, |session| lock(&session.state).uris.sorted())
}

/// Subscribes a connection to what it was subscribed to elsewhere.
pub(super) fn restore(running: &RunningServer, connection: &Arc<Connection>, uris: &[String]) {
    let Some(session) = Session::open(running, connection) else { return };
    let mut state = lock(&session.state);
    for uri in uris {
        if state.uris.add(uri, session.service.limits()).is_err() {
            tracing::warn!("a connection was subscribed to more elsewhere than is allowed here");
            break;
        }
    }
}

/// What one connection is to be told. Belongs to it, and ends with it.
pub(super) struct Session {
    connection: Weak<Connection>,
    service: Arc<Subscriptions>,
    runtime: Handle,
    promised: Promised,
    state: Mutex<State>,
    subscription: Mutex<Option<Subscription>>,
    closed: Cancellation,
}

/// What waits is a list or a URI that is subscribed to, so there is always room.
struct State {
    uris: Uris,
    backlog: Backlog,
    delivering: bool,
}

impl Session {
    /// The session of a connection, made and subscribed to the bus if need be; `None` where nothing could be told.
    pub(super) fn open(running: &RunningServer, connection: &Arc<Connection>) -> Option<Arc<Self>> {
        let service = running.subscriptions()?;
        if !connection.outlives_a_request() {
            return None;
        }
        let runtime = Handle::try_current().ok()?;
        let session = connection.state_or(|| Self {
            connection: Arc::downgrade(connection),
            service: Arc::clone(service),
            runtime,
            promised: Promised::by(&running.handshake_capabilities(connection.version())),
            state: Mutex::new(State {
                uris: Uris::default(),
                backlog: Backlog::new(service.limits().uris.saturating_add(LISTS)),
                delivering: false,
            }),
            subscription: Mutex::default(),
            closed: Cancellation::new(),
        });
        let mut subscription = lock(&session.subscription);
        if subscription.is_none() && !session.closed.is_raised() {
            *subscription = Some(service.plan.bus.subscribe(session.listener()));
            let closing = Arc::downgrade(&session);
            connection.on_close(move || async move {
                if let Some(session) = closing.upgrade() {
                    session.close();
                }
            });
        }
        drop(subscription);
        Some(session)
    }

    fn close(&self) {
        self.closed.raise();
        let subscription = lock(&self.subscription).take();
        drop(subscription);
    }

    /// What the bus gets; it keeps nothing alive.
    fn listener(self: &Arc<Self>) -> Listener {
        let session = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(session) = session.upgrade() {
                session.offer(event);
            }
        })
    }

    fn offer(self: Arc<Self>, event: &Event) {
        let mut state = lock(&self.state);
        let wanted = match event {
            Event::ToolsChanged => self.promised.tools,
            Event::PromptsChanged => self.promised.prompts,
            Event::ResourcesChanged => self.promised.resources.list,
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

    /// Tells everything that waits. Cut when the connection ends or the server does.
    async fn deliver(self: Arc<Self>) {
        let all = async {
            while let (Some(event), Some(connection)) = (self.next(), self.connection.upgrade()) {
                tell(&connection, &event).await;
            }
        };
        tokio::select! {
            biased;
            () = self.closed.raised() => {}
            () = self.service.closing.raised() => {}
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

async fn tell(connection: &Connection, event: &Event) {
    match event {
        Event::ToolsChanged => connection.tools_changed(),
        Event::PromptsChanged => connection.prompts_changed(),
        Event::ResourcesChanged => connection.resources_changed(),
        Event::ResourceUpdated { uri } => connection.resource_updated(uri),
    }
    .await;
}
