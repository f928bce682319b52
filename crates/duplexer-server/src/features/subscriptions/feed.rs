//! The handshake era, where several nodes serve a session: the changes for one connection with their positions. The
//! transport pulls them and stores each with its position, so that a client receives a change once, and hears what
//! happened while no node had it connected.

use std::sync::{Arc, Mutex, OnceLock};

use bytestring::ByteString;
use duplexer_types::jsonrpc::{self, Body};
use duplexer_types::version::ProtocolVersion;
use tokio::sync::Notify;

use super::backlog::Backlog;
use super::bus::{BusMessage, Event, Position, Since};
use super::connection_listener::ConnectionListener;
use super::notification::notification;
use super::router::{ChangeListener, RouteId};
use crate::kernel::connection::Connection;
use crate::registry::RunningServer;
use duplexer_core::dispatch::{BoxFuture, lock};
use duplexer_core::error::StoreError;

/// Number of events that are read from the log at once.
const PAGE: usize = 256;
/// Maximum number of notifications in one [`Changes`].
const BATCH: usize = 64;
/// Number of bytes of notifications after which a [`Changes`] takes no further one.
const BATCH_BYTES: usize = 32 * 1024;

/// How changes get to the client of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeDelivery {
    /// The server sends them on the connection.
    #[default]
    Pushed,
    /// The transport reads them from a [`ChangeFeed`] and sends them.
    Pulled,
}

/// Notifications of changes, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changes {
    /// Complete messages, at least one and at most 64.
    pub notifications: Vec<ByteString>,
    /// The position up to which the client has heard of everything with these notifications. `None` if further
    /// notifications for the same position follow.
    pub position: Option<Position>,
}

/// Reads the changes that one connection is to hear of, from a position on.
///
/// The connection must be created with [`ChangeDelivery::Pulled`], otherwise the server also sends them itself.
#[derive(Debug)]
pub struct ChangeFeed {
    feed: Arc<Feed>,
    route: RouteId,
    version: ProtocolVersion,
    refresh: Option<Refresh>,
}

/// Takes over what the connection was subscribed to at other nodes.
struct Refresh(Box<dyn Fn() -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync>);

impl ChangeFeed {
    /// Opens a feed of the changes after a position, or from now on. `None` if the server has no bus.
    pub fn open(
        running: &RunningServer,
        connection: &Arc<Connection>,
        after: Option<Position>,
    ) -> Option<Self> {
        let listener = ConnectionListener::open(running, connection)?;
        // The log has what is published before the feed is registered.
        let heard = after.unwrap_or_else(|| listener.service().plan.bus.latest());
        let state = FeedState {
            // Only lists and subscribed URIs are queued, which are bounded.
            backlog: Backlog::new(usize::MAX),
            heard,
            catching_up: Some(LogReading::default()),
            stale: None,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        let feed = Arc::new(Feed { listener, session: OnceLock::new(), state, changed });
        let route = feed.listener.add_route(&(Arc::clone(&feed) as Arc<dyn ChangeListener>));
        Some(Self { feed, route, version: connection.version(), refresh: None })
    }

    /// Calls `refresh` when another node has published [`Event::SessionChanged`] for this session, before the changes after
    /// that are compared with what the connection is subscribed to.
    #[must_use]
    pub fn refreshed_by<F>(mut self, session: &str, refresh: F) -> Self
    where
        F: Fn() -> BoxFuture<'static, Result<(), StoreError>> + Send + Sync + 'static,
    {
        let session: &Arc<str> = self.feed.session.get_or_init(|| session.into());
        self.feed.listener.service().router.add_uri(self.route, session);
        self.refresh = Some(Refresh(Box::new(refresh)));
        self
    }

    /// Waits for the next changes. A call that is dropped loses nothing.
    ///
    /// # Errors
    ///
    /// Fails if the log of the bus cannot be read. The call can be repeated.
    pub async fn next(&mut self) -> Result<Changes, StoreError> {
        loop {
            if let Some(changes) = self.feed.take(self.version) {
                return Ok(changes);
            }
            if self.feed.is_stale() {
                if let Some(Refresh(refresh)) = &self.refresh {
                    refresh().await?;
                }
                self.feed.refreshed();
                continue;
            }
            match self.feed.log_position() {
                Some(position) => {
                    let bus = &self.feed.listener.service().plan.bus;
                    self.feed.apply(bus.since(position, PAGE).await?);
                }
                // `Notify` stores one permit for the single waiter, so no event is missed in between.
                None => self.feed.changed.notified().await,
            }
        }
    }
}

impl Drop for ChangeFeed {
    fn drop(&mut self) {
        if let Some(session) = self.feed.session.get() {
            self.feed.listener.service().router.remove_uri(self.route, session);
        }
        self.feed.listener.remove_route(self.route);
    }
}

impl std::fmt::Debug for Refresh {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Refresh")
    }
}

/// The state that the server's listeners and the reader of the feed share.
struct Feed {
    listener: Arc<ConnectionListener>,
    /// The session whose subscriptions other nodes can change.
    session: OnceLock<Arc<str>>,
    state: Mutex<FeedState>,
    changed: Notify,
}

struct FeedState {
    backlog: Backlog,
    /// Position of the last event that was compared with the subscriptions.
    heard: Position,
    /// Set while the feed reads the log, which has everything that the bus delivers meanwhile.
    catching_up: Option<LogReading>,
    /// Set while the subscriptions are those from before a change at another node.
    stale: Option<Stale>,
}

impl FeedState {
    /// Has everything reported that the client is subscribed to. Whether that has changed may be part of what was missed.
    fn miss(&mut self, position: Position) {
        // A log that has lost its end continues at an earlier position.
        self.heard = position;
        self.stale = Some(Stale::Expand(position));
    }
}

/// What is to be done once the subscriptions are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stale {
    /// Nothing but to go on.
    Compare,
    /// Changes up to this position were missed: all of them are reported.
    Expand(Position),
}

/// What happens while a page of the log is read.
#[derive(Clone, Copy, Debug, Default)]
struct LogReading {
    /// Whether the bus has delivered something since the last page was requested.
    interrupted: bool,
}

impl Feed {
    /// Returns the position after which the log is to be read.
    fn log_position(&self) -> Option<Position> {
        let mut state = lock(&self.state);
        let heard = state.heard;
        state.catching_up.as_mut().map(|reading| {
            reading.interrupted = false;
            heard
        })
    }

    /// Takes over a page of the log.
    fn apply(&self, page: Since) {
        let mut state = lock(&self.state);
        match page {
            Since::Events(events) => {
                if events.is_empty() && !state.catching_up.is_some_and(|reading| reading.interrupted) {
                    state.catching_up = None;
                }
                for (position, event) in events {
                    self.compare(&mut state, &event, position);
                    // The events behind this one are read again, once the subscriptions are known.
                    if state.stale.is_some() {
                        break;
                    }
                }
            }
            Since::Missed(position) => state.miss(position),
        }
    }

    fn compare(&self, state: &mut FeedState, event: &Event, position: Position) {
        state.heard = state.heard.max(position);
        if self.is_own(event) {
            state.stale.get_or_insert(Stale::Compare);
            state.catching_up.get_or_insert_default();
        } else if self.listener.includes(event) {
            state.backlog.push(event, position);
        }
    }

    /// Returns whether the event says that the subscriptions have changed at another node.
    fn is_own(&self, event: &Event) -> bool {
        matches!(event, Event::SessionChanged { session } if self.session.get() == Some(session))
    }

    fn is_stale(&self) -> bool {
        lock(&self.state).stale.is_some()
    }

    /// Goes on with the subscriptions as they are now.
    fn refreshed(&self) {
        let mut state = lock(&self.state);
        if let Some(Stale::Expand(position)) = state.stale.take() {
            state.backlog.replace(self.listener.all_events().into_iter(), position);
        }
    }

    /// Removes a batch of notifications.
    fn take(&self, version: ProtocolVersion) -> Option<Changes> {
        let mut state = lock(&self.state);
        let (mut notifications, mut bytes, mut last) = (Vec::new(), 0, state.heard);
        while notifications.len() < BATCH && bytes < BATCH_BYTES {
            let Some((event, position)) = state.backlog.pop() else { break };
            last = position;
            // The client can have unsubscribed meanwhile.
            if let Some(text) = self.listener.includes(&event).then(|| render(&event, version)).flatten() {
                bytes += text.len();
                notifications.push(text);
            }
        }
        if notifications.is_empty() {
            return None;
        }
        let position = match state.backlog.next_position() {
            None => Some(state.heard),
            Some(next) => (next != last).then_some(last),
        };
        Some(Changes { notifications, position })
    }
}

impl ChangeListener for Feed {
    fn hear(self: Arc<Self>, message: BusMessage<'_>) {
        let mut state = lock(&self.state);
        match (&mut state.catching_up, message) {
            (Some(reading), _) => reading.interrupted = true,
            (None, BusMessage::Event(event, position)) => {
                // The bus delivers late what the log had already.
                if position > state.heard {
                    self.compare(&mut state, event, position);
                }
            }
            (None, BusMessage::Missed(position)) => state.miss(position),
        }
        drop(state);
        self.changed.notify_one();
    }
}

impl std::fmt::Debug for Feed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Feed").field("heard", &lock(&self.state).heard).finish_non_exhaustive()
    }
}

fn render(event: &Event, version: ProtocolVersion) -> Option<ByteString> {
    let mut out = Vec::with_capacity(128);
    let write = |method: &str, params: &dyn Body| jsonrpc::write_notification(&mut out, method, Some(params));
    if let Err(error) = notification(event, version, None, write)? {
        tracing::warn!(%error, "a notification could not be written and is dropped");
        return None;
    }
    ByteString::try_from(out).ok()
}
