//! Laws of the bus: its log, its positions and its listeners.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::timeout;

use super::fresh::random;
use super::{NodeStores, Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::server::subscriptions::{BusMessage, Event, EventListener, Position, Since};

/// Changes that no other law publishes: resources below a URI of their own.
struct Own(String);

impl Own {
    fn new() -> Self {
        Self(format!("law://{:016x}/", random()))
    }

    fn event(&self, number: usize) -> Event {
        Event::resource_updated(format!("{}{number}", self.0))
    }

    /// Returns the number of a change, if it is one of these.
    fn number(&self, event: &Event) -> Option<usize> {
        match event {
            Event::ResourceUpdated { uri } => uri.strip_prefix(&self.0)?.parse().ok(),
            _ => None,
        }
    }
}

/// Records what a listener hears of some changes.
struct Heard {
    own: Arc<Own>,
    changes: Mutex<Vec<(usize, Position)>>,
    changed: Notify,
}

impl Heard {
    fn new(own: &Arc<Own>) -> Arc<Self> {
        Arc::new(Self { own: Arc::clone(own), changes: Mutex::default(), changed: Notify::new() })
    }

    fn listener(self: &Arc<Self>) -> EventListener {
        let heard = Arc::clone(self);
        Arc::new(move |message| {
            if let BusMessage::Event(event, position) = message
                && let Some(number) = heard.own.number(event)
            {
                heard.changes.lock().unwrap_or_else(PoisonError::into_inner).push((number, position));
                heard.changed.notify_one();
            }
        })
    }

    fn changes(&self) -> Vec<(usize, Position)> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn until(&self, count: usize) {
        while self.changes().len() < count {
            self.changed.notified().await;
        }
    }
}

/// SCL-10: each change once, with the position that its publisher got.
pub(super) async fn a_change_is_heard_at_every_node_once_and_in_order(
    stores: &dyn StoresUnderTest,
) -> Outcome {
    let (a, b) = (stores.node().await?, stores.node().await?);
    let own = Arc::new(Own::new());
    let (at_a, at_b) = (Heard::new(&own), Heard::new(&own));
    let _subscriptions = (a.bus.subscribe(at_a.listener()), b.bus.subscribe(at_b.listener()));
    let mut published = Vec::new();
    for number in 0..6 {
        let node = if number % 2 == 0 { &a } else { &b };
        published.push((number, node.bus.publish(own.event(number)).await?));
    }
    ensure!(
        published.is_sorted_by(|(_, left), (_, right)| left < right),
        "positions must grow: {published:?}"
    );
    for heard in [&at_a, &at_b] {
        let _ = timeout(stores.limits().delay, heard.until(6)).await;
        ensure_eq!(heard.changes(), published.clone(), "the changes that a listener heard");
    }
    Ok(())
}

/// Reads the numbers of these changes after a position, in pages.
async fn since(node: &NodeStores, own: &Own, mut after: Position, page: usize) -> Result<Vec<usize>, Reason> {
    let mut numbers = Vec::new();
    loop {
        match node.bus.since(after, page).await? {
            Since::Missed(position) => {
                return Err(Reason(format!(
                    "the log says that it dropped changes after {after}, up to {position}"
                )));
            }
            Since::Events(events) => {
                ensure!(events.len() <= page, "a page has more events than requested: {}", events.len());
                let Some((last, _)) = events.last() else { return Ok(numbers) };
                ensure!(*last > after, "a page after {after} ends at {last}");
                after = *last;
                numbers.extend(events.iter().filter_map(|(_, event)| own.number(event)));
            }
        }
    }
}

pub(super) async fn the_log_returns_what_happened_since_a_position(stores: &dyn StoresUnderTest) -> Outcome {
    let (a, b) = (stores.node().await?, stores.node().await?);
    let own = Own::new();
    let start = a.bus.publish(own.event(0)).await?;
    ensure_eq!(since(&b, &own, start, 10).await?, Vec::<usize>::new(), "the changes since the last one");
    for number in 1..=5 {
        a.bus.publish(own.event(number)).await?;
    }
    for page in [1, 2, 10] {
        ensure_eq!(
            since(&b, &own, start, page).await?,
            vec![1, 2, 3, 4, 5],
            "the changes in pages of {page}"
        );
    }
    let latest = b.bus.latest();
    let position = b.bus.publish(own.event(6)).await?;
    ensure!(position > latest, "a later change has a greater position: {position}, {latest}");
    ensure!(since(&a, &own, latest, 10).await?.contains(&6), "a change after `latest` is in the log");
    Ok(())
}

/// SCL-10: beyond the log a reader hears that it missed something, and can go on after the position it gets.
pub(super) async fn the_log_is_bounded_and_admits_what_it_dropped(stores: &dyn StoresUnderTest) -> Outcome {
    let node = stores.node().await?;
    let own = Own::new();
    let start = node.bus.publish(own.event(0)).await?;
    for number in 1..=stores.limits().change_log + 1 {
        node.bus.publish(own.event(number)).await?;
    }
    let Since::Missed(position) = node.bus.since(start, 10).await? else {
        return Err(Reason("a log that has dropped changes must say so".to_owned()));
    };
    ensure!(position > start, "the log goes on at {position}, before {start}");
    ensure_eq!(
        since(&node, &own, position, 10).await?,
        Vec::<usize>::new(),
        "the changes after that position"
    );
    let lost = node.bus.since(Position(u128::MAX), 10).await?;
    ensure!(matches!(lost, Since::Missed(_)), "a position that the log never had must be admitted: {lost:?}");
    Ok(())
}

/// A reader that subscribes first and then reads the log misses nothing.
pub(super) async fn the_log_has_a_change_before_a_listener_hears_of_it(
    stores: &dyn StoresUnderTest,
) -> Outcome {
    let (a, b) = (stores.node().await?, stores.node().await?);
    let own = Arc::new(Own::new());
    let start = a.bus.publish(own.event(0)).await?;
    let heard = Heard::new(&own);
    let _subscription = b.bus.subscribe(heard.listener());
    let publishing = a.bus.publish(own.event(1));
    let reading = async {
        let _ = timeout(stores.limits().delay, heard.until(1)).await;
        since(&b, &own, start, 10).await
    };
    let (published, read) = tokio::join!(publishing, reading);
    published?;
    ensure!(!heard.changes().is_empty(), "a listener did not hear of a change in time");
    ensure_eq!(read?, vec![1], "the log when the listener had heard of the change");
    Ok(())
}

pub(super) async fn a_listener_that_has_unsubscribed_hears_nothing(stores: &dyn StoresUnderTest) -> Outcome {
    let (a, b) = (stores.node().await?, stores.node().await?);
    let own = Arc::new(Own::new());
    let (gone, stays) = (Heard::new(&own), Heard::new(&own));
    let subscription = b.bus.subscribe(gone.listener());
    let _stays = b.bus.subscribe(stays.listener());
    drop(subscription);
    a.bus.publish(own.event(0)).await?;
    let _ = timeout(stores.limits().delay, stays.until(1)).await;
    ensure_eq!((gone.changes().len(), stays.changes().len()), (0, 1), "the changes that each listener heard");
    Ok(())
}
