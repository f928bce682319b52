//! One session with the server.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_client::Client;
use duplexer_core::dispatch::lock;
use duplexer_types::logging::LoggingLevel;
use tokio::time::Instant;

use crate::bridge::handshake_server::WaitingCall;
use crate::messages::Messages;

/// Time after which a call is dropped whose client does not come back with the answers.
const MAX_WAIT: Duration = Duration::from_secs(10 * 60);
/// Maximum number of calls that wait for answers.
const MAX_WAITING: usize = 256;

/// A session with the server, and what belongs to it.
pub(crate) struct Upstream {
    pub(crate) client: Client,
    pub(crate) messages: Arc<Messages>,
    /// Calls that wait for answers of their client, by the state that the client sends back.
    waiting: Mutex<HashMap<String, (Instant, WaitingCall)>>,
    /// The level of log messages that was last sent to the server (handshake era).
    level: Mutex<Option<LoggingLevel>>,
    listening: AtomicUsize,
}

/// A stream of changes that uses the session.
pub(crate) struct Listening<'a>(&'a AtomicUsize);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Upstream {
    pub(crate) fn new(client: Client, messages: Arc<Messages>) -> Self {
        let (waiting, level) = (Mutex::default(), Mutex::default());
        Self { client, messages, waiting, level, listening: AtomicUsize::new(0) }
    }

    /// Returns whether no request uses the session now.
    pub(crate) fn is_idle(&self) -> bool {
        self.drop_expired();
        lock(&self.waiting).is_empty()
            && self.messages.is_idle()
            && self.listening.load(Ordering::Relaxed) == 0
    }

    /// Marks the session as used by a stream of changes.
    pub(crate) fn listening(&self) -> Listening<'_> {
        self.listening.fetch_add(1, Ordering::Relaxed);
        Listening(&self.listening)
    }

    /// Keeps a call until its client returns. Returns false if there are too many.
    pub(crate) fn keep(&self, state: String, call: WaitingCall) -> bool {
        self.drop_expired();
        let mut waiting = lock(&self.waiting);
        if waiting.len() >= MAX_WAITING {
            return false;
        }
        waiting.insert(state, (Instant::now(), call));
        true
    }

    /// Takes the call that waits under this state.
    pub(crate) fn take(&self, state: &str) -> Option<WaitingCall> {
        lock(&self.waiting).remove(state).map(|(_, call)| call)
    }

    fn drop_expired(&self) {
        let mut waiting = lock(&self.waiting);
        let expired: Vec<String> = waiting
            .iter()
            .filter(|(_, (since, _))| since.elapsed() >= MAX_WAIT)
            .map(|(state, _)| state.clone())
            .collect();
        let dropped: Vec<_> = expired.iter().filter_map(|state| waiting.remove(state)).collect();
        // Dropped outside the lock: they cancel requests.
        drop(waiting);
        drop(dropped);
    }

    /// Returns whether this level of log messages must be sent to the server first.
    pub(crate) fn changes_level(&self, level: LoggingLevel) -> bool {
        lock(&self.level).replace(level) != Some(level)
    }
}
