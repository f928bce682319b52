//! All sessions of a service, and the one place where a session ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use duplexer_core::server::Connection;
use tokio::time::{sleep, timeout};
use tokio_util::task::TaskTracker;

use super::Session;
use super::store::with_timeout;
use crate::server::service_state::{ServiceState, lock, shrink};

/// Looks per idle time: what is abandoned is gone at most an eighth of the time late. Whoever asks earlier is told so
/// at once.
const SWEEPS_PER_TIMEOUT: u32 = 8;

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
    Terminated,
    /// It may go on elsewhere.
    Transferred,
}

/// A place among the sessions for one that is not in the table.
pub(in crate::server) struct SessionPermit(Arc<ServiceState>);

impl Drop for SessionPermit {
    fn drop(&mut self) {
        lock(&self.0.sessions.table).reserved -= 1;
    }
}

impl Sessions {
    /// A place for one more, if there is one.
    pub(in crate::server) fn reserve(service: &Arc<ServiceState>) -> Option<SessionPermit> {
        let mut table = lock(&service.sessions.table);
        if table.open.len() + table.reserved >= service.config.sessions.max {
            return None;
        }
        table.reserved += 1;
        Some(SessionPermit(Arc::clone(service)))
    }

    /// Opens the session for everybody who knows its id. Whoever comes second with the same one gets the first.
    pub(super) fn insert(service: &Arc<ServiceState>, session: Arc<Session>) -> Arc<Session> {
        let mut table = lock(&service.sessions.table);
        let session = Arc::clone(table.open.entry(Arc::clone(&session.id)).or_insert(session));
        if let (Some(idle), Sweeping::Off) = (service.config.sessions.idle, &table.sweeping) {
            table.sweeping = Sweeping::On;
            service.sessions.sweeper.spawn(sweep(Arc::downgrade(service), idle));
        }
        session
    }

    /// The session with this id, unless it has been idle for too long.
    pub(super) fn find(service: &Arc<ServiceState>, id: &str) -> Option<Arc<Session>> {
        let session = lock(&service.sessions.table).open.get(id).cloned()?;
        if session.is_abandoned(service.config.sessions.idle) {
            Self::end(service, &session, Ending::Terminated);
            return None;
        }
        Some(session)
    }

    /// Ends a session: what is under way is answered, what waits is told, and its hooks run.
    pub(in crate::server) fn end(service: &Arc<ServiceState>, session: &Arc<Session>, ending: Ending) {
        if lock(&service.sessions.table).take(session) {
            let connection = session.end();
            service.spawn_tracked(conclude(Arc::clone(service), Arc::clone(session), connection, ending));
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
    pub(in crate::server) async fn end_all(service: &Arc<ServiceState>, budget: Duration) {
        let all: Vec<_> = lock(&service.sessions.table).open.values().cloned().collect();
        for session in &all {
            Self::end(service, session, Ending::Transferred);
        }
        service.tasks.close();
        if timeout(budget, service.tasks.wait()).await.is_err() {
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
        let usage = lock(&self.usage);
        idle.is_some_and(|idle| usage.active == 0 && usage.idle_since.elapsed() >= idle)
    }

    /// Ends what is under way; the connection's hooks are left to run.
    pub(super) fn end(&self) -> Arc<Connection> {
        self.correlation.close();
        self.close_standalone();
        Arc::clone(&self.connection)
    }
}

async fn conclude(
    service: Arc<ServiceState>,
    session: Arc<Session>,
    connection: Arc<Connection>,
    ending: Ending,
) {
    connection.close().await;
    if ending == Ending::Transferred {
        return;
    }
    // A store that fails here leaves something behind that it forgets in its own time.
    if let Some(store) = &service.config.sessions.events {
        let _ = with_timeout(|| store.forget(&session.id)).await;
    }
    let epoch = lock(&session.usage).record.as_ref().map(|record| record.epoch);
    if let (Some(shared), Some(epoch)) = (&service.config.sessions.shared, epoch) {
        let _ = with_timeout(|| shared.store.remove(&session.id, epoch)).await;
    }
}

/// Ends what is abandoned, as long as there are sessions. It keeps nothing alive.
async fn sweep(service: Weak<ServiceState>, idle: Duration) {
    loop {
        sleep(idle / SWEEPS_PER_TIMEOUT).await;
        let Some(service) = service.upgrade() else { return };
        let all: Vec<_> = lock(&service.sessions.table).open.values().cloned().collect();
        for session in all.iter().filter(|session| session.is_abandoned(Some(idle))) {
            Sessions::end(&service, session, Ending::Terminated);
        }
        let mut table = lock(&service.sessions.table);
        if table.open.is_empty() {
            table.sweeping = Sweeping::Off;
            return;
        }
    }
}
