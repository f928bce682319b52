//! All sessions of a service, and the only place that ends one.

mod principal_counts;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::tasks::TaskTracker;
use duplexer_server::Connection;
use tokio::time::{sleep, timeout};

use self::principal_counts::PrincipalCounts;
use super::Session;
use crate::server::config::SessionSettings;
use crate::server::service_state::{ServiceState, shrink};
use crate::session::{PrincipalKey, SessionDigest};
use crate::sync::{Mutex, lock};

/// Sweeps per idle timeout: an abandoned session is removed at most an eighth of the timeout late. A request finds it
/// expired at once.
const SWEEPS_PER_TIMEOUT: u32 = 8;

/// Longest interval at which the stored sessions that are in use are renewed.
const RENEWAL: Duration = Duration::from_secs(20);
/// Number of sessions that one operation renews.
const MAX_RENEWED: usize = 256;
/// Number of cached sessions that are considered when one must be evicted.
const EVICTION_CANDIDATES: usize = 64;

/// Table of all sessions. With shared stores it is a cache of them.
#[derive(Default)]
pub(in crate::server) struct Sessions {
    table: Mutex<Table>,
    sweeper: TaskTracker,
}

/// Sessions by their ids. A fast hash suffices: the ids in the table are random, and no client chooses them.
type OpenSessions = HashMap<Arc<str>, Arc<Session>, foldhash::fast::RandomState>;

#[derive(Default)]
struct Table {
    open: OpenSessions,
    /// Sessions with shared stores, by the digest that other nodes know them by.
    by_digest: HashMap<SessionDigest, Weak<Session>>,
    /// Sessions that were inserted before `notifications/initialized`, oldest first. Some have been confirmed or have
    /// ended since; the sweep removes those.
    half_open: VecDeque<Weak<Session>>,
    /// Number of permits for sessions outside the table: their handshake is running, or they use HTTP+SSE.
    reserved: usize,
    /// Open sessions and permits of each principal.
    by_principal: PrincipalCounts,
    sweeping: Sweeping,
    sweeping_half_open: Sweeping,
}

#[derive(Default, PartialEq, Eq)]
enum Sweeping {
    #[default]
    Off,
    On,
}

/// Reason for the end of a session on this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum Ending {
    /// The session is over. Its stored state is removed.
    Terminated,
    /// The session can continue on another node.
    Transferred,
}

/// Permit of one session outside the table.
pub(in crate::server) struct SessionPermit {
    service: Arc<ServiceState>,
    principal: Option<PrincipalKey>,
}

impl Drop for SessionPermit {
    fn drop(&mut self) {
        let mut table = lock(&self.service.sessions.table);
        table.reserved -= 1;
        table.by_principal.remove(self.principal.as_ref());
    }
}

impl Sessions {
    /// Returns a permit for one more session of a principal, unless a limit is reached. At the limit the oldest session
    /// that is still half-open ends: of the principal if the limit is its own.
    pub(in crate::server) fn reserve(
        service: &Arc<ServiceState>,
        principal: Option<&PrincipalKey>,
    ) -> Option<SessionPermit> {
        let SessionSettings { max, max_per_principal, .. } = service.config.sessions;
        loop {
            let evicted = {
                let mut table = lock(&service.sessions.table);
                if table.by_principal.of(principal) >= max_per_principal {
                    let own = |session: &Session| session.principal.as_ref() == principal;
                    table.pop_half_open_of(principal).or_else(|| table.find_cached(own))?
                } else if table.open.len() + table.reserved >= max {
                    table.pop_half_open().or_else(|| table.find_cached(|_| true))?
                } else {
                    table.reserved += 1;
                    table.by_principal.add(principal);
                    return Some(SessionPermit {
                        service: Arc::clone(service),
                        principal: principal.cloned(),
                    });
                }
            };
            Self::end(service, &evicted, Ending::Terminated);
        }
    }

    /// Returns the number of sessions, also of those outside the table.
    pub(in crate::server) fn len(&self) -> usize {
        let table = lock(&self.table);
        table.open.len() + table.reserved
    }

    /// Adds a session. If one with the same id exists, returns that one.
    pub(super) fn insert(service: &Arc<ServiceState>, session: Arc<Session>) -> Arc<Session> {
        let mut table = lock(&service.sessions.table);
        let session = table.add(session);
        let half_open = service.config.sessions.half_open;
        let interval = sweep_interval(&service.config.sessions);
        if session.is_half_open() {
            table.half_open.push_back(Arc::downgrade(&session));
            if std::mem::replace(&mut table.sweeping_half_open, Sweeping::On) == Sweeping::Off {
                service.sessions.sweeper.spawn(sweep_half_open(Arc::downgrade(service), half_open));
            }
        }
        if let (Some(interval), Sweeping::Off) = (interval, &table.sweeping) {
            table.sweeping = Sweeping::On;
            service.sessions.sweeper.spawn(sweep(Arc::downgrade(service), interval));
        }
        session
    }

    /// Returns the session with this id, unless it has been idle for too long.
    pub(super) fn find(service: &Arc<ServiceState>, id: &str) -> Option<Arc<Session>> {
        let session = lock(&service.sessions.table).open.get(id).cloned()?;
        if session.is_abandoned(&service.config.sessions) {
            Self::end(service, &session, Ending::Terminated);
            return None;
        }
        Some(session)
    }

    /// Returns the session with this digest.
    pub(super) fn find_digest(&self, digest: SessionDigest) -> Option<Arc<Session>> {
        lock(&self.table).by_digest.get(&digest)?.upgrade()
    }

    /// Ends a session: requests in flight are answered, pending calls to the client fail, and its close hooks run.
    pub(in crate::server) fn end(service: &Arc<ServiceState>, session: &Arc<Session>, ending: Ending) {
        if lock(&service.sessions.table).take(session) {
            let connection = session.end();
            service.spawn_tracked(conclude(Arc::clone(service), Arc::clone(session), connection, ending));
        }
    }

    /// Removes a session from the cache. It can continue on another node.
    pub(super) fn evict(service: &Arc<ServiceState>, session: &Arc<Session>) {
        Self::end(service, session, Ending::Transferred);
    }

    /// Ends the streams for messages outside a request, because the shutdown begins.
    pub(in crate::server) fn close_standalone(&self) {
        let all: Vec<_> = lock(&self.table).open.values().cloned().collect();
        for session in all {
            session.close_standalone();
        }
    }

    /// Ends all sessions with the service. They can continue on another node.
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
    /// Adds a session. If one with the same id exists, returns that one.
    fn add(&mut self, session: Arc<Session>) -> Arc<Session> {
        match self.open.entry(Arc::clone(&session.id)) {
            Entry::Occupied(known) => Arc::clone(known.get()),
            Entry::Vacant(entry) => {
                self.by_principal.add(session.principal.as_ref());
                if let Some(shared) = session.shared.get() {
                    self.by_digest.insert(shared.digest, Arc::downgrade(&session));
                }
                Arc::clone(entry.insert(session))
            }
        }
    }

    /// Removes exactly this session. Another one with the same id stays.
    fn take(&mut self, session: &Arc<Session>) -> bool {
        let is_this = self.open.get(&session.id).is_some_and(|known| Arc::ptr_eq(known, session));
        if is_this {
            self.open.remove(&session.id);
            if let Some(shared) = session.shared.get() {
                self.by_digest.remove(&shared.digest);
                shrink(&mut self.by_digest);
            }
            self.by_principal.remove(session.principal.as_ref());
            shrink(&mut self.open);
        }
        is_this
    }

    /// Takes the oldest half-open session that has no exchange in flight.
    fn pop_half_open(&mut self) -> Option<Arc<Session>> {
        for _ in 0..self.half_open.len() {
            let entry = self.half_open.pop_front()?;
            let Some(session) = entry.upgrade().filter(|session| self.has_half_open(session)) else {
                continue;
            };
            if session.is_idle() {
                return Some(session);
            }
            self.half_open.push_back(entry);
        }
        None
    }

    /// Returns an idle session that the stores keep, so that it can be evicted without ending.
    fn find_cached(&self, is_candidate: impl Fn(&Session) -> bool) -> Option<Arc<Session>> {
        let is_evictable = |session: &&Arc<Session>| session.shared.get().is_some() && session.is_idle();
        let candidates = self.open.values().filter(|session| is_candidate(session));
        candidates.take(EVICTION_CANDIDATES).find(is_evictable).cloned()
    }

    /// Takes the oldest half-open session of a principal that has no exchange in flight.
    fn pop_half_open_of(&mut self, principal: Option<&PrincipalKey>) -> Option<Arc<Session>> {
        let is_evictable = |session: &Arc<Session>| {
            session.principal.as_ref() == principal && self.has_half_open(session) && session.is_idle()
        };
        let found = |entry: &Weak<Session>| entry.upgrade().is_some_and(|session| is_evictable(&session));
        let at = self.half_open.iter().position(found)?;
        self.half_open.remove(at)?.upgrade()
    }

    fn has_half_open(&self, session: &Arc<Session>) -> bool {
        session.is_half_open() && self.open.get(&session.id).is_some_and(|known| Arc::ptr_eq(known, session))
    }
}

impl Session {
    /// Returns whether the client has not confirmed the handshake.
    fn is_half_open(&self) -> bool {
        !self.connection.is_initialized()
    }

    /// Returns whether no exchange is in flight.
    fn is_idle(&self) -> bool {
        lock(&self.usage).active == 0
    }

    fn is_abandoned(&self, settings: &SessionSettings) -> bool {
        let idle = if self.is_half_open() {
            Some(settings.idle.map_or(settings.half_open, |idle| idle.min(settings.half_open)))
        } else {
            settings.idle
        };
        let usage = lock(&self.usage);
        idle.is_some_and(|idle| usage.active == 0 && usage.idle_since.elapsed() >= idle)
    }

    /// Ends the requests in flight. The close hooks of the returned connection have not run.
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
    // With shared stores, only a client ends a session, or the stores do.
    if let Some(stores) = service.stores.as_ref().filter(|stores| stores.shared().is_none()) {
        stores.forget(&session.id).await;
    }
}

/// Returns the interval of sweeps. With shared stores, whose timeout is their own, a sweep also renews sessions in use.
fn sweep_interval(settings: &SessionSettings) -> Option<Duration> {
    let ending = settings.idle.map(|idle| idle / SWEEPS_PER_TIMEOUT);
    match settings.shared {
        Some(_) => Some(ending.map_or(RENEWAL, |ending| ending.min(RENEWAL))),
        None => ending,
    }
}

/// Ends abandoned sessions, while there are sessions. The task does not keep the service alive.
async fn sweep(service: Weak<ServiceState>, interval: Duration) {
    loop {
        sleep(interval).await;
        let Some(service) = service.upgrade() else { return };
        let all: Vec<_> = lock(&service.sessions.table).open.values().cloned().collect();
        end_abandoned(&service, &all);
        renew(&service, &all).await;
        drop(all);
        let mut table = lock(&service.sessions.table);
        if table.open.is_empty() {
            table.sweeping = Sweeping::Off;
            return;
        }
    }
}

/// Renews the stored sessions that have an exchange in flight here.
async fn renew(service: &Arc<ServiceState>, sessions: &[Arc<Session>]) {
    let Some((stores, shared)) = service.stores.as_ref().and_then(|stores| Some((stores, stores.shared()?)))
    else {
        return;
    };
    let active = sessions.iter().filter(|session| !session.is_idle());
    let ids: Vec<_> = active.map(|session| Arc::clone(&session.id)).collect();
    for ids in ids.chunks(MAX_RENEWED) {
        let _ = stores.guard().run(|| shared.sessions.touch(ids)).await;
    }
}

/// Ends abandoned half-open sessions, while there are such sessions: their timeout is much shorter.
async fn sweep_half_open(service: Weak<ServiceState>, timeout: Duration) {
    loop {
        sleep(timeout / SWEEPS_PER_TIMEOUT).await;
        let Some(service) = service.upgrade() else { return };
        let all: Vec<_> = lock(&service.sessions.table).half_open.iter().filter_map(Weak::upgrade).collect();
        end_abandoned(&service, &all);
        drop(all);
        let mut table = lock(&service.sessions.table);
        table.half_open.retain(|entry| entry.upgrade().is_some_and(|session| session.is_half_open()));
        if table.half_open.is_empty() {
            table.half_open.shrink_to_fit();
            table.sweeping_half_open = Sweeping::Off;
            return;
        }
    }
}

fn end_abandoned(service: &Arc<ServiceState>, sessions: &[Arc<Session>]) {
    for session in sessions.iter().filter(|session| session.is_abandoned(&service.config.sessions)) {
        Sessions::end(service, session, Ending::Terminated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::MemoryCluster;

    /// With shared stores, a sweep also renews what they would otherwise remove.
    #[test]
    fn sessions_are_swept_eight_times_per_timeout_and_stored_ones_every_twenty_seconds() {
        let cluster = MemoryCluster::new(Duration::from_secs(3600));
        for (idle, own, stored) in [(None, None, 20), (Some(80), Some(10), 10), (Some(800), Some(100), 20)] {
            let idle = idle.map(Duration::from_secs);
            let settings = SessionSettings { idle, ..SessionSettings::default() };
            assert_eq!(sweep_interval(&settings), own.map(Duration::from_secs));
            let settings = SessionSettings { shared: Some(cluster.node()), ..settings };
            assert_eq!(sweep_interval(&settings), Some(Duration::from_secs(stored)));
        }
    }
}
