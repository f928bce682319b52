//! Ownership of sessions that several nodes can serve, one after the other.
//!
//! The state of a session is stored, and the node that receives a request of the session claims it.

use std::sync::Arc;

use duplexer_server::{ConnectionSnapshot, Principal, RunningServer};

use super::store::{StoreFailed, with_timeout};
use super::{Ending, Session, Sessions, caller};
use crate::server::service_state::{ServiceState, lock};
use crate::session::{PrincipalKey, SaveOutcome, SessionRecord};

/// Stores a new session, if there is a session store.
pub(super) async fn persist_new(
    service: &Arc<ServiceState>,
    session: &Arc<Session>,
) -> Result<(), StoreFailed> {
    let Some(shared) = &service.config.sessions.shared else { return Ok(()) };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return Ok(()) };
    let record = SessionRecord::new(connection, session.principal.clone(), shared.node.clone(), 1);
    with_timeout(|| shared.store.save(&session.id, record.clone())).await?;
    lock(&session.usage).record = Some(record);
    Ok(())
}

/// Stores what a message has changed, if there is a session store. Ends a session that another node has claimed.
pub(super) async fn persist(service: &Arc<ServiceState>, session: &Arc<Session>) {
    let Some(shared) = &service.config.sessions.shared else { return };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return };
    let changed = {
        let usage = lock(&session.usage);
        let known = usage.record.as_ref().filter(|record| record.connection != connection);
        known.map(|known| SessionRecord { connection, ..known.clone() })
    };
    let Some(record) = changed else { return };
    match with_timeout(|| shared.store.save(&session.id, record.clone())).await {
        Ok(SaveOutcome::Saved) => lock(&session.usage).record = Some(record),
        Ok(SaveOutcome::StaleEpoch) => Sessions::end(service, session, Ending::Transferred),
        // Tried again with the next message.
        Err(StoreFailed) => {}
    }
}

/// Reason why a session cannot be served now, although it can exist.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum Unavailable {
    /// The store has failed. The cause is in the log.
    Store,
    /// The limit of open sessions is reached.
    Full,
}

impl From<StoreFailed> for Unavailable {
    fn from(StoreFailed: StoreFailed) -> Self {
        Self::Store
    }
}

/// Returns the current session with this id, and claims it from the node that served it last. A session of another
/// principal is not found.
pub(in crate::server) async fn find(
    service: &Arc<ServiceState>,
    running: &RunningServer,
    id: &str,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let local = Sessions::find(service, id);
    let Some(shared) = &service.config.sessions.shared else {
        return Ok(local.filter(|session| session.belongs_to(principal)));
    };
    // The request of another principal must not move the session, so its owner is known before the claim.
    let caller = principal.map(|principal| &**principal);
    let belongs = if let Some(local) = &local {
        local.belongs_to(principal)
    } else {
        let stored = with_timeout(|| shared.store.load(id)).await?;
        stored.is_some_and(|record| PrincipalKey::admits(record.principal.as_ref(), caller))
    };
    if !belongs {
        return Ok(None);
    }
    let claimed = with_timeout(|| shared.store.claim(id, &shared.node)).await?;
    match (claimed, local) {
        (Some(record), _) if !PrincipalKey::admits(record.principal.as_ref(), caller) => Ok(None),
        (Some(record), Some(local)) if Some(record.epoch) == local.epoch() => Ok(Some(local)),
        (claimed, local) => {
            // The session has ended elsewhere or another node has served it, so the local state is stale.
            if let Some(stale) = local {
                Sessions::end(service, &stale, Ending::Transferred);
            }
            claimed.map_or(Ok(None), |record| take_over(service, running, id, record, principal))
        }
    }
}

fn take_over(
    service: &Arc<ServiceState>,
    running: &RunningServer,
    id: &str,
    record: SessionRecord,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let _permit = Sessions::reserve(service, record.principal.as_ref()).ok_or(Unavailable::Full)?;
    let id: Arc<str> = id.into();
    let who = caller(&id, principal.cloned());
    let session = Session::new(service, id, record.principal.clone(), |channel| {
        record.connection.restore(running, channel, who)
    });
    Ok(session.map(|session| {
        lock(&session.usage).record = Some(record);
        Sessions::insert(service, session)
    }))
}

impl Session {
    fn epoch(&self) -> Option<u64> {
        lock(&self.usage).record.as_ref().map(|record| record.epoch)
    }
}
