//! The session on behalf of one client: opened when it is needed, and again when it is lost.

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use duplexer_client::{Change, Client, Negotiation};
use duplexer_core::dispatch::{Latch, OutboundRequest, lock};
use duplexer_core::error::{BoxError, McpError};
use duplexer_server::ClientProfile;
use duplexer_types::capabilities::ClientCapabilities;
use duplexer_types::lifecycle::Implementation;
use duplexer_types::version::ProtocolVersion;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::bridge::changes::Streams;
use crate::bridge::tasks::Finished;
use crate::failure;
use crate::kept::Kept;
use crate::messages::{Connections, Messages};
use crate::remote::Reach;
use crate::upstream::Upstream;

/// Back-off after a session could not be opened: doubled with each attempt in a row, up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_millis(250);
const MAX_BACKOFF: Duration = Duration::from_secs(30);
/// Maximum time for the orderly end of a session.
const CLOSING: Duration = Duration::from_secs(10);

/// The client that a session is opened for.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) info: Option<Implementation>,
    pub(crate) capabilities: ClientCapabilities,
    /// The revision of its handshake; `None` if it has none.
    pub(crate) version: Option<ProtocolVersion>,
}

impl Caller {
    /// Returns a client that declares nothing.
    pub(crate) fn anonymous(version: Option<ProtocolVersion>) -> Self {
        Self { info: None, capabilities: ClientCapabilities::new(), version }
    }

    /// Returns a client with what it has declared.
    pub(crate) fn of(profile: ClientProfile, version: Option<ProtocolVersion>) -> Self {
        let capabilities = profile.capabilities.unwrap_or_else(ClientCapabilities::new);
        Self { info: profile.info, capabilities, version }
    }
}

/// A session that outlives its connections.
pub(crate) struct Link {
    reach: Arc<Reach>,
    caller: Caller,
    connections: Arc<Connections>,
    state: Mutex<State>,
    /// Which of tools, prompts and resources the sessions so far have offered; `None` before the first session.
    offered: Mutex<Option<[bool; 3]>>,
    pub(crate) kept: Kept,
    pub(crate) streams: Streams,
    /// Answers that clients of 2025-11-25 fetch as tasks.
    pub(crate) finished: Finished,
    watch: Mutex<JoinSet<()>>,
}

enum State {
    Closed,
    /// One request opens the session; the others wait.
    Opening(Arc<Latch>),
    Open(Arc<Upstream>),
    Failed(Failure),
    /// The client has left.
    Ended,
}

struct Failure {
    attempts: u32,
    until: Instant,
    reason: String,
}

enum Turn<'a> {
    Use(Arc<Upstream>),
    Wait(Arc<Latch>),
    Lead(Attempt<'a>),
}

/// The attempt to open the session. Dropped without an outcome, it lets another request try.
struct Attempt<'a> {
    link: &'a Arc<Link>,
    latch: Arc<Latch>,
    attempts: u32,
    lost: Option<Arc<Upstream>>,
    outcome: State,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let outcome = std::mem::replace(&mut self.outcome, State::Closed);
        let mut state = lock(&self.link.state);
        if matches!(*state, State::Opening(_)) {
            *state = outcome;
        }
        drop(state);
        self.latch.set();
    }
}

impl Link {
    pub(crate) fn new(reach: Arc<Reach>, caller: Caller) -> Self {
        Self {
            reach,
            caller,
            connections: Arc::default(),
            state: Mutex::new(State::Closed),
            offered: Mutex::default(),
            kept: Kept::default(),
            streams: Streams::default(),
            finished: Finished::default(),
            watch: Mutex::default(),
        }
    }

    pub(crate) fn connections(&self) -> &Connections {
        &self.connections
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Returns the maximum time of a call.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.reach.limits.call
    }

    /// Returns the session, if it is open.
    pub(crate) fn current(&self) -> Option<Arc<Upstream>> {
        match &*lock(&self.state) {
            State::Open(upstream) if !upstream.client.is_closed() => Some(Arc::clone(upstream)),
            _ => None,
        }
    }

    /// Returns the session, which is opened if necessary. After a failure it is not tried again for a while.
    pub(crate) async fn upstream(self: &Arc<Self>) -> Result<Arc<Upstream>, McpError> {
        loop {
            match self.turn()? {
                Turn::Use(upstream) => return Ok(upstream),
                Turn::Wait(latch) => latch.wait().await,
                // Boxed: it is rare, and large.
                Turn::Lead(attempt) => return Box::pin(attempt.open()).await,
            }
        }
    }

    fn turn(self: &Arc<Self>) -> Result<Turn<'_>, McpError> {
        let mut state = lock(&self.state);
        let attempts = match &*state {
            State::Open(upstream) if !upstream.client.is_closed() => {
                return Ok(Turn::Use(Arc::clone(upstream)));
            }
            State::Opening(latch) => return Ok(Turn::Wait(Arc::clone(latch))),
            State::Ended => return Err(failure::unavailable("the client has left")),
            State::Failed(failed) => {
                let wait = failed.until.saturating_duration_since(Instant::now());
                if !wait.is_zero() {
                    let reason =
                        format!("{} (the next attempt is in {:.1} s)", failed.reason, wait.as_secs_f64());
                    return Err(failure::unavailable(&reason));
                }
                failed.attempts
            }
            State::Closed | State::Open(_) => 0,
        };
        let latch = Arc::new(Latch::new());
        let lost = match std::mem::replace(&mut *state, State::Opening(Arc::clone(&latch))) {
            State::Open(lost) => Some(lost),
            _ => None,
        };
        Ok(Turn::Lead(Attempt { link: self, latch, attempts, lost, outcome: State::Closed }))
    }

    async fn open(&self) -> Result<Upstream, BoxError> {
        let messages = Arc::new(Messages::new(self.reach.sessions, Arc::clone(&self.connections)));
        let Caller { info, capabilities, version } = self.caller.clone();
        let mut builder = Client::builder("duplexer-proxy", env!("CARGO_PKG_VERSION")).relay(
            info,
            capabilities,
            Arc::clone(&messages) as _,
        );
        if let Some(version) = version {
            builder = builder.negotiation(Negotiation::PreferHandshake).propose(version);
        }
        let client = self.reach.connect(builder).await?;
        Ok(Upstream::new(client, messages))
    }

    /// Tells a new session what the earlier one knew, and the clients which lists can have changed.
    async fn restore(self: &Arc<Self>, upstream: &Upstream, lists: [bool; 3]) {
        for request in self.kept.requests(upstream.client.protocol_version()) {
            let method = request.method.clone();
            if let Err(error) = self.restore_one(upstream, request).await {
                tracing::warn!(%method, %error, "a part of the earlier session could not be restored");
            }
        }
        let changes = [Change::Tools, Change::Prompts, Change::Resources];
        for (change, _) in changes.iter().zip(lists).filter(|(_, is_offered)| *is_offered) {
            self.connections.report(change).await;
        }
    }

    /// Notes which lists a new session offers. Returns those of all sessions so far, if it is not the first.
    fn note_offered(&self, upstream: &Upstream) -> Option<[bool; 3]> {
        let new = upstream.client.server_capabilities();
        let [tools, prompts, resources] =
            [new.tools.is_some(), new.prompts.is_some(), new.resources.is_some()];
        let mut offered = lock(&self.offered);
        let earlier = *offered;
        let [had_tools, had_prompts, had_resources] = earlier.unwrap_or_default();
        *offered = Some([had_tools || tools, had_prompts || prompts, had_resources || resources]);
        earlier.and(*offered)
    }

    async fn restore_one(
        &self,
        upstream: &Upstream,
        mut request: OutboundRequest,
    ) -> Result<(), duplexer_core::error::CallError> {
        request.options = request.options.timeout(self.reach.limits.opening);
        upstream.client.forward(request).await.map(drop)
    }

    /// Opens the session again when it is lost, as long as clients are connected that could miss something.
    fn watch(self: &Arc<Self>, upstream: &Upstream) {
        let (link, client) = (Arc::downgrade(self), upstream.client.clone());
        let mut tasks = lock(&self.watch);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            client.closed().await;
            drop(client);
            reopen(&link).await;
        });
    }

    /// Returns whether no request uses the session now.
    pub(crate) fn is_idle(&self) -> bool {
        match &*lock(&self.state) {
            State::Open(upstream) => upstream.is_idle(),
            State::Opening(_) => false,
            State::Closed | State::Failed(_) | State::Ended => true,
        }
    }

    /// Ends the session for good.
    pub(crate) async fn close(&self) {
        let state = std::mem::replace(&mut *lock(&self.state), State::Ended);
        drop(std::mem::take(&mut *lock(&self.watch)));
        if let State::Open(upstream) = state {
            end(&upstream).await;
        }
    }
}

/// Opens a lost session again, with back-off, until it is open or no client is connected.
async fn reopen(link: &Weak<Link>) {
    let mut attempt = 0;
    loop {
        let Some(link) = link.upgrade() else { return };
        if link.connections.all().is_empty() || link.upstream().await.is_ok() {
            return;
        }
        drop(link);
        sleep(backoff(attempt)).await;
        attempt += 1;
    }
}

async fn end(upstream: &Upstream) {
    match timeout(CLOSING, upstream.client.close()).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "a session had broken"),
        Err(_) => tracing::warn!("a session did not end in time"),
    }
}

fn backoff(attempts: u32) -> Duration {
    (FIRST_BACKOFF * 2_u32.saturating_pow(attempts.min(10))).min(MAX_BACKOFF)
}

impl Attempt<'_> {
    async fn open(mut self) -> Result<Arc<Upstream>, McpError> {
        if let Some(lost) = self.lost.take() {
            tracing::info!("the session with the server was lost and is opened again");
            end(&lost).await;
        }
        match self.link.open().await {
            Ok(upstream) => {
                let upstream = Arc::new(upstream);
                self.outcome = State::Open(Arc::clone(&upstream));
                self.link.watch(&upstream);
                if let Some(lists) = self.link.note_offered(&upstream) {
                    self.link.restore(&upstream, lists).await;
                }
                Ok(upstream)
            }
            Err(error) => {
                let reason = failure::described(&*error);
                tracing::warn!(%reason, attempts = self.attempts, "a session with the server could not be opened");
                let until = Instant::now() + backoff(self.attempts);
                let failed = Failure { attempts: self.attempts + 1, until, reason: reason.clone() };
                self.outcome = State::Failed(failed);
                Err(failure::unavailable(&reason))
            }
        }
    }
}
