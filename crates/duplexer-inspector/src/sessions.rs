//! Sessions with the server: one for each choice of the era, opened when the page needs it.

mod client;
mod watches;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use duplexer_client::Client;
use duplexer_core::dispatch::lock;
use duplexer_core::error::BoxError;
use duplexer_types::json::Json;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::version::Era;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::inspector::{Connecting, PageHandle};
use crate::state::State;

pub(crate) use client::shown;
pub(crate) use watches::Watches;

/// How the era of a session is chosen. A page has at most one session of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Choice {
    /// Negotiated with the server.
    Auto,
    Handshake,
    Envelope,
}

impl Choice {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Handshake => "handshake",
            Self::Envelope => "envelope",
        }
    }
}

/// An open session.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) watches: Watches,
    /// Minimum level of the log messages that the page wants.
    pub(crate) level: Mutex<LoggingLevel>,
}

type Slot = Arc<OnceCell<Arc<Session>>>;

#[derive(Default)]
pub(crate) struct Sessions(Mutex<HashMap<Choice, Slot>>);

impl Sessions {
    /// Returns the session, which is opened if it is not open.
    pub(crate) async fn open(&self, state: &Arc<State>, choice: Choice) -> Result<Arc<Session>, BoxError> {
        let slot = self.slot(choice);
        let opened = slot.get_or_try_init(|| async {
            let connecting = Connecting {
                builder: client::builder(state, choice),
                page: PageHandle::new(Arc::clone(state), choice.name()),
            };
            let client = (state.settings.connect)(connecting).await?;
            let session = Arc::new(Session {
                client,
                watches: Watches::default(),
                level: Mutex::new(client::DEFAULT_LEVEL),
            });
            session.begin(state, choice).await;
            Ok::<_, BoxError>(session)
        });
        opened.await.map(Arc::clone)
    }

    /// Returns the slot of a session. A session whose connection has ended is replaced.
    fn slot(&self, choice: Choice) -> Slot {
        let mut slots = lock(&self.0);
        let slot = slots.entry(choice).or_default();
        if slot.get().is_some_and(|session| session.client.is_closed()) {
            *slot = Slot::default();
        }
        Arc::clone(slot)
    }

    /// Ends a session, so that the next request opens a new one.
    pub(crate) async fn close(&self, choice: Choice) {
        let slot = lock(&self.0).remove(&choice);
        if let Some(session) = slot.as_ref().and_then(|slot| slot.get()) {
            session.end().await;
        }
    }

    pub(crate) async fn close_all(&self) {
        for choice in [Choice::Auto, Choice::Handshake, Choice::Envelope] {
            self.close(choice).await;
        }
    }
}

impl Session {
    /// Watches the lists, and requests log messages.
    async fn begin(self: &Arc<Self>, state: &Arc<State>, choice: Choice) {
        let level = *lock(&self.level);
        if let Err(error) = self.set_level(level).await {
            tracing::debug!(%error, "the log level was refused");
        }
        if let Err(error) = self.watches.lists(state, choice, &self.client).await {
            tracing::debug!(%error, "changes of lists cannot be watched");
        }
    }

    async fn end(&self) {
        self.watches.end();
        if let Err(error) = self.client.close().await {
            tracing::debug!(%error, "a session ended with an error");
        }
    }

    /// Sets the minimum level of log messages. In the envelope era it is part of each request.
    pub(crate) async fn set_level(&self, level: LoggingLevel) -> Result<(), BoxError> {
        *lock(&self.level) = level;
        if self.client.era() == Era::Handshake && self.client.server_capabilities().logging.is_some() {
            self.client.set_log_level(level).await?;
        }
        Ok(())
    }

    /// Describes the session for the page.
    pub(crate) fn described(&self, choice: Choice) -> Value {
        let client = &self.client;
        let era = match client.era() {
            Era::Handshake => "handshake",
            Era::Envelope => "envelope",
        };
        let opening = Json::parse(client.opening_result()).ok();
        let opening: Value = opening.and_then(|result| result.decode().ok()).unwrap_or_default();
        let server = client
            .server_info()
            .map(|info| json!({"name": info.name, "title": info.title, "version": info.version}));
        json!({
            "session": choice.name(), "era": era, "version": client.protocol_version().as_str(),
            "server": server, "capabilities": opening.get("capabilities"),
            "instructions": client.instructions(),
        })
    }
}
