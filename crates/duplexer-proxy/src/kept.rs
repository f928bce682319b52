//! What a client of the handshake era has stored in its session, to store it again in the next one.

use std::collections::BTreeSet;
use std::sync::Mutex;

use duplexer_core::dispatch::{Message, OutboundRequest, lock};
use duplexer_types::json::Json;
use duplexer_types::logging::{LoggingLevel, SetLevelParams};
use duplexer_types::methods::{Direction, Method};
use duplexer_types::resource::SubscribeParams;
use duplexer_types::version::ProtocolVersion;

/// Maximum number of subscriptions that are restored.
const MAX_SUBSCRIPTIONS: usize = 1024;

/// Log level and subscriptions of a session.
#[derive(Default)]
pub(crate) struct Kept(Mutex<Stored>);

#[derive(Default)]
struct Stored {
    level: Option<LoggingLevel>,
    resources: BTreeSet<String>,
}

impl Kept {
    /// Remembers what a successful request has stored.
    pub(crate) fn remember(&self, message: &Message) {
        let mut stored = lock(&self.0);
        match message.known() {
            Some(Method::LoggingSetLevel) => {
                stored.level = message.decode::<SetLevelParams>().ok().map(|params| params.level);
            }
            Some(Method::ResourcesSubscribe) => {
                if let Ok(params) = message.decode::<SubscribeParams>()
                    && stored.resources.len() < MAX_SUBSCRIPTIONS
                {
                    stored.resources.insert(params.uri);
                }
            }
            Some(Method::ResourcesUnsubscribe) => {
                if let Ok(params) = message.decode::<SubscribeParams>() {
                    stored.resources.remove(&params.uri);
                }
            }
            _ => {}
        }
    }

    /// Returns the level of log messages that the client has set.
    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        lock(&self.0).level
    }

    /// Returns the requests that store it in a session of this revision. An envelope session stores nothing.
    pub(crate) fn requests(&self, version: ProtocolVersion) -> Vec<OutboundRequest> {
        let stored = lock(&self.0);
        let level = stored.level.map(|level| (Method::LoggingSetLevel, member("level", level.as_str())));
        let resources = stored.resources.iter().map(|uri| (Method::ResourcesSubscribe, member("uri", uri)));
        let all = level.into_iter().chain(resources);
        all.filter(|(method, _)| method.exists(Direction::ClientToServer, version))
            .map(|(method, params)| OutboundRequest::new(method.name()).params(params))
            .collect()
    }
}

fn member(name: &str, value: &str) -> Json {
    Json::from(serde_json::json!({ name: value }))
}
