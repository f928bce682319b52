//! Sessions that several nodes may serve, one after the other: what is to be known of them is written down, and whoever
//! is asked about one claims it.

use std::sync::Arc;

use duplexer_server::{ConnectionSnapshot, Principal, RunningServer};

use super::store::{StoreFailed, patient};
use super::{Ending, Session, Sessions, caller};
use crate::server::hub::{Hub, lock};
use crate::session::{PrincipalKey, Saved, SessionRecord};

/// Writes a new session down, where that is done.
pub(super) async fn register(hub: &Arc<Hub>, session: &Arc<Session>) -> Result<(), StoreFailed> {
    let Some(shared) = &hub.config.sessions.shared else { return Ok(()) };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return Ok(()) };
    let record = SessionRecord::new(connection, session.principal.clone(), shared.node.clone(), 1);
    patient(|| shared.store.save(&session.id, record.clone())).await?;
    lock(&session.standing).record = Some(record);
    Ok(())
}

/// Writes down what a message has changed, where that is done. A session that was taken over ends here.
pub(super) async fn remember(hub: &Arc<Hub>, session: &Arc<Session>) {
    let Some(shared) = &hub.config.sessions.shared else { return };
    let Some(connection) = ConnectionSnapshot::of(&session.connection) else { return };
    let changed = {
        let standing = lock(&session.standing);
        let known = standing.record.as_ref().filter(|record| record.connection != connection);
        known.map(|known| SessionRecord { connection, ..known.clone() })
    };
    let Some(record) = changed else { return };
    match patient(|| shared.store.save(&session.id, record.clone())).await {
        Ok(Saved::Yes) => lock(&session.standing).record = Some(record),
        Ok(Saved::Superseded) => Sessions::end(hub, session, Ending::HandedOver),
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
    hub: &Arc<Hub>,
    running: &RunningServer,
    id: &str,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let local = Sessions::find(hub, id);
    let Some(shared) = &hub.config.sessions.shared else {
        return Ok(local.filter(|session| session.belongs_to(principal)));
    };
    let claimed = patient(|| shared.store.claim(id, &shared.node)).await?;
    let caller = principal.map(|principal| &**principal);
    match (claimed, local) {
        (Some(record), _) if !PrincipalKey::admits(record.principal.as_ref(), caller) => Ok(None),
        (Some(record), Some(local)) if Some(record.epoch) == local.epoch() => Ok(Some(local)),
        (claimed, local) => {
            // It has ended elsewhere, or another node has served it: what was known here is out of date.
            if let Some(stale) = local {
                Sessions::end(hub, &stale, Ending::HandedOver);
            }
            claimed.map_or(Ok(None), |record| take_over(hub, running, id, record, principal))
        }
    }
}

fn take_over(
    hub: &Arc<Hub>,
    running: &RunningServer,
    id: &str,
    record: SessionRecord,
    principal: Option<&Arc<Principal>>,
) -> Result<Option<Arc<Session>>, Unavailable> {
    let _place = Sessions::reserve(hub).ok_or(Unavailable::Full)?;
    let id: Arc<str> = id.into();
    let who = caller(&id, principal.cloned());
    let session = Session::new(hub, id, record.principal.clone(), |channel| {
        record.connection.restore(running, channel, who)
    });
    Ok(session.map(|session| {
        lock(&session.standing).record = Some(record);
        Sessions::insert(hub, session)
    }))
}

impl Session {
    fn epoch(&self) -> Option<u64> {
        lock(&self.standing).record.as_ref().map(|record| record.epoch)
    }
}
