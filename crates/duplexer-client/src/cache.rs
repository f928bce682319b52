//! Cache of results that carry freshness hints (`ttlMs`, `cacheScope`; envelope era).
//!
//! Only first pages and reads of resources are stored, and only results of requests without input responses. A change
//! notification of the server removes what it concerns. The store knows neither transports nor calls.

mod session;
mod store;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

pub(super) use session::{CacheMode, SessionCache};
use store::Store;

/// Cache of results, for one client or shared by several.
///
/// Each client has a cache of its own, which is used for results that the server declares fresh for some time. Use
/// [`ClientBuilder::cache`](super::ClientBuilder::cache) to share one, to set its limits, or to turn it off.
///
/// Entries of one server are not served as those of another, and `private` entries of one partition never leave it.
/// Unless [`Self::server`] and [`Self::partition`] name them, every session is a server and a partition of its own.
///
/// ```
/// use duplexer_client::{Cache, Client};
///
/// let shared = Cache::new().max_bytes(1 << 20).server("https://mcp.example.com/mcp");
/// let ada = Client::builder("agent", "1").cache(shared.clone().partition("ada"));
/// let bob = Client::builder("agent", "1").cache(shared.partition("bob"));
/// # let _ = (ada, bob);
/// ```
#[derive(Clone)]
pub struct Cache {
    store: Arc<Mutex<Store>>,
    server: Option<Arc<str>>,
    partition: Option<Arc<str>>,
}

impl Cache {
    /// Creates a cache for 256 results and 4 MiB. Clones share it.
    pub fn new() -> Self {
        Self { store: Arc::default(), server: None, partition: None }
    }

    /// Creates a cache that stores nothing.
    pub fn disabled() -> Self {
        Self::new().max_entries(0)
    }

    /// Sets the maximum number of results, for all clients that share the cache.
    #[must_use]
    pub fn max_entries(self, entries: usize) -> Self {
        self.lock().limits.entries = entries;
        self
    }

    /// Sets the maximum size of all results, in bytes, for all clients that share the cache.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        self.lock().limits.bytes = bytes;
        self
    }

    /// Names the server, such as its URL. Clients with the same server and cache share `public` results.
    #[must_use]
    pub fn server(mut self, server: impl Into<Arc<str>>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// Names the authorization of the client, such as the user of its token. Clients with the same partition, server and
    /// cache share `private` results.
    #[must_use]
    pub fn partition(mut self, partition: impl Into<Arc<str>>) -> Self {
        self.partition = Some(partition.into());
        self
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Store> {
        duplexer_core::dispatch::lock(&self.store)
    }
}

impl Default for Cache {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cache").field("entries", &self.lock().len()).finish_non_exhaustive()
    }
}

/// Server or partition of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    /// Only the session with this number.
    Session(u64),
    /// Every session with this name.
    Named(Arc<str>),
}

impl Scope {
    fn of(name: Option<Arc<str>>, session: u64) -> Self {
        name.map_or(Self::Session(session), Self::Named)
    }
}

/// Returns a number that no other session of the process has.
fn next_session() -> u64 {
    static SESSIONS: AtomicU64 = AtomicU64::new(0);
    SESSIONS.fetch_add(1, Ordering::Relaxed)
}
