//! The part of a cache that one session uses: keys, freshness of results, and invalidation by notifications.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::{JsonObject, find_members};
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion};
use tokio::time::Instant;

use super::store::{Key, Store};
use super::{Cache, Scope, next_session};
use crate::Change;
use crate::params::Params;
use duplexer_core::dispatch::lock;

/// Maximum time for which a result is fresh: a day, whatever the server declares.
const MAX_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// How a call uses the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum CacheMode {
    /// Takes a fresh result from the cache, and stores the result of the server.
    #[default]
    Use,
    /// Only stores the result of the server.
    Refresh,
    /// Does neither.
    Bypass,
}

/// Cache of a session.
pub(crate) struct SessionCache {
    store: Arc<Mutex<Store>>,
    server: Scope,
    partition: Scope,
}

/// The place of one request in the cache.
pub(crate) struct Lookup<'a> {
    cache: &'a SessionCache,
    version: ProtocolVersion,
    method: Method,
    uri: String,
    generation: u64,
}

impl SessionCache {
    pub(crate) fn new(cache: Cache) -> Self {
        let session = next_session();
        let Cache { store, server, partition } = cache;
        Self { store, server: Scope::of(server, session), partition: Scope::of(partition, session) }
    }

    /// Returns the place of a request, if results of its method and params can be cached.
    pub(crate) fn lookup(
        &self,
        method: Method,
        params: &dyn Params,
        version: ProtocolVersion,
    ) -> Option<Lookup<'_>> {
        if !method.is_cacheable() || version.era() != Era::Envelope {
            return None;
        }
        let params = params.encode(version, &JsonObject::new()).ok()?;
        let [uri, cursor, responses, state] =
            find_members(params.as_str(), ["uri", "cursor", "inputResponses", "requestState"]).ok()?;
        if [cursor, responses, state].iter().any(|member| member.one().is_some()) {
            return None;
        }
        let uri = uri.one().map_or(Ok(String::new()), serde_json::from_str).ok()?;
        let generation = lock(&self.store).generation;
        Some(Lookup { cache: self, version, method, uri, generation })
    }

    /// Removes what a change makes stale, for all sessions with the same server.
    pub(crate) fn invalidate(&self, change: &Change) {
        let concerns = |key: &Key| match change {
            Change::Tools => key.method == Method::ToolsList,
            Change::Prompts => key.method == Method::PromptsList,
            // There is no notification of its own for skills.
            Change::Resources => matches!(
                key.method,
                Method::ResourcesList
                    | Method::ResourcesTemplatesList
                    | Method::SkillsList
                    | Method::SkillsGet
            ),
            Change::Resource(uri) => key.method == Method::ResourcesRead && key.uri == *uri,
        };
        lock(&self.store).invalidate(|key| key.server == self.server && concerns(key));
    }

    /// Removes the session's private results, and the public results of its server.
    pub(crate) fn clear(&self) {
        lock(&self.store).invalidate(|key| {
            key.server == self.server
                && key.partition.as_ref().is_none_or(|partition| *partition == self.partition)
        });
    }
}

impl Lookup<'_> {
    fn key(&self, partition: Option<Scope>) -> Key {
        let (server, uri) = (self.cache.server.clone(), self.uri.clone());
        Key { server, partition, version: self.version, method: self.method, uri }
    }

    /// Returns a fresh result: one of this partition, or a public one.
    pub(crate) fn hit(&self) -> Option<ByteString> {
        let mut store = lock(&self.cache.store);
        if store.len() == 0 {
            return None;
        }
        let own = store.get(&self.key(Some(self.cache.partition.clone())));
        own.or_else(|| store.get(&self.key(None)))
    }

    /// Stores a result, if the server declares it fresh and no change was reported since the lookup.
    pub(crate) fn store(&self, text: &str) {
        let Ok([ttl, scope]) = find_members(text, ["ttlMs", "cacheScope"]) else { return };
        let ttl = ttl.one().and_then(|ttl| serde_json::from_str::<f64>(ttl).ok()).unwrap_or(0.0);
        if ttl.is_nan() || ttl < 1.0 {
            return;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
        let ttl = Duration::from_millis(ttl as u64).min(MAX_TTL);
        let partition = match scope.one() {
            Some("\"public\"") => None,
            _ => Some(self.cache.partition.clone()),
        };
        let mut store = lock(&self.cache.store);
        if store.generation == self.generation {
            store.put(self.key(partition), text, Instant::now() + ttl);
        }
    }
}
