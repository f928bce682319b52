//! The bus: carries typed events from publishers to listeners, and keeps a log of them.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::dispatch::catch_unwind;
use duplexer_core::error::StoreError;

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
    /// What a session is subscribed to has changed. The node whose stream the client reads has to know; no client hears of it.
    SessionChanged {
        /// The digest of its id: to know it gives no rights.
        #[serde(serialize_with = "write_text", deserialize_with = "read_text")]
        session: Arc<str>,
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

/// Position of an event in the log of a bus. Positions grow in the order in which events are delivered.
///
/// The text form has 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u128);

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Position {
    type Err = ParseIntError;

    /// Reads hexadecimal digits.
    ///
    /// # Errors
    ///
    /// Fails if the text has other characters, or more digits than 128 bits have.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for Position {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Position {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// What a bus delivers to a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BusMessage<'a> {
    /// An event, with its position.
    Event(&'a Event, Position),
    /// Events up to this position were dropped before they could be delivered: anything can have changed.
    Missed(Position),
}

/// Callback for everything that a bus delivers. It must not block, because the bus waits for it.
pub type EventListener = Arc<dyn Fn(BusMessage<'_>) + Send + Sync>;

/// Outcome of [`SubscriptionBus::since`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Since {
    /// The events after the position, oldest first. Empty if there are none.
    Events(Vec<(Position, Event)>),
    /// The log does not hold all events after the position: anything can have changed. The log continues after the
    /// position in this value.
    Missed(Position),
}

/// Carries events to listeners, in this process or across many.
///
/// A bus has a log. A running server subscribes once and distributes what it receives to its clients. A transport whose
/// clients were disconnected reads the log instead. All operations can be repeated: an event that is published twice is
/// two events, which tell a client the same.
///
/// ```
/// use duplexer::dispatch::BoxFuture;
/// use duplexer::error::StoreError;
/// use duplexer::server::subscriptions::{
///     Event, EventListener, MemoryBus, Position, Since, Subscription, SubscriptionBus,
/// };
/// use duplexer::Server;
///
/// /// Writes each event to a log before it is delivered.
/// struct Logged(MemoryBus);
///
/// impl SubscriptionBus for Logged {
///     fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
///         eprintln!("{event:?}");
///         self.0.publish(event)
///     }
///
///     fn subscribe(&self, listener: EventListener) -> Subscription {
///         self.0.subscribe(listener)
///     }
///
///     fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
///         self.0.since(position, at_most)
///     }
///
///     fn latest(&self) -> Position {
///         self.0.latest()
///     }
/// }
///
/// let server = Server::builder("clock", "1.0.0").subscriptions(Logged(MemoryBus::new())).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
pub trait SubscriptionBus: Send + Sync + 'static {
    /// Appends an event to the log and has it delivered to all listeners. Returns its position when the log has it.
    ///
    /// # Errors
    ///
    /// Fails if the event is lost, or can be.
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>>;

    /// Calls `listener` for every event that is published from now on, in the order of their positions, until the
    /// returned subscription is dropped. The log has an event before a listener hears of it.
    fn subscribe(&self, listener: EventListener) -> Subscription;

    /// Returns the first `at_most` events of the log after a position.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read.
    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>>;

    /// Returns the position of the last event that this process knows of. All later events are delivered to its
    /// listeners. Never waits.
    fn latest(&self) -> Position;
}

impl<B: SubscriptionBus + ?Sized> SubscriptionBus for Arc<B> {
    fn publish(&self, event: Event) -> BoxFuture<'_, Result<Position, StoreError>> {
        (**self).publish(event)
    }

    fn subscribe(&self, listener: EventListener) -> Subscription {
        (**self).subscribe(listener)
    }

    fn since(&self, position: Position, at_most: usize) -> BoxFuture<'_, Result<Since, StoreError>> {
        (**self).since(position, at_most)
    }

    fn latest(&self) -> Position {
        (**self).latest()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_survives_a_bus_between_processes() {
        for event in [Event::ToolsChanged, Event::resource_updated("file:///a")] {
            let text = serde_json::to_string(&event).unwrap();
            assert_eq!(serde_json::from_str::<Event>(&text).unwrap(), event, "{text}");
        }
    }

    #[test]
    fn a_position_survives_a_store_as_text() {
        let position = Position(1 << 100 | 7);
        let text = serde_json::to_string(&position).unwrap();
        assert_eq!(text, format!("\"{position}\""));
        assert_eq!(serde_json::from_str::<Position>(&text).unwrap(), position);
        assert!("x".parse::<Position>().is_err());
        assert!(Position(9) < Position(10));
    }

    /// SUB-09: a bus that panics when a subscription ends does no harm.
    #[test]
    fn the_end_of_a_subscription_can_fail() {
        drop(Subscription::new(|| panic!("a bus that fails")));
    }
}
