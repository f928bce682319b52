//! The listeners of one running server. The server subscribes to its bus once; each event goes to the listeners that it
//! concerns: a change of a list to all, a change of a resource, a session or a task to those that are registered for its URI
//! or id.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, Weak};

use super::bus::{BusMessage, Event, EventListener, Subscription, SubscriptionBus};
use duplexer_core::dispatch::{catch_unwind, lock};

/// Receives what concerns one client. It must not block.
pub(super) trait ChangeListener: Send + Sync {
    fn hear(self: Arc<Self>, message: BusMessage<'_>);
}

/// Identifies a registered listener. Ids grow in the order of registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RouteId(u64);

/// Routes events from the bus to listeners.
pub(super) struct Router {
    bus: Arc<dyn SubscriptionBus>,
    routes: Mutex<Routes>,
    link: Mutex<Link>,
}

/// The subscription to the bus.
#[derive(Default)]
enum Link {
    /// There has been no listener yet.
    #[default]
    Unused,
    Subscribed(#[expect(dead_code, reason = "dropping it unsubscribes")] Subscription),
    Closed,
}

#[derive(Default)]
struct Routes {
    next: u64,
    listeners: BTreeMap<RouteId, Weak<dyn ChangeListener>>,
    by_uri: HashMap<Arc<str>, BTreeSet<RouteId>>,
}

impl Router {
    pub(super) fn new(bus: Arc<dyn SubscriptionBus>) -> Arc<Self> {
        Arc::new(Self { bus, routes: Mutex::default(), link: Mutex::default() })
    }

    /// Registers a listener. It hears of lists from now on, and of the resources that are added with [`Self::add_uri`].
    pub(super) fn add<'a>(
        self: &Arc<Self>,
        listener: Weak<dyn ChangeListener>,
        uris: impl Iterator<Item = &'a Arc<str>>,
    ) -> RouteId {
        let id = {
            let mut routes = lock(&self.routes);
            let id = RouteId(routes.next);
            routes.next += 1;
            routes.listeners.insert(id, listener);
            for uri in uris {
                routes.add_uri(id, uri);
            }
            id
        };
        self.link();
        id
    }

    pub(super) fn add_uri(&self, id: RouteId, uri: &Arc<str>) {
        lock(&self.routes).add_uri(id, uri);
    }

    pub(super) fn remove_uri(&self, id: RouteId, uri: &str) {
        lock(&self.routes).remove_uri(id, uri);
    }

    /// Removes a listener that is registered for these URIs.
    pub(super) fn remove<'a>(&self, id: RouteId, uris: impl Iterator<Item = &'a Arc<str>>) {
        let mut routes = lock(&self.routes);
        routes.listeners.remove(&id);
        for uri in uris {
            routes.remove_uri(id, uri);
        }
    }

    /// Unsubscribes from the bus for good.
    pub(super) fn close(&self) {
        let link = std::mem::replace(&mut *lock(&self.link), Link::Closed);
        // The bus is called without the lock.
        drop(link);
    }

    /// Subscribes to the bus, with the first listener. The bus may call the listener meanwhile.
    fn link(self: &Arc<Self>) {
        let mut link = lock(&self.link);
        if matches!(*link, Link::Unused) {
            *link = Link::Subscribed(self.bus.subscribe(self.callback()));
        }
    }

    /// Returns the callback for the bus. It holds a weak reference, so a bus that never drops it keeps nothing alive.
    fn callback(self: &Arc<Self>) -> EventListener {
        let router = Arc::downgrade(self);
        Arc::new(move |message| {
            if let Some(router) = router.upgrade() {
                router.deliver(message);
            }
        })
    }

    fn deliver(&self, message: BusMessage<'_>) {
        let concerned = lock(&self.routes).concerned(message);
        // Listeners are called, and dropped, without the lock.
        for listener in concerned.into_iter().filter_map(|listener| listener.upgrade()) {
            if catch_unwind(|| listener.hear(message)).is_err() {
                tracing::error!("a listener panicked");
            }
        }
    }

    /// Returns the number of listeners, and of URIs that any of them is registered for.
    #[cfg(test)]
    pub(super) fn len(&self) -> (usize, usize) {
        let routes = lock(&self.routes);
        (routes.listeners.len(), routes.by_uri.len())
    }
}

impl Routes {
    fn add_uri(&mut self, id: RouteId, uri: &Arc<str>) {
        match self.by_uri.get_mut(uri) {
            Some(ids) => ids.insert(id),
            None => self.by_uri.insert(Arc::clone(uri), BTreeSet::from([id])).is_none(),
        };
    }

    fn remove_uri(&mut self, id: RouteId, uri: &str) {
        if let Some(ids) = self.by_uri.get_mut(uri) {
            ids.remove(&id);
            if ids.is_empty() {
                self.by_uri.remove(uri);
            }
        }
    }

    fn concerned(&self, message: BusMessage<'_>) -> Vec<Weak<dyn ChangeListener>> {
        match message {
            BusMessage::Event(
                Event::ResourceUpdated { uri: key }
                | Event::SessionChanged { session: key }
                | Event::TaskChanged { id: key },
                _,
            ) => {
                let ids = self.by_uri.get(key).into_iter().flatten();
                ids.filter_map(|id| self.listeners.get(id).cloned()).collect()
            }
            BusMessage::Event(..) | BusMessage::Missed(_) => self.listeners.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::MemoryBus;
    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl ChangeListener for Counted {
        fn hear(self: Arc<Self>, _: BusMessage<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    impl Counted {
        fn route(self: &Arc<Self>) -> Weak<dyn ChangeListener> {
            Arc::downgrade(&(Arc::clone(self) as Arc<dyn ChangeListener>))
        }

        fn count(&self) -> usize {
            self.0.swap(0, Ordering::Relaxed)
        }
    }

    /// SCL-76: a change of a resource is not offered to listeners of other resources.
    #[test]
    fn a_change_of_a_resource_reaches_the_listeners_of_its_uri_only() {
        let bus = MemoryBus::new();
        let router = Router::new(Arc::new(bus.clone()));
        assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
        let uris: Vec<Arc<str>> = (0..1000).map(|index| format!("file:///{index}").into()).collect();
        let all: Vec<(Arc<Counted>, RouteId)> = uris
            .iter()
            .map(|uri| {
                let counted = Arc::new(Counted::default());
                let id = router.add(counted.route(), [uri].into_iter());
                (counted, id)
            })
            .collect();
        assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 1 }");
        bus.tell(&Event::resource_updated("file:///7"));
        bus.tell(&Event::resource_updated("file:///other"));
        let counts: Vec<usize> = all.iter().map(|(counted, _)| counted.count()).collect();
        assert_eq!((counts[7], counts.iter().sum::<usize>()), (1, 1));
        bus.tell(&Event::ToolsChanged);
        assert!(all.iter().all(|(counted, _)| counted.count() == 1));
        router.add_uri(all[8].1, &uris[7]);
        router.remove_uri(all[7].1, &uris[7]);
        bus.tell(&Event::resource_updated("file:///7"));
        assert_eq!((all[7].0.count(), all[8].0.count()), (0, 1));
        for ((_, id), uri) in all.iter().zip(&uris) {
            router.remove(*id, [uri, &uris[7]].into_iter());
        }
        assert_eq!(router.len(), (0, 0));
        router.close();
        assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
    }

    /// SCL-10: what the bus admits to have missed concerns every listener.
    #[test]
    fn a_gap_is_reported_to_every_listener() {
        let router = Router::new(Arc::new(MemoryBus::new()));
        let (one, two) = (Arc::new(Counted::default()), Arc::new(Counted::default()));
        router.add(one.route(), [&Arc::from("file:///a")].into_iter());
        router.add(two.route(), std::iter::empty());
        router.deliver(BusMessage::Missed(super::super::Position(4)));
        assert_eq!((one.count(), two.count()), (1, 1));
    }
}
