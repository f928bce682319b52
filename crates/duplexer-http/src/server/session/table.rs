//! All sessions of a service, and the one place where a session ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use duplexer_server::Connection;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::Session;
use super::store::patient;
use crate::server::hub::{Hub, lock, shrink};

/// Looks per idle time: what is abandoned is gone at most an eighth of the time late. Whoever asks earlier is told so at
/// once.
const LOOKS: u32 = 8;

#[derive(Default)]
pub(in crate::server) struct Sessions {
    table: Mutex<Table>,
    sweeper: TaskTracker,
}

#[derive(Default)]
struct Table {
    open: HashMap<Arc<str>, Arc<Session>>,
    /// Places of those that are not in the table: their handshake is under way, or they are no sessions of this kind.
    reserved: usize,
    sweeping: Sweeping,
}

#[derive(Default, PartialEq, Eq)]
enum Sweeping {
    #[default]
    Off,
    On,
}

/// Why a session ends here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Ending {
    /// It is over: nothing of it is kept.
    Over,
    /// It may go on elsewhere.
    HandedOver,
}

/// A place among the sessions for one that is not in the table.
pub(in crate::server) struct Place(Arc<Hub>);

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.0.sessions.table).reserved -= 1;
    }
}

impl Sessions {
    /// A place for one more, if there is one.
    pub(in crate::server) fn reserve(hub: &Arc<Hub>) -> Option<Place> {
        let mut table = lock(&hub.sessions.table);
        if table.open.len() + table.reserved >= hub.config.sessions.max {
            return None;
        }
        table.reserved += 1;
        Some(Place(Arc::clone(hub)))
    }

    /// Opens the session for everybody who knows its id. Whoever comes second with the same one gets the first.
    pub(super) fn insert(hub: &Arc<Hub>, session: Arc<Session>) -> Arc<Session> {
        let mut table = lock(&hub.sessions.table);
        let session = Arc::clone(table.open.entry(Arc::clone(&session.id)).or_insert(session));
        if let (Some(idle), Sweeping::Off) = (hub.config.sessions.idle, &table.sweeping) {
            table.sweeping = Sweeping::On;
            hub.sessions.sweeper.spawn(sweep(Arc::downgrade(hub), idle));
        }
        session
    }

    /// The session with this id, unless it has been idle for too long.
    pub(super) fn find(hub: &Arc<Hub>, id: &str) -> Option<Arc<Session>> {
        let session = lock(&hub.sessions.table).open.get(id).cloned()?;
        if session.is_abandoned(hub.config.sessions.idle) {
            Self::end(hub, &session, Ending::Over);
            return None;
        }
        Some(session)
    }

    /// Ends a session: what is under way is answered, what waits is told, and its hooks run.
    pub(in crate::server) fn end(hub: &Arc<Hub>, session: &Arc<Session>, ending: Ending) {
        if lock(&hub.sessions.table).take(session) {
            let connection = session.end();
            hub.see_to(conclude(Arc::clone(hub), Arc::clone(session), connection, ending));
        }
    }

    /// Ends everything that is told beside requests: the service is about to end.
    pub(in crate::server) fn close_standalone(&self) {
        let all: Vec<_> = lock(&self.table).open.values().cloned().collect();
        for session in all {
            session.close_standalone();
        }
    }

    /// The service ends. Its sessions may go on elsewhere.
    pub(in crate::server) async fn end_all(hub: &Arc<Hub>, budget: Duration) {
        let all: Vec<_> = lock(&hub.sessions.table).open.values().cloned().collect();
        for session in &all {
            Self::end(hub, session, Ending::HandedOver);
        }
        hub.tasks.close();
        if timeout(budget, hub.tasks.wait()).await.is_err() {
            tracing::warn!("what sessions had left to do took too long and was left behind");
        }
    }
}

impl Table {
    /// Takes this very session out; another one of the same id stays.
    fn take(&mut self, session: &Arc<Session>) -> bool {
        let is_this = self.open.get(&session.id).is_some_and(|known| Arc::ptr_eq(known, session));
        if is_this {
            self.open.remove(&session.id);
            shrink(&mut self.open);
        }
        is_this
    }
}

impl Session {
    fn is_abandoned(&self, idle: Option<Duration>) -> bool {
        let standing = lock(&self.standing);
        idle.is_some_and(|idle| standing.busy == 0 && standing.idle_since.elapsed() >= idle)
    }

    /// Ends what is under way; the connection's hooks are left to run.
    pub(super) fn end(&self) -> Arc<Connection> {
        self.correlation.close();
        self.close_standalone();
        Arc::clone(&self.connection)
    }
}

async fn conclude(hub: Arc<Hub>, session: Arc<Session>, connection: Arc<Connection>, ending: Ending) {
    connection.close().await;
    if ending == Ending::HandedOver {
        return;
    }
    // A store that fails here leaves something behind that it forgets in its own time.
    if let Some(store) = &hub.config.sessions.events {
        let _ = patient(|| store.forget(&session.id)).await;
    }
    let epoch = lock(&session.standing).record.as_ref().map(|record| record.epoch);
    if let (Some(shared), Some(epoch)) = (&hub.config.sessions.shared, epoch) {
        let _ = patient(|| shared.store.remove(&session.id, epoch)).await;
    }
}

/// Ends what is abandoned, as long as there are sessions. It keeps nothing alive.
async fn sweep(hub: Weak<Hub>, idle: Duration) {
    loop {
        sleep(idle / LOOKS).await;
        let Some(hub) = hub.upgrade() else { return };
        let all: Vec<_> = lock(&hub.sessions.table).open.values().cloned().collect();
        for session in all.iter().filter(|session| session.is_abandoned(Some(idle))) {
            Sessions::end(&hub, session, Ending::Over);
        }
        let mut table = lock(&hub.sessions.table);
        if table.open.is_empty() {
            table.sweeping = Sweeping::Off;
            return;
        }
    }
}
