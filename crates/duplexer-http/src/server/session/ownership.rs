//! Sessions that several nodes may serve, one after the other: what is to be known of them is written down, and whoever
//! is asked about one claims it.

use std::sync::Arc;

use duplexer_core::server::{Principal, Remembered, Running};

use super::store::{StoreFailed, with_timeout};
use super::{Ending, Session, Sessions, caller};
use crate::server::service_state::{ServiceState, lock};
use crate::session::{PrincipalKey, SaveOutcome, SessionRecord};

/// Writes a new session down, where that is done.
pub(super) async fn persist_new(
    service: &Arc<ServiceState>,
    session: &Arc<Session>,
) -> Result<(), StoreFailed> {
    let Some(shared) = &service.config.sessions.shared else { return Ok(()) };
    let Some(connection) = Remembered::of(&session.connection) else { return Ok(()) };
    let record = SessionRecord::new(connection, session.principal.clone(), shared.node.clone(), 1);
    with_timeout(|| shared.store.save(&session.id, record.clone())).await?;
    lock(&session.usage).record = Some(record);
    Ok(())
}

/// Writes down what a message has changed, where that is done. A session that was taken over ends here.
pub(super) async fn persist(service: &Arc<ServiceState>, session: &Arc<Session>) {
    let Some(shared) = &service.config.sessions.shared else { return };
    let Some(connection) = Remembered::of(&session.connection) else { return };
    let changed = {
        let usage = lock(&session.usage);
        let known = usage.record.as_ref().filter(|record| record.connection != connection);
        known.map(|known| SessionRecord { connection, ..known.clone() })
    };
    let Some(record) = changed else { return };
    match with_timeout(|| shared.store.save(&session.id, record.clone())).await {
        Ok(SaveOutcome::Saved) => lock(&session.usage).record = Some(record),
        Ok(SaveOutcome::StaleEpoch) => Sessions::end(service, session, Ending::Transferred),
        // It is tried again with the next message.
        Err(StoreFailed) => {}
    }
}

/// Why a session cannot be served at the moment, although it may be there.
#[derive(Clone, Copy, Debug)]
pub(in crate::server) enum Unavailable {
    /// The store has failed, and the log says how.
    Store,
    /// It would be one more than may be open here.
    Full,
}

impl From<StoreFailed> for Unavailable {
    fn from(StoreFailed: StoreFailed) -> Self {
        Self::Store
    }
}

/// The session with this id as it stands, whoever served it last. What belongs to somebody else does not exist.
pub(in crate::server) async fn find(
    service: &Arc<ServiceState>,
    running: &Running,
    id: &str,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let local = Sessions::find(service, id);
    let Some(shared) = &service.config.sessions.shared else {
        return Ok(local.filter(|session| session.belongs_to(principal)));
    };
    let claimed = with_timeout(|| shared.store.claim(id, &shared.node)).await?;
    let caller = principal.map(|principal| &**principal);
    match (claimed, local) {
        (Some(record), _) if !PrincipalKey::admits(record.principal.as_ref(), caller) => Ok(None),
        (Some(record), Some(local)) if Some(record.epoch) == local.epoch() => Ok(Some(local)),
        (claimed, local) => {
            // It has ended elsewhere, or another node has served it: what was known here is out of date.
            if let Some(stale) = local {
                Sessions::end(service, &stale, Ending::Transferred);
            }
            claimed.map_or(Ok(None), |record| take_over(service, running, id, record, principal))
        }
    }
}

fn take_over(
    service: &Arc<ServiceState>,
    running: &Running,
    id: &str,
    record: SessionRecord,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let _permit = Sessions::reserve(service).ok_or(Unavailable::Full)?;
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
