//! The client of a session: every callback ends on the page.

use std::sync::Arc;

use duplexer_client::{Client, ClientBuilder, Negotiation, PinnedVersion, TaskOptions};
use duplexer_core::dispatch::lock;
use duplexer_types::app;
use duplexer_types::json::Json;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::version::{ProtocolVersion, Window};
use serde::Serialize;
use serde_json::{Value, json};

use super::Choice;
use crate::questions::Kind;
use crate::state::State;

/// Minimum level of log messages, until the page sets another.
pub(super) const DEFAULT_LEVEL: LoggingLevel = LoggingLevel::Info;

/// Returns the client of a session, without its connection.
pub(super) fn builder(state: &Arc<State>, choice: Choice) -> ClientBuilder {
    let session = choice.name();
    let negotiation = match choice {
        Choice::Auto => Negotiation::Auto,
        Choice::Handshake => Negotiation::Handshake,
        Choice::Envelope => {
            Negotiation::Pinned(PinnedVersion::new(ProtocolVersion::LATEST_ENVELOPE.as_str()))
        }
    };
    let (wire, connection) = (Arc::clone(state), state.page.wire.connection(session));
    let builder = Client::builder("duplexer-inspector", env!("CARGO_PKG_VERSION"))
        .title("Duplexer inspector")
        .negotiation(negotiation)
        .log_level(DEFAULT_LEVEL)
        .extension_in(app::EXTENSION, Json::from(json!({"mimeTypes": [app::MIME_TYPE]})), Window::ALWAYS)
        .on_frame(move |direction, frame| {
            let event = wire.page.wire.add(wire.page.clock.now(), connection, direction, frame);
            wire.tell(&event);
        });
    with_notifications(with_questions(builder, state, session), state, session)
}

fn with_questions(builder: ClientBuilder, state: &Arc<State>, session: &'static str) -> ClientBuilder {
    let (elicitation, sampling, roots) = (Arc::clone(state), Arc::clone(state), Arc::clone(state));
    builder
        .on_elicitation(move |params| {
            let state = Arc::clone(&elicitation);
            async move {
                let page = &state.page;
                page.questions.ask(&page.events, session, Kind::Elicitation, &params).await
            }
        })
        .on_sampling(move |params| {
            let state = Arc::clone(&sampling);
            async move {
                let page = &state.page;
                page.questions.ask(&page.events, session, Kind::Sampling, &params).await
            }
        })
        .on_roots(move || {
            let uris = lock(&roots.page.roots).clone();
            async move { Ok(ListRootsResult::new(uris.into_iter().map(Root::new).collect::<Vec<_>>())) }
        })
}

fn with_notifications(builder: ClientBuilder, state: &Arc<State>, session: &'static str) -> ClientBuilder {
    let (logs, tasks) = (Arc::clone(state), Arc::clone(state));
    let tasks = TaskOptions::new().on_status(move |task| {
        tasks.tell(&json!({"type": "task", "session": session, "task": shown(task)}));
    });
    builder.tasks(tasks).on_log(move |message| {
        let at = logs.page.clock.now();
        logs.tell(&json!({"type": "log", "session": session, "at": at, "message": shown(&message)}));
    })
}

/// Returns a value of the model as JSON, with members of every revision.
pub(crate) fn shown(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
