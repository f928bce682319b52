//! A bus within one process: a bounded log of events, and listeners that are called in the order of the log.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, Weak};

use tokio::sync::Notify;

use super::bus::{BusMessage, Event, EventListener, Position, Since, Subscription, SubscriptionBus};
use duplexer_core::dispatch::{BoxFuture, catch_unwind, lock};
use duplexer_core::error::StoreError;

/// Number of events that the log keeps by default.
const LOG_CAPACITY: usize = 1024;
/// Maximum number of bytes of the URIs in the log.
const LOG_BYTES: usize = 1 << 20;

/// A bus within this process. Clones share their log and their listeners, so several nodes of one process can use it.
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::resource::Resource;
/// use duplexer_server::subscriptions::MemoryBus;
///
/// let server = Server::builder("clock", "1.0.0")
///     .subscriptions(MemoryBus::new())
///     .resource(Resource::text("clock://now", "noon").name("now"))
///     .build()?;
/// # Ok::<_, duplexer_server::BuildError>(())
/// ```
#[derive(Clone)]
pub struct MemoryBus(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Notified after each delivery.
    delivered: Notify,
}

struct State {
    log: ChangeLog,
    /// By id, which is the order of subscription. Shared with the delivery in progress, so that neither waits for the
    /// other.
    listeners: Arc<BTreeMap<u64, EventListener>>,
    next_listener: u64,
    /// Number of the last event that listeners were called for.
    delivered: u64,
    /// Whether a publisher calls the listeners. It also delivers what others publish meanwhile, so that listeners see
    /// the order of the log.
    delivering: bool,
}

impl MemoryBus {
    /// Creates a bus without listeners whose log keeps 1024 events.
    pub fn new() -> Self {
        Self::with_log(LOG_CAPACITY)
    }

    /// Creates a bus whose log keeps this number of events, at least one.
    pub fn with_log(capacity: usize) -> Self {
        let state = State {
            log: ChangeLog { events: VecDeque::new(), first: 1, bytes: 0, capacity: capacity.max(1) },
            listeners: Arc::default(),
            next_listener: 0,
            delivered: 0,
            delivering: false,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), delivered: Notify::new() }))
    }

    /// Publishes an event and calls all listeners in the order of subscription, unless another publisher calls them
    /// already and delivers this event too. A listener that panics does not affect the others.
    ///
    /// A listener that unsubscribes meanwhile can be called once more.
    pub fn tell(&self, event: &Event) -> Position {
        let position = {
            let mut state = lock(&self.0.state);
            let position = state.log.append(event.clone());
            if std::mem::replace(&mut state.delivering, true) {
                return position;
            }
            position
        };
        self.deliver();
        position
    }

    fn deliver(&self) {
        loop {
            let due = lock(&self.0.state).next_delivery();
            let Some((due, listeners)) = due else { return };
            let message = match &due {
                Due::Event(event, position) => BusMessage::Event(event, *position),
                Due::Missed(position) => BusMessage::Missed(*position),
            };
            for listener in listeners.values() {
                if catch_unwind(|| listener(message)).is_err() {
                    tracing::error!("a listener panicked");
                }
            }
            self.0.delivered.notify_waiters();
        }
    }

    /// Waits until the listeners were called for the event at this position. A publisher is not faster than they are.
    async fn until_delivered(&self, position: Position) {
        loop {
            let mut delivered = pin!(self.0.delivered.notified());
            delivered.as_mut().enable();
            if u128::from(lock(&self.0.state).delivered) >= position.0 {
                return;
            }
            delivered.await;
        }
    }
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self::new()
    }
}

impl SubscriptionBus for MemoryBus {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
        Box::pin(async move {
            let position = self.tell(&event);
            self.until_delivered(position).await;
            // A publisher in a loop must leave the listeners time to be served.
            tokio::task::yield_now().await;
            Ok(position)
        })
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        let mut state = lock(&self.0.state);
        let id = state.next_listener;
        state.next_listener += 1;
        Arc::make_mut(&mut state.listeners).insert(id, listener);
        let bus = Arc::downgrade(&self.0);
        Subscription::new(move || unsubscribe(&bus, id))
    }

    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
        let since = lock(&self.0.state).log.since(position, at_most);
        Box::pin(std::future::ready(Ok(since)))
    }

    fn latest(&self) -> Position {
        position(lock(&self.0.state).log.last())
    }
}

fn unsubscribe(bus: &Weak<Shared>, id: u64) {
    let Some(bus) = bus.upgrade() else { return };
    let mut state = lock(&bus.state);
    let gone = Arc::make_mut(&mut state.listeners).remove(&id);
    // The listener is dropped without the lock, because it can own another subscription.
    drop(state);
    drop(gone);
}

impl fmt::Debug for MemoryBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBus").field("listeners", &lock(&self.0.state).listeners.len()).finish()
    }
}

/// What the listeners are called for next.
enum Due {
    Event(Event, Position),
    Missed(Position),
}

type Listeners = Arc<BTreeMap<u64, EventListener>>;

impl State {
    /// Returns what the listeners have not heard of yet, in the order of the log. `None` ends the delivery.
    fn next_delivery(&mut self) -> Option<(Due, Listeners)> {
        let next = self.delivered + 1;
        let due = if next < self.log.first {
            self.delivered = self.log.first - 1;
            Due::Missed(position(self.delivered))
        } else if let Some(event) = self.log.event(next) {
            let due = Due::Event(event.clone(), position(next));
            self.delivered = next;
            due
        } else {
            self.delivering = false;
            return None;
        };
        Some((due, Arc::clone(&self.listeners)))
    }
}

/// The last events, numbered from 1 without a gap.
struct ChangeLog {
    events: VecDeque<Event>,
    /// Number of the oldest event that is kept.
    first: u64,
    /// Bytes of the URIs.
    bytes: usize,
    capacity: usize,
}

impl ChangeLog {
    fn append(&mut self, event: Event) -> Position {
        self.bytes += uri_bytes(&event);
        self.events.push_back(event);
        while self.events.len() > self.capacity || (self.bytes > LOG_BYTES && self.events.len() > 1) {
            let dropped = self.events.pop_front();
            self.bytes -= dropped.as_ref().map_or(0, uri_bytes);
            self.first += 1;
        }
        position(self.last())
    }

    fn last(&self) -> u64 {
        self.first + self.events.len() as u64 - 1
    }

    fn event(&self, number: u64) -> Option<&Event> {
        self.events.get(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    /// A position after the last one is from another log.
    fn since(&self, after: Position, at_most: usize) -> Since {
        let Some(next) = u64::try_from(after.0).ok().and_then(|number| number.checked_add(1)) else {
            return Since::Missed(position(self.last()));
        };
        if next < self.first || next > self.last() + 1 {
            return Since::Missed(position(self.last()));
        }
        let events = (next..=self.last()).take(at_most);
        Since::Events(
            events.filter_map(|number| Some((position(number), self.event(number)?.clone()))).collect(),
        )
    }
}

fn position(number: u64) -> Position {
    Position(number.into())
}

fn uri_bytes(event: &Event) -> usize {
    match event {
        Event::ResourceUpdated { uri: key }
        | Event::SessionChanged { session: key }
        | Event::TaskChanged { id: key } => key.len(),
        Event::ToolsChanged | Event::PromptsChanged | Event::ResourcesChanged => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(seen: &Arc<Mutex<Vec<u8>>>, name: u8) -> EventListener {
        let seen = Arc::clone(seen);
        Arc::new(move |_| lock(&seen).push(name))
    }

    /// Records the positions that a listener hears, and 0 for what it missed.
    fn positions(seen: &Arc<Mutex<Vec<u128>>>) -> EventListener {
        let seen = Arc::clone(seen);
        Arc::new(move |message| {
            lock(&seen).push(match message {
                BusMessage::Event(_, position) => position.0,
                BusMessage::Missed(_) => 0,
            });
        })
    }

    fn numbers(since: Since) -> Result<Vec<u128>, u128> {
        match since {
            Since::Events(events) => Ok(events.into_iter().map(|(position, _)| position.0).collect()),
            Since::Missed(position) => Err(position.0),
        }
    }

    /// SUB-08: in the order of subscription, the same listener twice if subscribed twice, past one that panics.
    #[tokio::test]
    async fn an_event_reaches_every_listener_in_the_order_of_subscription() {
        let (bus, seen) = (MemoryBus::new(), Arc::new(Mutex::new(Vec::new())));
        let same = recorder(&seen, 1);
        let _first = bus.subscribe(Arc::clone(&same));
        let _panics = bus.subscribe(Arc::new(|_| panic!("a listener that fails")));
        let second = bus.subscribe(recorder(&seen, 2));
        let _third = bus.subscribe(same);
        bus.publish(Event::ToolsChanged).await.unwrap();
        assert_eq!(*lock(&seen), [1, 2, 1]);
        drop(second);
        bus.publish(Event::ToolsChanged).await.unwrap();
        assert_eq!(*lock(&seen), [1, 2, 1, 1, 1]);
    }

    /// SUB-08: publishing yields, so that a loop of publications does not starve the listeners.
    #[tokio::test]
    async fn publishing_yields() {
        let bus = MemoryBus::new();
        let mut publishing = bus.publish(Event::ToolsChanged);
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(publishing.as_mut().poll(cx))).await;
        assert!(polled.is_pending());
        publishing.await.unwrap();
    }

    /// SUB-08, SUB-09: the end of a subscription may outlive the bus, or happen during a delivery.
    #[test]
    fn the_end_of_a_subscription_harms_no_other() {
        let bus = MemoryBus::new();
        let orphan = bus.subscribe(Arc::new(|_| {}));
        let held = Arc::new(Mutex::new(None));
        let own = Arc::clone(&held);
        *lock(&held) = Some(bus.subscribe(Arc::new(move |_| drop(lock(&own).take()))));
        bus.tell(&Event::ToolsChanged);
        bus.tell(&Event::ToolsChanged);
        assert_eq!(lock(&bus.0.state).listeners.len(), 1);
        drop(bus);
        drop(orphan);
    }

    /// The end of a subscription costs the same among many others as among few.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test measures the time of the machine")]
    fn many_subscriptions_end_quickly() {
        let bus = MemoryBus::new();
        let listener: EventListener = Arc::new(|_| {});
        let all: Vec<_> = (0..200_000).map(|_| bus.subscribe(Arc::clone(&listener))).collect();
        let start = std::time::Instant::now();
        drop(all);
        assert!(start.elapsed() < std::time::Duration::from_secs(10));
        assert!(lock(&bus.0.state).listeners.is_empty());
    }

    /// SCL-10: a listener hears the order of the log, also where one publishes while another one's event is delivered.
    #[test]
    fn an_event_of_a_listener_is_delivered_after_the_event_that_caused_it() {
        let (bus, seen) = (MemoryBus::new(), Arc::new(Mutex::new(Vec::new())));
        let again = bus.clone();
        let _publishes = bus.subscribe(Arc::new(move |message| {
            if matches!(message, BusMessage::Event(Event::ToolsChanged, _)) {
                again.tell(&Event::PromptsChanged);
            }
        }));
        let _records = bus.subscribe(positions(&seen));
        bus.tell(&Event::ToolsChanged);
        assert_eq!(*lock(&seen), [1, 2]);
    }

    /// SCL-10: events that leave the log before their delivery are missed, and the listeners hear so.
    #[test]
    fn a_delivery_that_the_log_overtakes_is_missed() {
        let (bus, seen) = (MemoryBus::with_log(2), Arc::new(Mutex::new(Vec::new())));
        let again = bus.clone();
        let _publishes = bus.subscribe(Arc::new(move |message| {
            if matches!(message, BusMessage::Event(Event::ToolsChanged, _)) {
                for _ in 0..4 {
                    again.tell(&Event::PromptsChanged);
                }
            }
        }));
        let _records = bus.subscribe(positions(&seen));
        bus.tell(&Event::ToolsChanged);
        assert_eq!(*lock(&seen), [1, 0, 4, 5]);
        assert_eq!(bus.latest(), Position(5));
    }

    /// Publishers on several threads: every listener hears every event once, in the order of positions.
    #[test]
    fn concurrent_publications_are_delivered_in_order() {
        let (bus, seen) = (MemoryBus::new(), Arc::new(Mutex::new(Vec::new())));
        let _records = bus.subscribe(positions(&seen));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                    runtime.block_on(async {
                        for _ in 0..200 {
                            bus.publish(Event::ToolsChanged).await.unwrap();
                        }
                    });
                });
            }
        });
        assert_eq!(*lock(&seen), (1..=800).collect::<Vec<_>>());
    }

    /// SCL-10: the log is bounded in number and in bytes, and admits what it no longer has.
    #[tokio::test]
    async fn the_log_returns_what_it_keeps_and_admits_what_it_does_not() {
        let bus = MemoryBus::with_log(3);
        let since = async |after: u128, at_most| numbers(bus.since(Position(after), at_most).await.unwrap());
        assert_eq!(since(0, 10).await, Ok(vec![]));
        assert_eq!(since(1, 10).await, Err(0), "a position of another log");
        for _ in 0..5 {
            bus.tell(&Event::ToolsChanged);
        }
        assert_eq!(since(5, 10).await, Ok(vec![]));
        assert_eq!(since(2, 10).await, Ok(vec![3, 4, 5]));
        assert_eq!(since(3, 1).await, Ok(vec![4]));
        assert_eq!(since(1, 10).await, Err(5));
        assert_eq!(since(6, 10).await, Err(5));
        assert_eq!(since(u128::MAX, 10).await, Err(5));
        let large = "x".repeat(LOG_BYTES);
        bus.tell(&Event::resource_updated(large.as_str()));
        bus.tell(&Event::resource_updated(large));
        assert_eq!(since(6, 10).await, Ok(vec![7]));
        assert_eq!(since(5, 10).await, Err(7));
        assert_eq!(lock(&bus.0.state).log.bytes, LOG_BYTES);
    }
}
