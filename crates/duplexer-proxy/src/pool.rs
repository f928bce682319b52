//! The sessions of all clients: one per connection, one per client without a connection, or one for all.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use bytestring::ByteString;
use duplexer_core::dispatch::lock;
use duplexer_core::error::McpError;
use duplexer_server::{ClientProfile, Connection, Context};
use duplexer_types::error::ErrorCode;
use duplexer_types::version::ProtocolVersion;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::link::{Caller, Link};
use crate::remote::{Reach, Sessions};
use crate::tool_headers::ToolHeaders;

/// The sessions with one remote server.
pub(crate) struct Pool {
    reach: Arc<Reach>,
    shared: OnceLock<Arc<Link>>,
    /// Sessions of connections, by the address of the connection.
    attached: Mutex<HashMap<usize, Attached>>,
    links: Mutex<HashMap<ClientKey, Pooled>>,
    /// The session of the last request: most requests have the `_meta` of the one before.
    last: Mutex<Option<Last>>,
    tool_headers: ToolHeaders,
}

/// What tells clients apart that have no connection.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ClientKey {
    principal: Option<(String, Option<String>, Option<String>)>,
    info: String,
    capabilities: String,
}

struct Pooled {
    link: Arc<Link>,
    used: Instant,
}

struct Last {
    meta: ByteString,
    key: ClientKey,
    link: Arc<Link>,
}

/// The session of a connection.
struct Attached {
    connection: Weak<Connection>,
    link: Arc<Link>,
}

impl Pool {
    pub(crate) fn new(reach: Arc<Reach>) -> Self {
        Self {
            reach,
            shared: OnceLock::new(),
            attached: Mutex::default(),
            links: Mutex::default(),
            last: Mutex::default(),
            tool_headers: ToolHeaders::default(),
        }
    }

    pub(crate) fn tool_headers(&self) -> &ToolHeaders {
        &self.tool_headers
    }

    /// Returns the session that all clients share.
    fn shared(&self, version: Option<ProtocolVersion>) -> Arc<Link> {
        let new = || {
            // No client can be asked in the name of the others.
            Arc::new(Link::new(Arc::clone(&self.reach), Caller::anonymous(version)))
        };
        Arc::clone(self.shared.get_or_init(new))
    }

    /// Returns the session for a client that opens a connection. It is attached once it is open.
    pub(crate) fn for_handshake(&self, profile: ClientProfile, version: ProtocolVersion) -> Arc<Link> {
        match self.reach.sessions {
            Sessions::Shared => self.shared(Some(version)),
            Sessions::PerClient => {
                let caller = Caller::of(profile, Some(version));
                Arc::new(Link::new(Arc::clone(&self.reach), caller))
            }
        }
    }

    /// Makes a session the one of a connection, and ends it with the connection.
    pub(crate) fn attach(self: &Arc<Self>, connection: &Arc<Connection>, link: &Arc<Link>) {
        let key = address(connection);
        let attached = Attached { connection: Arc::downgrade(connection), link: Arc::clone(link) };
        lock(&self.attached).insert(key, attached);
        let pool = Arc::downgrade(self);
        connection.on_close(move || async move {
            let Some(pool) = pool.upgrade() else { return };
            let ended = lock(&pool.attached).remove(&key);
            if let Some(ended) = ended
                && pool.reach.sessions == Sessions::PerClient
            {
                ended.link.close().await;
            }
        });
    }

    /// Returns the session of a connection.
    pub(crate) fn attached(&self, cx: &Context) -> Option<Arc<Link>> {
        let attached = lock(&self.attached);
        let found = attached.get(&address(cx.connection()))?;
        // An address can be used again.
        let is_same = found.connection.upgrade().is_some_and(|other| Arc::ptr_eq(&other, cx.connection()));
        is_same.then(|| Arc::clone(&found.link))
    }

    /// Returns the session of a request. On a connection whose handshake is missing there is none.
    pub(crate) fn find(self: &Arc<Self>, cx: &Context) -> Result<Arc<Link>, McpError> {
        let connection = cx.connection();
        if let Some(agreed) = connection.agreed() {
            return Ok(self.attached(cx).unwrap_or_else(|| {
                let link = self.for_handshake(agreed.client.clone(), agreed.version);
                self.attach(connection, &link);
                link
            }));
        }
        if !connection.is_open() || connection.is_initialized() {
            let text = "The session is not open: send `initialize` first";
            return Err(McpError::new(ErrorCode::INVALID_REQUEST, text));
        }
        match self.reach.sessions {
            Sessions::Shared => Ok(self.shared(None)),
            Sessions::PerClient => self.pooled(cx),
        }
    }

    fn pooled(&self, cx: &Context) -> Result<Arc<Link>, McpError> {
        let principal = cx.principal().map(|principal| {
            let (client, issuer, subject) = principal.identity();
            (client.to_owned(), issuer.map(str::to_owned), subject.map(str::to_owned))
        });
        let meta = cx.raw_meta().unwrap_or_default();
        if let Some(last) = &*lock(&self.last)
            && last.meta == meta
            && last.key.principal == principal
        {
            return Ok(Arc::clone(&last.link));
        }
        let read = cx.meta();
        let key = ClientKey {
            principal,
            info: read.client_info.unwrap_or_default().to_owned(),
            capabilities: read.client_capabilities.unwrap_or_default().to_owned(),
        };
        let link = self.link_of(cx, &key)?;
        *lock(&self.last) = Some(Last { meta: meta.into(), key, link: Arc::clone(&link) });
        Ok(link)
    }

    fn link_of(&self, cx: &Context, key: &ClientKey) -> Result<Arc<Link>, McpError> {
        let mut links = lock(&self.links);
        if let Some(pooled) = links.get_mut(key) {
            pooled.used = Instant::now();
            return Ok(Arc::clone(&pooled.link));
        }
        if links.len() >= self.reach.limits.clients {
            evict(&mut links)?;
        }
        let caller = Caller::of(cx.connection().client().clone(), None);
        let link = Arc::new(Link::new(Arc::clone(&self.reach), caller));
        links.insert(key.clone(), Pooled { link: Arc::clone(&link), used: Instant::now() });
        Ok(link)
    }

    /// Closes the sessions of clients that have not used theirs for a while.
    pub(crate) async fn reap(&self) {
        let expired: Vec<Arc<Link>> = {
            let mut links = lock(&self.links);
            if let Some(Last { key, .. }) = lock(&self.last).take()
                && let Some(pooled) = links.get_mut(&key)
            {
                pooled.used = Instant::now();
            }
            let idle = self.reach.limits.idle;
            let expired: Vec<ClientKey> = links
                .iter()
                .filter(|(_, pooled)| pooled.used.elapsed() >= idle && pooled.link.is_idle())
                .map(|(key, _)| key.clone())
                .collect();
            expired.iter().filter_map(|key| links.remove(key)).map(|pooled| pooled.link).collect()
        };
        close_all(expired).await;
    }

    /// Closes all sessions.
    pub(crate) async fn close(&self) {
        lock(&self.last).take();
        let mut links: Vec<_> = lock(&self.links).drain().map(|(_, pooled)| pooled.link).collect();
        links.extend(lock(&self.attached).drain().map(|(_, attached)| attached.link));
        links.extend(self.shared.get().cloned());
        close_all(links).await;
    }

    /// Returns a session that belongs to no client.
    pub(crate) fn own(&self) -> Arc<Link> {
        Arc::new(Link::new(Arc::clone(&self.reach), Caller::anonymous(None)))
    }
}

/// Ends sessions, all at once: one that hangs does not delay the others.
async fn close_all(links: Vec<Arc<Link>>) {
    let mut closing = JoinSet::new();
    for link in links {
        closing.spawn(async move { link.close().await });
    }
    while closing.join_next().await.is_some() {}
}

fn address(connection: &Arc<Connection>) -> usize {
    Arc::as_ptr(connection).addr()
}

/// Removes the session that was not used for the longest time. It ends when its last handle is dropped.
fn evict(links: &mut HashMap<ClientKey, Pooled>) -> Result<(), McpError> {
    let idle = links.iter().filter(|(_, pooled)| pooled.link.is_idle());
    let Some(oldest) = idle.min_by_key(|(_, pooled)| pooled.used).map(|(key, _)| key.clone()) else {
        let text = "Too many clients use the server behind this proxy";
        return Err(McpError::new(ErrorCode::INTERNAL_ERROR, text));
    };
    links.remove(&oldest);
    Ok(())
}
