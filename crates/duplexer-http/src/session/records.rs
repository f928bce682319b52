//! Sessions in memory, for several services of one process.

use std::collections::HashMap;
use std::fmt;
use std::future::ready;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use tokio::time::Instant;

use super::{Saved, SessionRecord, SessionStore};
use crate::server::lock;

/// Keeps sessions in this process, so that one service can take over from another: for tests, and as a pattern for
/// stores that reach further.
pub struct MemorySessions {
    sessions: Mutex<Sessions>,
    idle: Duration,
}

struct Sessions {
    kept: HashMap<String, Kept>,
    /// When those that are over were last looked for.
    swept: Instant,
}

struct Kept {
    record: SessionRecord,
    touched: Instant,
}

impl MemorySessions {
    /// Forgets a session that nobody has claimed or saved for `idle`.
    pub fn new(idle: Duration) -> Self {
        let sessions = Sessions { kept: HashMap::new(), swept: Instant::now() };
        Self { sessions: Mutex::new(sessions), idle }
    }

    /// The sessions, without this one if it is over; the others are looked at now and then.
    fn living(&self, id: &str) -> MutexGuard<'_, Sessions> {
        let mut sessions = lock(&self.sessions);
        let is_over = |kept: &Kept| kept.touched.elapsed() >= self.idle;
        if sessions.swept.elapsed() >= self.idle / 8 {
            sessions.swept = Instant::now();
            sessions.kept.retain(|_, kept| !is_over(kept));
        } else if sessions.kept.get(id).is_some_and(is_over) {
            sessions.kept.remove(id);
        }
        sessions
    }
}

impl fmt::Debug for MemorySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySessions").field("idle", &self.idle).finish_non_exhaustive()
    }
}

impl SessionStore for MemorySessions {
    fn save(&self, id: &str, record: SessionRecord) -> BoxFuture<'_, Result<Saved, BoxError>> {
        let mut sessions = self.living(id);
        let saved = match sessions.kept.get(id) {
            Some(kept) if kept.record.epoch > record.epoch => Saved::Superseded,
            _ => {
                sessions.kept.insert(id.to_owned(), Kept { record, touched: Instant::now() });
                Saved::Yes
            }
        };
        Box::pin(ready(Ok(saved)))
    }

    fn claim(&self, id: &str, node: &str) -> BoxFuture<'_, Result<Option<SessionRecord>, BoxError>> {
        let mut sessions = self.living(id);
        let claimed = sessions.kept.get_mut(id).map(|kept| {
            kept.touched = Instant::now();
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

    /// One owner at a time: what an earlier one still writes is refused.
    #[tokio::test(start_paused = true)]
    async fn a_session_has_one_owner() {
        let store = MemorySessions::new(Duration::from_secs(60));
        assert_eq!(store.save("s", record("a", 1)).await.unwrap(), Saved::Yes);
        assert_eq!(store.claim("s", "a").await.unwrap().unwrap().epoch, 1);
        let claimed = store.claim("s", "b").await.unwrap().unwrap();
        assert_eq!((claimed.owner.as_str(), claimed.epoch), ("b", 2));
        assert_eq!(store.save("s", record("a", 1)).await.unwrap(), Saved::Superseded);
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
        let store = MemorySessions::new(Duration::from_secs(60));
        store.save("s", record("a", 1)).await.unwrap();
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(store.claim("s", "a").await.unwrap().is_some());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(store.claim("s", "a").await.unwrap().is_none());
    }
}
