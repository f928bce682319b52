//! Settings: what is served, how much of it, and how long things may take. Checked when the service is built.

mod error;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::OutboundHook;
use duplexer_core::server::Server;

use super::StreamableHttp;
use super::http_sse::{self, InvalidPath};
use super::security::{Allowed, InvalidName};
use super::serve::path_service::PATH;
use super::service_state::ServiceState;
use crate::session::{EventStore, SessionStore};

pub use error::ConfigError;

/// How a request that wants an answer gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Responses {
    /// As one JSON body; as a stream of events from the first notification on, or when it takes long.
    #[default]
    Streaming,
    /// Always as one JSON body; notifications are dropped. Subscriptions are streams all the same.
    JsonOnly,
}

/// What happens to requests of the handshake era.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Handshake {
    /// Each client gets a session with its handshake.
    #[default]
    Sessions,
    /// They are served one by one, without a session: nothing is remembered between them.
    Stateless,
    /// They are refused: only the envelope era is served.
    Disabled,
}

/// Whether scripts of web pages elsewhere may read the answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cors {
    /// No.
    #[default]
    Off,
    /// Those of allowed origins may.
    AllowedOrigins,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Config {
    /// Without a trailing slash. `None`: whoever mounts the service has looked at the path.
    pub(super) path: Option<String>,
    pub(super) http_sse: http_sse::Paths,
    pub(super) responses: Responses,
    pub(super) handshake: Handshake,
    pub(super) allowed: Allowed,
    pub(super) cors: Cors,
    pub(super) limits: Limits,
    pub(super) timing: Timing,
    pub(super) sessions: SessionSettings,
}

/// How sessions are kept.
#[derive(Clone)]
pub(super) struct SessionSettings {
    pub(super) max: usize,
    pub(super) idle: Option<Duration>,
    /// When a client is to come back for the rest of a stream.
    pub(super) retry: Duration,
    pub(super) events: Option<Arc<dyn EventStore>>,
    pub(super) shared: Option<SharedSessions>,
    pub(super) hook: Option<Arc<dyn OutboundHook>>,
}

/// Where sessions are written down, and under which name this node serves them.
#[derive(Clone)]
pub(super) struct SharedSessions {
    pub(super) store: Arc<dyn SessionStore>,
    pub(super) node: String,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            max: 10_000,
            idle: Some(Duration::from_secs(30 * 60)),
            retry: Duration::from_secs(1),
            events: None,
            shared: None,
            hook: None,
        }
    }
}

impl fmt::Debug for SessionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionSettings")
            .field("max", &self.max)
            .field("idle", &self.idle)
            .field("retry", &self.retry)
            .field("events", &self.events.is_some())
            .field("shared", &self.shared.as_ref().map(|shared| &shared.node))
            .finish_non_exhaustive()
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) body: usize,
    pub(super) requests: usize,
    pub(super) subscriptions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { body: 4 * 1024 * 1024, requests: 8192, subscriptions: 1024 }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// For the whole body of a request.
    pub(super) body: Duration,
    /// How long a handler may be silent before its answer becomes a stream.
    pub(super) sse_after: Duration,
    /// The longest silence on a stream.
    pub(super) keep_alive: Duration,
    /// How long a stream may stay unread.
    pub(super) unread: Duration,
    /// How long requests may go on once the service is to end.
    pub(super) shutdown_grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            body: seconds(30),
            sse_after: seconds(15),
            keep_alive: seconds(15),
            unread: seconds(60),
            shutdown_grace: seconds(3),
        }
    }
}

/// A service being described.
#[must_use = "a service exists once it is built"]
#[derive(Debug)]
pub struct StreamableHttpBuilder {
    server: Server,
    config: Config,
    fault: Option<ConfigError>,
}

impl StreamableHttpBuilder {
    pub(super) fn new(server: Server) -> Self {
        Self { server, config: Config::default(), fault: None }
    }

    /// The only path that is served, with and without a trailing slash. For a service that no router stands before.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        if path.starts_with('/') && !path.contains(['?', '#', ' ']) {
            self.config.path = Some(path.trim_end_matches('/').to_owned());
        } else {
            self.fault(ConfigError::Path(path));
        }
        self
    }

    /// Also serves the transport of 2024-11-05, for old clients: events at `stream`, and at `messages` what the client
    /// says. A router must lead both paths here. Its streams count as sessions and as requests under way.
    pub fn http_sse(mut self, stream: &str, messages: &str) -> Self {
        let set = self.config.http_sse.set(stream, messages);
        self.note_path(set)
    }

    /// What a router takes away from the beginning of a path before it calls the service. Old clients are told where to
    /// post to, and need it.
    pub fn root_path(mut self, root: &str) -> Self {
        let set = self.config.http_sse.set_root(root);
        self.note_path(set)
    }

    /// How requests get their answers.
    pub fn responses(mut self, responses: Responses) -> Self {
        self.config.responses = responses;
        self
    }

    /// What happens to requests of the handshake era.
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.config.handshake = handshake;
        self
    }

    /// The URL under which the world knows this server: its host and its origin are allowed.
    pub fn public_url(self, url: &str) -> Self {
        let (origin, authority) = match url.split_once("://") {
            Some((scheme, rest)) => {
                let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
                (format!("{scheme}://{authority}"), authority)
            }
            None => (url.to_owned(), url),
        };
        self.allow_origin(&origin).allow_host(authority)
    }

    /// Requests may name this host (`mcp.example.com`, or `mcp.example.com:8443` for one port only).
    pub fn allow_host(mut self, host: &str) -> Self {
        let added = self.config.allowed.add_host(host);
        self.note(added)
    }

    /// Requests may name any host. Only for a service that a browser cannot reach, or behind a proxy that checks.
    pub fn allow_any_host(mut self) -> Self {
        self.config.allowed.any_host();
        self
    }

    /// Scripts of this origin (`https://app.example.com`) may send requests.
    pub fn allow_origin(mut self, origin: &str) -> Self {
        let added = self.config.allowed.add_origin(origin);
        self.note(added)
    }

    /// Whether scripts of allowed origins may read the answers.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.config.cors = cors;
        self
    }

    /// The largest body of a request, in bytes. 4 MiB if not given.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.config.limits.body = bytes;
        self
    }

    /// How many requests may be under way at once, streams included; further ones get 503. 8192 if not given.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.config.limits.requests = requests;
        self
    }

    /// How many subscriptions may be open at once; further ones get 503. 1024 if not given.
    pub fn max_subscriptions(mut self, subscriptions: usize) -> Self {
        self.config.limits.subscriptions = subscriptions;
        self
    }

    /// How long the body of a request may take to arrive. 30 s if not given.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.config.timing.body = timeout;
        self
    }

    /// How long a silent handler may take before its answer becomes a stream. 15 s if not given.
    pub fn sse_after(mut self, sse_after: Duration) -> Self {
        self.config.timing.sse_after = sse_after;
        self
    }

    /// The longest silence on a stream: then a comment says that it is alive. 15 s if not given.
    pub fn sse_keep_alive(mut self, interval: Duration) -> Self {
        self.config.timing.keep_alive = interval;
        self
    }

    /// How long a stream may stay unread before it is cut and its handler dropped. 60 s if not given.
    pub fn unread_timeout(mut self, timeout: Duration) -> Self {
        self.config.timing.unread = timeout;
        self
    }

    /// How long requests may go on once the service is to end. 3 s if not given.
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.timing.shutdown_grace = grace;
        self
    }

    /// How many sessions may be open at once; further handshakes get 503. 10 000 if not given.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.config.sessions.max = sessions;
        self
    }

    /// How long a session may be without any exchange before it ends, or `None` for as long as the process lives. 30
    /// minutes if not given. An open stream and a running request are exchanges.
    pub fn session_idle_timeout(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.config.sessions.idle = idle.into();
        self
    }

    /// Keeps the events of streams, so that clients can come back for them.
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.config.sessions.events = Some(Arc::new(store));
        self
    }

    /// How long a client is to wait before it comes back for the rest of a stream. 1 s if not given.
    pub fn sse_retry(mut self, retry: Duration) -> Self {
        self.config.sessions.retry = retry;
        self
    }

    /// Writes sessions down, so that another node can take them over. `node` is the name of this one among them.
    pub fn session_store(mut self, store: impl SessionStore, node: impl Into<String>) -> Self {
        self.config.sessions.shared = Some(SharedSessions { store: Arc::new(store), node: node.into() });
        self
    }

    /// Sees every request to the client of a session, for example to trace it.
    pub fn outbound_hook(mut self, hook: Arc<dyn OutboundHook>) -> Self {
        self.config.sessions.hook = Some(hook);
        self
    }

    fn note(mut self, added: Result<(), InvalidName>) -> Self {
        if let Err(error) = added {
            self.fault(error.into());
        }
        self
    }

    fn note_path(mut self, set: Result<(), InvalidPath>) -> Self {
        if let Err(InvalidPath(path)) = set {
            self.fault(ConfigError::Endpoint(path));
        }
        self
    }

    fn fault(&mut self, fault: ConfigError) {
        self.fault.get_or_insert(fault);
    }

    /// Checks everything and finishes the service.
    pub fn build(self) -> Result<StreamableHttp, ConfigError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let Config { limits, timing, sessions, path, http_sse, .. } = &self.config;
        if let Some(path) = http_sse.clash(path.as_deref().unwrap_or(PATH)) {
            return Err(ConfigError::SamePath(path.to_owned()));
        }
        let limits = [
            ("the largest body", limits.body),
            ("the number of requests", limits.requests),
            ("the number of subscriptions", limits.subscriptions),
            ("the number of sessions", sessions.max),
        ];
        if let Some((name, _)) = limits.into_iter().find(|(_, limit)| *limit == 0) {
            return Err(ConfigError::Zero(name));
        }
        let times = [
            ("the body's timeout", timing.body),
            ("`sse_after`", timing.sse_after),
            ("the keep-alive", timing.keep_alive),
            ("`shutdown_grace`", timing.shutdown_grace),
            ("the idle time of sessions", sessions.idle.unwrap_or(Duration::MAX)),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(ConfigError::Instant(name));
        }
        if timing.unread <= timing.keep_alive {
            return Err(ConfigError::Unread { unread: timing.unread, ping: timing.keep_alive });
        }
        Ok(StreamableHttp(Arc::new(ServiceState::new(self.server, self.config))))
    }
}
