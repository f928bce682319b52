//! The bus: carries typed events from publishers to listeners.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use duplexer_core::dispatch::catch_unwind;
use duplexer_core::dispatch::{BoxFuture, lock};
use duplexer_core::error::BoxError;

/// A change. Serialisable, for buses that span processes.
///
/// ```
/// use duplexer::server::subscriptions::Event;
///
/// let event = Event::resource_updated("clock://now");
/// let text = serde_json::to_string(&event)?;
/// assert_eq!(serde_json::from_str::<Event>(&text)?, event);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The list of tools has changed.
    ToolsChanged,
    /// The list of prompts has changed.
    PromptsChanged,
    /// The list of resources has changed.
    ResourcesChanged,
    /// One resource has changed.
    ResourceUpdated {
        /// Its URI, exactly as clients know it.
        #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
        uri: Arc<str>,
    },
    /// A task has changed.
    TaskChanged {
        /// Its id.
        #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
        id: Arc<str>,
    },
}

impl Event {
    /// Returns the event for a change of the resource with this URI.
    pub fn resource_updated(uri: impl Into<Arc<str>>) -> Self {
        Self::ResourceUpdated { uri: uri.into() }
    }
}

fn write_text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn read_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

/// Callback for every event. It must not block, because the bus waits for it.
pub type EventListener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Carries events to listeners, in this process or across many.
///
/// A bus that spans processes uses a [`MemoryBus`] for its local listeners: it sends what it publishes to the other
/// processes, and publishes everything it receives, its own events included, on the local bus.
///
/// ```
/// use duplexer::dispatch::BoxFuture;
/// use duplexer::server::subscriptions::{Event, EventListener, MemoryBus, Subscription, SubscriptionBus};
/// use duplexer::{BoxError, Server};
///
/// /// Writes each event to a log before it is delivered.
/// struct Logged(MemoryBus);
///
/// impl SubscriptionBus for Logged {
///     fn publish(&self, event: Event) -> BoxFuture<'_, Result<(), BoxError>> {
///         eprintln!("{event:?}");
///         self.0.publish(event)
///     }
///
///     fn subscribe(&self, listener: EventListener) -> Subscription {
///         self.0.subscribe(listener)
///     }
/// }
///
/// let server = Server::builder("clock", "1.0.0").subscriptions(Logged(MemoryBus::new())).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
pub trait SubscriptionBus: Send + Sync + 'static {
    /// Sends an event to all listeners. Resolves when the event has been handed over.
    ///
    /// # Errors
    ///
    /// Fails if the event is lost.
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<(), BoxError>>;

    /// Calls `listener` for every event that is published from now on, until the returned subscription is dropped.
    fn subscribe(&self, listener: EventListener) -> Subscription;
}

impl<B: SubscriptionBus + ?Sized> SubscriptionBus for Arc<B> {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<(), BoxError>> {
        (**self).publish(event)
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        (**self).subscribe(listener)
    }
}

/// Keeps a listener subscribed until it is dropped.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Subscription {
    /// Creates a subscription. `unsubscribe` runs once, on drop; a panic in it is logged.
    pub fn new(unsubscribe: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(unsubscribe)))
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let unsubscribe = self.0.take();
        if catch_unwind(|| unsubscribe.map(|run| run())).is_err() {
            tracing::error!("a bus panicked in unsubscribe");
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}

/// A bus within this process. Clones share their listeners.
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
#[derive(Clone, Default)]
pub struct MemoryBus(Arc<Mutex<Listeners>>);

#[derive(Default)]
struct Listeners {
    next: u64,
    /// By id, which is the order of subscription. Shared with the publications in flight, so that neither waits for the
    /// other.
    all: Arc<BTreeMap<u64, EventListener>>,
}

impl MemoryBus {
    /// Creates a bus without listeners.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls all listeners in the order of subscription. A listener that panics does not affect the others.
    ///
    /// A listener that unsubscribes meanwhile can be called once more.
    pub fn tell(&self, event: &Event) {
        let all = Arc::clone(&lock(&self.0).all);
        for listener in all.values() {
            if catch_unwind(|| listener(event)).is_err() {
                tracing::error!("a listener panicked");
            }
        }
    }
}

impl SubscriptionBus for MemoryBus {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.tell(&event);
            // A publisher in a loop must leave the listeners time to be served.
            tokio::task::yield_now().await;
            Ok(())
        })
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        let mut listeners = lock(&self.0);
        let id = listeners.next;
        listeners.next += 1;
        Arc::make_mut(&mut listeners.all).insert(id, listener);
        let bus = Arc::downgrade(&self.0);
        Subscription::new(move || unsubscribe(&bus, id))
    }
}

fn unsubscribe(bus: &Weak<Mutex<Listeners>>, id: u64) {
    let Some(bus) = bus.upgrade() else { return };
    let mut listeners = lock(&bus);
    let gone = Arc::make_mut(&mut listeners.all).remove(&id);
    // The listener is dropped without the lock, because it can own another subscription.
    drop(listeners);
    drop(gone);
}

impl fmt::Debug for MemoryBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBus").field("listeners", &lock(&self.0).all.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(seen: &Arc<Mutex<Vec<u8>>>, name: u8) -> EventListener {
        let seen = Arc::clone(seen);
        Arc::new(move |_| lock(&seen).push(name))
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

    /// SUB-08, SUB-09: the end of a subscription may outlive the bus, fail, or happen during a delivery.
    #[test]
    fn the_end_of_a_subscription_harms_no_other() {
        let bus = MemoryBus::new();
        let orphan = bus.subscribe(Arc::new(|_| {}));
        let held = Arc::new(Mutex::new(None));
        let own = Arc::clone(&held);
        *lock(&held) = Some(bus.subscribe(Arc::new(move |_| drop(lock(&own).take()))));
        bus.tell(&Event::ToolsChanged);
        bus.tell(&Event::ToolsChanged);
        assert_eq!(lock(&bus.0).all.len(), 1);
        drop(bus);
        drop(orphan);
        drop(Subscription::new(|| panic!("a bus that fails")));
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
        assert!(lock(&bus.0).all.is_empty());
    }

    #[test]
    fn an_event_survives_a_bus_between_processes() {
        for event in [Event::ToolsChanged, Event::resource_updated("file:///a")] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }
}
