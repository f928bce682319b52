//! Changes of tasks: wakes what waits for a task in this process, and publishes on the buses of the servers that share it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use duplexer_core::dispatch::lock;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::engine::Engine;
use super::record::TaskId;
use super::time::UnixMillis;
use crate::features::subscriptions::{Event, SubscriptionBus};

/// Longest time that a change waits for a bus. Who misses it reads the record later.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Hub {
    watched: Mutex<HashMap<TaskId, Weak<Notify>>>,
    buses: Mutex<Vec<Weak<dyn SubscriptionBus>>>,
    engines: Mutex<Vec<Weak<Engine>>>,
}

impl Hub {
    /// Publishes changes on this bus too, as long as it is used elsewhere.
    pub(crate) fn attach(&self, bus: &Arc<dyn SubscriptionBus>) {
        let mut buses = lock(&self.buses);
        buses.retain(|known| known.strong_count() > 0);
        if !buses.iter().any(|known| known.ptr_eq(&Arc::downgrade(bus))) {
            buses.push(Arc::downgrade(bus));
        }
    }

    /// Adds an engine that takes tasks of the others over.
    pub(crate) fn join(&self, engine: &Arc<Engine>) {
        let mut engines = lock(&self.engines);
        engines.retain(|known| known.strong_count() > 0);
        engines.push(Arc::downgrade(engine));
    }

    /// Has every engine look after leases at this time, if it would do so later.
    pub(crate) fn upkeep_at(&self, time: UnixMillis) {
        let engines: Vec<_> = lock(&self.engines).iter().filter_map(Weak::upgrade).collect();
        for engine in engines {
            engine.upkeep_at(time);
        }
    }

    /// Returns what is notified of every change of a task.
    pub(crate) fn watch(&self, id: &TaskId) -> Arc<Notify> {
        let mut watched = lock(&self.watched);
        if let Some(known) = watched.get(id).and_then(Weak::upgrade) {
            return known;
        }
        let notify = Arc::new(Notify::new());
        watched.insert(id.clone(), Arc::downgrade(&notify));
        notify
    }

    /// Wakes what waits for the task in this process.
    pub(crate) fn notify(&self, id: &TaskId) {
        let notify = lock(&self.watched).get(id).and_then(Weak::upgrade);
        if let Some(notify) = notify {
            notify.notify_waiters();
        }
    }

    /// Wakes everything that waits for any task, and forgets tasks that nothing waits for.
    pub(crate) fn notify_all(&self) {
        let mut all = Vec::new();
        lock(&self.watched).retain(|_, watched| {
            let alive = watched.upgrade();
            let kept = alive.is_some();
            all.extend(alive);
            kept
        });
        for notify in all {
            notify.notify_waiters();
        }
    }

    /// Forgets tasks that nothing waits for.
    pub(crate) fn tidy(&self) {
        lock(&self.watched).retain(|_, watched| watched.strong_count() > 0);
    }

    /// Returns the number of tasks that something waited for.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> usize {
        lock(&self.watched).len()
    }

    /// Tells everybody that a task has changed.
    pub(crate) async fn announce(&self, id: &TaskId) {
        self.notify(id);
        let buses: Vec<_> = lock(&self.buses).iter().filter_map(Weak::upgrade).collect();
        for bus in buses {
            let event = Event::TaskChanged { id: id.as_str().into() };
            match timeout(PUBLISH_TIMEOUT, bus.publish(event)).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the change of a task could not be published"),
                Err(_) => tracing::warn!("the change of a task could not be published in time"),
            }
        }
    }
}
