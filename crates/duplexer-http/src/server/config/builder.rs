//! Builder of a service: one setter per setting, checked in `build`.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::OutboundHook;
use duplexer_server::Server;

use super::{Config, Cors, Handshake, HttpConfigError, Responses, StoreReadiness};
use crate::server::StreamableHttp;
use crate::server::http_sse::InvalidPath;
use crate::server::security::InvalidName;
use crate::server::serve::path_service::PATH;
use crate::server::server_card::ServerCard;
use crate::server::service_state::ServiceState;
use crate::session::{EventStore, Reach, SharedStores};

/// Builder of a [`StreamableHttp`] service.
///
/// ```
/// # use duplexer_server::Server;
/// use std::time::Duration;
///
/// use duplexer_http::{MemoryEventStore, StreamableHttp};
///
/// let server = Server::builder("notes", "1.0.0").build()?;
/// let service = StreamableHttp::builder(server)
///     .public_url("https://mcp.example.com")
///     .event_store(MemoryEventStore::new())
///     .shutdown_grace(Duration::from_secs(20))
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a service exists once it is built"]
#[derive(Debug)]
pub struct StreamableHttpBuilder {
    server: Server,
    pub(super) config: Config,
    pub(super) card: Option<ServerCard>,
    fault: Option<HttpConfigError>,
}

impl StreamableHttpBuilder {
    pub(in crate::server) fn new(server: Server) -> Self {
        Self { server, config: Config::default(), card: None, fault: None }
    }

    /// Sets the only path that is served, with and without a trailing slash. For a service without a router.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        if path.starts_with('/') && !path.contains(['?', '#', ' ']) {
            self.config.path = Some(path.trim_end_matches('/').to_owned());
        } else {
            self.fault(HttpConfigError::Path(path));
        }
        self
    }

    /// Also serves the HTTP+SSE transport of 2024-11-05: the SSE stream at `stream`, and the client's messages at
    /// `messages`. A router must route both paths to this service. Its streams count as sessions and as requests in
    /// flight.
    pub fn http_sse(mut self, stream: &str, messages: &str) -> Self {
        let set = self.config.http_sse.set(stream, messages);
        self.note_path(set)
    }

    /// Sets the prefix that a router strips from paths before it calls the service. The HTTP+SSE transport sends it to
    /// clients as part of the address for messages.
    pub fn root_path(mut self, root: &str) -> Self {
        let set = self.config.http_sse.set_root(root);
        self.note_path(set)
    }

    /// Sets the form of responses.
    pub fn responses(mut self, responses: Responses) -> Self {
        self.config.responses = responses;
        self
    }

    /// How requests of the handshake era are served.
    pub fn handshake(mut self, handshake: Handshake) -> Self {
        self.config.handshake = handshake;
        self
    }

    /// Sets the public URL of this server. Its host and its origin are allowed.
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

    /// Allows requests to this host (`mcp.example.com`, or `mcp.example.com:8443` for one port only).
    pub fn allow_host(mut self, host: &str) -> Self {
        let added = self.config.allowed.add_host(host);
        self.note(added)
    }

    /// Allows requests to any host. Only for a service that no browser can reach, or behind a proxy that checks hosts.
    pub fn allow_any_host(mut self) -> Self {
        self.config.allowed.any_host();
        self
    }

    /// Allows requests by scripts of this origin (`https://app.example.com`).
    pub fn allow_origin(mut self, origin: &str) -> Self {
        let added = self.config.allowed.add_origin(origin);
        self.note(added)
    }

    /// Allows requests by scripts of any origin: every page that a user opens can then call this service. Only for a
    /// service that is public, or that requires a token.
    pub fn allow_any_origin(mut self) -> Self {
        self.config.allowed.any_origin();
        self
    }

    /// Sets whether scripts of allowed origins can read the responses.
    pub fn cors(mut self, cors: Cors) -> Self {
        self.config.cors = cors;
        self
    }

    /// Sets the maximum body size of a request, in bytes. Default: 4 MiB.
    pub fn max_body(mut self, bytes: usize) -> Self {
        self.config.limits.body = bytes;
        self
    }

    /// Sets the maximum number of requests in flight, including streams. Further ones get 503. Default: 8192.
    pub fn max_requests(mut self, requests: usize) -> Self {
        self.config.limits.requests = requests;
        self
    }

    /// Sets the maximum number of requests in flight of one principal, including streams and responses that it has not
    /// read. Further ones get 503. Default: 1024. Requests without a principal have no limit but the total.
    pub fn max_requests_per_principal(mut self, requests: usize) -> Self {
        self.config.limits.requests_per_principal = requests;
        self
    }

    /// Sets the maximum number of open subscriptions. Further ones get 503. Default: 1024.
    pub fn max_subscriptions(mut self, subscriptions: usize) -> Self {
        self.config.limits.subscriptions = subscriptions;
        self
    }

    /// Sets the maximum number of open subscriptions of one principal. Further ones get 503. Default: 128.
    pub fn max_subscriptions_per_principal(mut self, subscriptions: usize) -> Self {
        self.config.limits.subscriptions_per_principal = subscriptions;
        self
    }

    /// Sets the maximum number of requests of one batch that run at the same time. Default: 8. Each counts as a request
    /// in flight.
    pub fn max_batch_concurrency(mut self, requests: usize) -> Self {
        self.config.limits.batch_requests = requests;
        self
    }

    /// Sets the maximum size of the responses of one batch, in bytes. Requests beyond it fail, each with an error.
    /// Default: 16 MiB.
    pub fn max_batch_response(mut self, bytes: usize) -> Self {
        self.config.limits.batch_bytes = bytes;
        self
    }

    /// Sets the time within which the body of a request must arrive. Default: 30 s.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.config.timing.body = timeout;
        self
    }

    /// Sets the time after which a pending response becomes an SSE stream. Default: 15 s.
    pub fn sse_after(mut self, sse_after: Duration) -> Self {
        self.config.timing.sse_after = sse_after;
        self
    }

    /// Sets the interval of keep-alive comments on a silent SSE stream. Default: 15 s.
    pub fn sse_keep_alive(mut self, interval: Duration) -> Self {
        self.config.timing.keep_alive = interval;
        self
    }

    /// Sets the time after which an unread stream ends and its handler is dropped, and after which an unread response is
    /// dropped. Default: 60 s.
    pub fn unread_timeout(mut self, timeout: Duration) -> Self {
        self.config.timing.unread = timeout;
        self
    }

    /// Sets the time for which a service that shuts down still serves new requests, while
    /// [`StreamableHttp::readiness`] tells the balancer to send no more. Default: 0 s; 5 s suit most balancers.
    #[doc(alias = "notice")]
    pub fn shutdown_notice(mut self, notice: Duration) -> Self {
        self.config.timing.shutdown_notice = notice;
        self
    }

    /// Sets the time for requests in flight to finish after the shutdown begins. Default: 10 s; the whole shutdown
    /// takes at most 5 s more. Keep it below the time that the supervisor of the process allows (Kubernetes: 30 s).
    #[doc(alias = "drain")]
    pub fn shutdown_grace(mut self, grace: Duration) -> Self {
        self.config.timing.shutdown_grace = grace;
        self
    }

    /// Sets the maximum number of open sessions. Default: 10 000. At the limit a handshake ends the oldest session whose
    /// client has not sent `notifications/initialized`; if there is none, it gets 503.
    pub fn max_sessions(mut self, sessions: usize) -> Self {
        self.config.sessions.max = sessions;
        self
    }

    /// Sets the maximum number of open sessions of one principal. Default: 1000. At the limit a handshake ends the oldest
    /// session of the same principal whose client has not sent `notifications/initialized`; if there is none, it gets 503.
    /// Sessions without a principal have no limit but the total.
    pub fn max_sessions_per_principal(mut self, sessions: usize) -> Self {
        self.config.sessions.max_per_principal = sessions;
        self
    }

    /// Sets the time after which an idle session ends; `None` for no limit. Default: 30 minutes. A session with an open
    /// stream or a request in flight is not idle.
    pub fn session_idle_timeout(mut self, idle: impl Into<Option<Duration>>) -> Self {
        self.config.sessions.idle = idle.into();
        self
    }

    /// Sets the time after which an idle session ends whose client has not sent `notifications/initialized`. Default: 60 s.
    pub fn session_initialized_timeout(mut self, timeout: Duration) -> Self {
        self.config.sessions.half_open = timeout;
        self
    }

    /// Sets the maximum number of calls in flight in one session. Further ones get 503. Default: 256. The handlers of
    /// notifications have a limit of the same size, and a stream of the HTTP+SSE transport queues as many calls again.
    pub fn max_calls_per_session(mut self, calls: usize) -> Self {
        self.config.sessions.calls.in_flight = calls;
        self
    }

    /// Sets the maximum number of requests of the server to the client of one session that have no response. Further ones
    /// fail. Default: 256.
    pub fn max_client_requests_per_session(mut self, requests: usize) -> Self {
        self.config.sessions.calls.questions = requests;
        self
    }

    /// Sets the time after which a request of the server to the client of a session fails, if the call has no timeout of
    /// its own; `None` for no limit. Default: 10 minutes.
    pub fn client_request_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.sessions.calls.client_request = timeout.into();
        self
    }

    /// Sets the time after which a call of a session is cancelled if no client reads its stream; `None` for no limit.
    /// Default: 5 minutes.
    pub fn abandoned_call_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.config.sessions.calls.abandoned = timeout.into();
        self
    }

    /// Sets the store for events of streams, so that clients can resume them.
    pub fn event_store(mut self, store: impl EventStore) -> Self {
        self.config.sessions.events = Some(Arc::new(store));
        self
    }

    /// Sets the time that a client waits before it resumes a stream. Default: 1 s.
    pub fn sse_retry(mut self, retry: Duration) -> Self {
        self.config.sessions.retry = retry;
        self
    }

    /// Shares sessions, events and messages with the other nodes of this server: every node serves every message of
    /// every session. Replaces [`Self::event_store`].
    #[doc(alias("session_store", "cluster", "redis"))]
    pub fn scale_out(mut self, stores: impl Into<SharedStores>) -> Self {
        let stores = stores.into();
        self.config.sessions.events = Some(Arc::clone(&stores.events));
        self.config.sessions.shared = Some(stores);
        self
    }

    /// Sets how long an operation of a store is tried, with its repetitions. Then the client gets 503. Once the store has
    /// not responded for as long, operations fail at once until it does. Default: 5 s.
    pub fn store_patience(mut self, patience: Duration) -> Self {
        self.config.sessions.stores.patience = patience;
        self
    }

    /// Sets how long one attempt of an operation of a store takes at most. Default: 1 s.
    pub fn store_attempt(mut self, timeout: Duration) -> Self {
        self.config.sessions.stores.attempt = timeout;
        self
    }

    /// Sets whether a node without its shared stores is ready. Default: not where sessions are served, because it cannot serve
    /// them; otherwise it is.
    pub fn store_readiness(mut self, readiness: StoreReadiness) -> Self {
        self.config.sessions.readiness = Some(readiness);
        self
    }

    /// Sets a hook for every request to the client of a session, for example for tracing.
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
            self.fault(HttpConfigError::Endpoint(path));
        }
        self
    }

    pub(super) fn fault(&mut self, fault: HttpConfigError) {
        self.fault.get_or_insert(fault);
    }

    /// Checks all settings and builds the service.
    ///
    /// # Errors
    ///
    /// Returns the first invalid setting.
    pub fn build(mut self) -> Result<StreamableHttp, HttpConfigError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(card) = &self.card {
            let routes = card.routes(&self.server, self.config.handshake).map_err(HttpConfigError::Card)?;
            self.config.card = Some(Arc::new(routes));
        }
        let Config { limits, timing, sessions, path, http_sse, .. } = &self.config;
        if let Some(path) = http_sse.clash(path.as_deref().unwrap_or(PATH)) {
            return Err(HttpConfigError::SamePath(path.to_owned()));
        }
        let limits = [
            ("the largest body", limits.body),
            ("the number of requests", limits.requests),
            ("the number of requests per principal", limits.requests_per_principal),
            ("the number of subscriptions", limits.subscriptions),
            ("the number of subscriptions per principal", limits.subscriptions_per_principal),
            ("the concurrency of a batch", limits.batch_requests),
            ("the largest response to a batch", limits.batch_bytes),
            ("the number of sessions", sessions.max),
            ("the number of sessions per principal", sessions.max_per_principal),
            ("the number of calls per session", sessions.calls.in_flight),
            ("the number of requests to a client", sessions.calls.questions),
        ];
        if let Some((name, _)) = limits.into_iter().find(|(_, limit)| *limit == 0) {
            return Err(HttpConfigError::Zero(name));
        }
        let times = [
            ("the body's timeout", timing.body),
            ("`sse_after`", timing.sse_after),
            ("the keep-alive", timing.keep_alive),
            ("`shutdown_grace`", timing.shutdown_grace),
            ("`store_patience`", sessions.stores.patience),
            ("`store_attempt`", sessions.stores.attempt),
            ("the idle time of sessions", sessions.idle.unwrap_or(Duration::MAX)),
            ("`session_initialized_timeout`", sessions.half_open),
            ("`client_request_timeout`", sessions.calls.client_request.unwrap_or(Duration::MAX)),
            ("`abandoned_call_timeout`", sessions.calls.abandoned.unwrap_or(Duration::MAX)),
        ];
        if let Some((name, _)) = times.into_iter().find(|(_, time)| time.is_zero()) {
            return Err(HttpConfigError::Instant(name));
        }
        if timing.unread <= timing.keep_alive {
            return Err(HttpConfigError::Unread { unread: timing.unread, ping: timing.keep_alive });
        }
        let spans_processes = sessions.shared.as_ref().is_some_and(|it| it.reach == Reach::Processes);
        if spans_processes && !self.server.shares_request_states() {
            return Err(HttpConfigError::RandomStateKey);
        }
        Ok(StreamableHttp(ServiceState::start(self.server, self.config)))
    }
}
