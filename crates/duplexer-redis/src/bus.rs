//! The bus: changes in one log for all nodes. Each node reads it when it is woken, and at intervals.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer_core::dispatch::{BoxFuture, catch_unwind};
use duplexer_core::error::StoreError;
use duplexer_server::subscriptions::{
    BusMessage, Event, EventListener, Position, Since, Subscription, SubscriptionBus,
};
use redis::streams::StreamRangeReply;
use tokio::time::timeout;

use crate::entry_id::EntryId;
use crate::link::{Link, Node};
use crate::scripts;
use crate::value::{self, millis, unreadable};

const MAX_AGE: Duration = Duration::from_secs(10 * 60);
/// Expiry of the log after the last change.
const EXPIRY: Duration = Duration::from_secs(60 * 60);
/// Changes read at once.
const PAGE: usize = 1000;

/// [`SubscriptionBus`] for all nodes of a server. Returned by [`Shared::bus`](crate::Shared::bus).
#[derive(Clone)]
pub struct RedisBus {
    node: Arc<Node>,
    local: Arc<LocalListeners>,
}

/// The listeners of this node.
pub(crate) struct LocalListeners {
    state: Mutex<State>,
}

struct State {
    listeners: Arc<BTreeMap<u64, EventListener>>,
    next: u64,
    /// The last change that listeners were called for.
    position: EntryId,
}

impl LocalListeners {
    /// Creates the state of a node that hears of the changes after a position.
    pub(crate) fn new(position: EntryId) -> Self {
        Self { state: Mutex::new(State { listeners: Arc::default(), next: 0, position }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deliver(&self, message: BusMessage<'_>, position: EntryId) {
        let listeners = {
            let mut state = self.state();
            state.position = position;
            Arc::clone(&state.listeners)
        };
        for listener in listeners.values() {
            if catch_unwind(|| listener(message)).is_err() {
                tracing::error!("a listener panicked");
            }
        }
    }
}

impl RedisBus {
    pub(crate) fn new(node: Arc<Node>, local: Arc<LocalListeners>) -> Self {
        Self { node, local }
    }
}

impl SubscriptionBus for RedisBus {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move {
            let mut call = scripts::PUBLISH.call([self.node.keys.changes()]);
            call.arg(value::json(&event)?)
                .arg(self.node.settings.change_log)
                .arg(millis(MAX_AGE))
                .arg(millis(EXPIRY));
            call.arg(self.node.keys.changes_channel());
            // A change that is published twice is heard twice, which a listener must expect.
            let id: String = self.node.patiently(|| self.node.connection.run(&call)).await?;
            self.node.counters.changes_published.increment();
            self.node.wakes.changes.notify_one();
            Ok(id.parse::<EntryId>()?.into())
        })
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        let mut state = self.local.state();
        let id = state.next;
        state.next += 1;
        Arc::make_mut(&mut state.listeners).insert(id, listener);
        let (node, local) = (Arc::clone(&self.node), Arc::downgrade(&self.local));
        Subscription::new(move || {
            let removed =
                local.upgrade().and_then(|local| Arc::make_mut(&mut local.state().listeners).remove(&id));
            // A listener can own another subscription, so it is dropped without the lock.
            drop((removed, node));
        })
    }

    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
        Box::pin(since(&self.node, position, at_most))
    }

    fn latest(&self) -> Position {
        self.local.state().position.into()
    }
}

impl fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBus").finish_non_exhaustive()
    }
}

async fn since(link: &Link, position: Position, at_most: usize) -> Result<Since, StoreError> {
    Ok(match look_up(link, position, at_most).await? {
        LookUp::Changes(changes) => Since::Events(changes),
        LookUp::Missed { last, .. } => Since::Missed(last.into()),
    })
}

/// What the log has after a position.
enum LookUp {
    Changes(Vec<(Position, Event)>),
    /// The log does not reach back.
    Missed {
        /// The last change in the log.
        last: EntryId,
        /// Time of the store, since 1970.
        now: Duration,
    },
}

async fn look_up(link: &Link, position: Position, at_most: usize) -> Result<LookUp, StoreError> {
    let mut call = scripts::SINCE.call([link.keys.changes()]);
    call.text(EntryId::from(position)).arg(at_most.min(link.settings.change_log));
    let (outcome, mut rest) = value::outcome(link.connection.run(&call).await?)?;
    if outcome == "missed" {
        let last = value::next::<String>(&mut rest)?.parse()?;
        return Ok(LookUp::Missed { last, now: Duration::from_secs(value::next(&mut rest)?) });
    }
    let changes = read_entries(&value::next(&mut rest)?)?;
    Ok(LookUp::Changes(changes.into_iter().map(|(id, event)| (id.into(), event)).collect()))
}

/// Returns the position of the last change in the log.
pub(crate) async fn last(link: &Link) -> Result<EntryId, StoreError> {
    let mut command = redis::cmd("XREVRANGE");
    command.arg(link.keys.changes()).arg("+").arg("-").arg("COUNT").arg(1);
    let page: StreamRangeReply = link.connection.query(&command).await?;
    page.ids.first().map_or(Ok(EntryId::default()), |entry| entry.id.parse())
}

/// Reads the log, for ever, and calls the listeners of this node.
pub(crate) async fn read(link: Arc<Link>, local: Arc<LocalListeners>) {
    loop {
        let _ = timeout(link.settings.poll, link.wakes.changes.notified()).await;
        loop {
            match read_page(&link, &local).await {
                Ok(count) if count < PAGE => break,
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "the log of changes cannot be read");
                    break;
                }
            }
        }
    }
}

/// Reads a page. It begins with the last change that was read: if the log no longer has that one, it has been shortened
/// beyond it, or the store has lost its data, so other changes may have gone unread.
async fn read_page(link: &Link, local: &LocalListeners) -> Result<usize, StoreError> {
    let position = local.state().position;
    let mut command = redis::cmd("XRANGE");
    command.arg(link.keys.changes()).arg(position.to_string()).arg("+").arg("COUNT").arg(PAGE + 1);
    let changes = read_entries(&link.connection.query(&command).await?)?;
    let unread = match changes.split_first() {
        _ if position == EntryId::default() => &changes[..],
        Some(((first, _), unread)) if *first == position => unread,
        _ => return report_gap(link, local, position).await,
    };
    for (id, event) in unread {
        link.counters.bus_lag.store(id.age(), Ordering::Relaxed);
        local.deliver(BusMessage::Event(event, (*id).into()), *id);
    }
    Ok(unread.len())
}

/// Tells the listeners that the log does not reach back to the last change that was read.
async fn report_gap(link: &Link, local: &LocalListeners, position: EntryId) -> Result<usize, StoreError> {
    let LookUp::Missed { last, now } = look_up(link, position.into(), 1).await? else { return Ok(0) };
    if last == EntryId::default() && now.saturating_sub(position.time()) >= EXPIRY {
        // The log has expired after this change, so there was none after it.
        local.state().position = last;
        return Ok(0);
    }
    link.counters.changes_missed.increment();
    local.deliver(BusMessage::Missed(last.into()), last);
    Ok(0)
}

fn read_entries(page: &StreamRangeReply) -> Result<Vec<(EntryId, Event)>, StoreError> {
    let entry = |entry: &redis::streams::StreamId| {
        let text: String = entry.get("e").ok_or_else(|| unreadable("a change has no text"))?;
        Ok((entry.id.parse()?, serde_json::from_str(&text).map_err(unreadable)?))
    };
    page.ids.iter().map(entry).collect()
}
