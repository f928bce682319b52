//! Session store in memory, for several services of one process.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use tokio::time::Instant;

use super::{SaveOutcome, SessionRecord, SessionStore};
use crate::server::lock;

/// Session store in memory, so that one service can claim the sessions of another: for tests, and as a model for
/// distributed stores.
pub struct MemorySessionStore {
    sessions: Mutex<Sessions>,
    idle: Duration,
}

struct Sessions {
    kept: HashMap<String, Kept>,
    /// Time of the last sweep of expired sessions.
    swept: Instant,
}

struct Kept {
    record: SessionRecord,
    last_read: Instant,
}

impl MemorySessionStore {
    /// Creates a store that removes sessions which have not been claimed or saved for `idle`.
    pub fn new(idle: Duration) -> Self {
        let sessions = Sessions { kept: HashMap::new(), swept: Instant::now() };
        Self { sessions: Mutex::new(sessions), idle }
    }

    /// Returns the sessions, without this one if it has expired. The others are swept at intervals.
    fn living(&self, id: &str) -> MutexGuard<'_, Sessions> {
        let mut sessions = lock(&self.sessions);
        let is_over = |kept: &Kept| kept.last_read.elapsed() >= self.idle;
        if sessions.swept.elapsed() >= self.idle / 8 {
            sessions.swept = Instant::now();
            sessions.kept.retain(|_, kept| !is_over(kept));
        } else if sessions.kept.get(id).is_some_and(is_over) {
            sessions.kept.remove(id);
        }
        sessions
    }
}

impl fmt::Debug for MemorySessionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessionStore").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl SessionStore for MemorySessionStore {
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<SaveOutcome, BoxError>> {
        let mut sessions = self.living(id);
        let saved = match sessions.kept.get(id) {
            Some(kept) if kept.record.epoch > record.epoch => SaveOutcome::StaleEpoch,
            _ => {
                sessions.kept.insert(id.to_owned(), Kept { record, last_read: Instant::now() });
                SaveOutcome::Saved
            }
        };
        Box::pin(ready(Ok(saved)))
    }

    fn load(&self, id: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        let record = self.living(id).kept.get(id).map(|kept| kept.record.clone());
        Box::pin(ready(Ok(record)))
    }

    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        let mut sessions = self.living(id);
        let claimed = sessions.kept.get_mut(id).map(|kept| {
            kept.last_read = Instant::now();
            if kept.record.owner != node {
                node.clone_into(&mut kept.record.owner);
                kept.record.epoch += 1;
            }
            kept.record.clone()
        });
        Box::pin(ready(Ok(claimed)))
    }

    fn remove(&self, id: &str, epoch: u64) -> BoxFuture<'_, Result<(), BoxError>> {
        let mut sessions = self.living(id);
        if sessions.kept.get(id).is_some_and(|kept| kept.record.epoch <= epoch) {
            sessions.kept.remove(id);
        }
        Box::pin(ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use duplexer_core::dispatch::NoChannel;
    use duplexer_server::{Caller, ConnectionSnapshot, Server};
    use std::sync::Arc;

    use super::*;

    fn record(owner: &str, epoch: u64) -> SessionRecord {
        let text = r#"{"version":"2025-11-25","initialize":null,"initialized":true,"log_level":"info","subscriptions":[]}"#;
        SessionRecord::new(serde_json::from_str(text).unwrap(), None, owner.into(), epoch)
    }

    /// One owner at a time: writes of an earlier owner are rejected.
    #[tokio::test(start_paused = true)]
    async fn a_session_has_one_owner() {
        let store = MemorySessionStore::new(Duration::from_secs(60));
        assert_eq!(store.save("s", record("a", 1)).await.unwrap(), SaveOutcome::Saved);
        assert_eq!(store.claim("s", "a").await.unwrap().unwrap().epoch, 1);
        assert_eq!(store.load("s").await.unwrap().unwrap().owner, "a");
        let claimed = store.claim("s", "b").await.unwrap().unwrap();
        assert_eq!((claimed.owner.as_str(), claimed.epoch), ("b", 2));
        assert_eq!(store.save("s", record("a", 1)).await.unwrap(), SaveOutcome::StaleEpoch);
        store.remove("s", 1).await.unwrap();
        assert!(store.claim("s", "b").await.unwrap().is_some());
        store.remove("s", 2).await.unwrap();
        assert!(store.claim("s", "b").await.unwrap().is_none());
        let running = Server::builder("x", "0").build().unwrap().start().await.unwrap();
        let remembered: ConnectionSnapshot = claimed.connection;
        assert!(remembered.restore(&running, Arc::new(NoChannel), Caller::default()).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_session_is_forgotten() {
        let store = MemorySessionStore::new(Duration::from_secs(60));
        store.save("s", record("a", 1)).await.unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(store.claim("s", "a").await.unwrap().is_some());
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(store.load("s").await.unwrap().is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(store.claim("s", "a").await.unwrap().is_none());
    }
}
