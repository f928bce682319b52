//! A new session in place of one that the server has ended (handshake era): one handshake for all waiting calls.
//!
//! The requests that the server has refused did not run and are sent again. Log level and subscriptions are restored.

use std::collections::BTreeSet;
use std::sync::Mutex;

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject, find_member};
use duplexer_types::methods::Method;
use duplexer_types::resource::SubscribeParams;
use tokio::sync::Notify;

use super::handler::ServerNotification;
use super::{Client, negotiate};
use duplexer_core::dispatch::{BoxFuture, OutboundRequest, lock};
use duplexer_core::error::CallError;
use duplexer_core::transport::TransportFailure;

/// State of the renewal, and what it restores.
#[derive(Default)]
pub(super) struct Renewal {
    state: Mutex<State>,
    finished: Notify,
    restored: Mutex<Restored>,
}

#[derive(Default)]
struct State {
    /// Number of sessions before the current one.
    generation: u64,
    /// Number of attempts that have ended, and whether one is running.
    attempts: u64,
    running: bool,
}

/// What the server has stored in the session on request of the client.
#[derive(Default)]
struct Restored {
    log_level: Option<Json>,
    resources: BTreeSet<String>,
}

/// What a call does about an ended session.
enum Part {
    /// Performs the handshake.
    Lead,
    /// Another call has performed it.
    Done,
    /// The attempt of another call has failed.
    Failed,
}

/// The attempt of the leading call. Dropped without an outcome, it lets another call lead.
struct Attempt<'a> {
    renewal: &'a Renewal,
    outcome: Option<bool>,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.renewal.state);
        state.running = false;
        if let Some(renewed) = self.outcome {
            state.attempts += 1;
            state.generation += u64::from(renewed);
        }
        drop(state);
        self.renewal.finished.notify_waiters();
    }
}

impl Renewal {
    /// Waits for the running attempt, or begins one.
    async fn take_part(&self, generation: u64) -> Part {
        let seen = lock(&self.state).attempts;
        loop {
            let finished = self.finished.notified();
            tokio::pin!(finished);
            finished.as_mut().enable();
            {
                let mut state = lock(&self.state);
                if state.generation != generation {
                    return Part::Done;
                }
                if state.attempts != seen {
                    return Part::Failed;
                }
                if !state.running {
                    state.running = true;
                    return Part::Lead;
                }
            }
            finished.await;
        }
    }

    /// Remembers what a successful request has stored in the session.
    fn remember(&self, method: Method, params: Option<&str>) {
        let uri = || serde_json::from_str::<String>(find_member(params?, "uri")?).ok();
        if !matches!(
            method,
            Method::LoggingSetLevel | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe
        ) {
            return;
        }
        let mut restored = lock(&self.restored);
        match method {
            Method::LoggingSetLevel => {
                restored.log_level = params.and_then(|params| Json::parse(params).ok());
            }
            Method::ResourcesSubscribe => restored.resources.extend(uri()),
            Method::ResourcesUnsubscribe => drop(uri().map(|uri| restored.resources.remove(&uri))),
            _ => {}
        }
    }
}

impl Client {
    /// Sends a request, again if the server has ended the session before it ran.
    pub(super) async fn send(&self, request: OutboundRequest) -> Result<ByteString, CallError> {
        self.send_either(request, None).await
    }

    /// As [`Self::send`]; `text` takes the place of the params.
    pub(super) async fn send_either(
        &self,
        request: OutboundRequest,
        text: Option<ByteString>,
    ) -> Result<ByteString, CallError> {
        let Some(opening) = &self.0.session.opening else { return self.start(request, text).await };
        let generation = lock(&self.0.renewal.state).generation;
        let again = (request.clone(), text.clone());
        let mut outcome = self.start(request, text).await;
        if let Err(CallError::Transport(TransportFailure::SessionEnded)) = outcome {
            Box::pin(self.renew(generation, opening)).await?;
            outcome = self.start(again.0.clone(), again.1.clone()).await;
        }
        if outcome.is_ok()
            && let Some(method) = Method::parse(&again.0.method)
        {
            let (request, text) = &again;
            let params = text.as_deref().or(request.params.as_ref().map(Json::as_str));
            self.0.renewal.remember(method, params);
        }
        outcome
    }

    fn start(
        &self,
        request: OutboundRequest,
        text: Option<ByteString>,
    ) -> BoxFuture<'_, Result<ByteString, CallError>> {
        match text {
            Some(params) => self.0.peer.forward(request, params),
            None => self.0.peer.request(request),
        }
    }

    /// Opens a new session, unless another call has done so since `generation`.
    async fn renew(&self, generation: u64, opening: &Json) -> Result<(), CallError> {
        match self.0.renewal.take_part(generation).await {
            Part::Done => return Ok(()),
            Part::Failed => return Err(CallError::Transport(TransportFailure::SessionEnded)),
            Part::Lead => {}
        }
        let mut attempt = Attempt { renewal: &self.0.renewal, outcome: None };
        let opened = negotiate::renew(&*self.0.peer, opening, &self.0.session, &self.0.timeouts).await;
        if opened.is_ok() {
            self.restore().await;
        }
        attempt.outcome = Some(opened.is_ok());
        drop(attempt);
        opened?;
        tracing::info!("the server has ended the session; a new one is open");
        self.0.resources.cache.clear();
        self.0.routes.report_missed();
        self.0.callbacks.notify(ServerNotification::SessionRenewed);
        Ok(())
    }

    /// Restores log level and subscriptions. What the server now refuses is logged.
    async fn restore(&self) {
        let (log_level, resources) = {
            let restored = lock(&self.0.renewal.restored);
            (restored.log_level.clone(), restored.resources.clone())
        };
        let level = log_level.map(|level| OutboundRequest::new(Method::LoggingSetLevel.name()).params(level));
        let subscriptions = resources.into_iter().filter_map(|uri| {
            let params = SubscribeParams::new(uri);
            self.0.session.envelope.attach(Method::ResourcesSubscribe, &params, JsonObject::new()).ok()
        });
        for mut request in level.into_iter().chain(subscriptions) {
            self.0.timeouts.apply(&mut request.options);
            let method = request.method.clone();
            if let Err(error) = self.0.peer.request(request).await {
                tracing::warn!(%method, %error, "a part of the earlier session could not be restored");
            }
        }
    }
}
