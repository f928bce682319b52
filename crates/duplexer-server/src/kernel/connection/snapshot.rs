//! Snapshots of connections of the handshake era, to resume them in another process or after a restart.

use std::sync::Arc;

use duplexer_types::json::Json;
use duplexer_types::lifecycle::InitializeParams;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::version::ProtocolVersion;
use serde::{Deserialize, Serialize};

use super::{Caller, ClientProfile, Connection, Negotiated};
use crate::features::subscriptions;
use crate::registry::RunningServer;
use duplexer_core::dispatch::Outbound;

/// The state of a connection, without its requests in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConnectionSnapshot {
    /// The negotiated revision.
    pub version: String,
    /// The params of `initialize`, if the client has declared its identity.
    pub initialize: Option<Json>,
    /// Whether the client has confirmed the handshake.
    pub initialized: bool,
    /// The minimum level of log messages that the client has set.
    pub log_level: LoggingLevel,
    /// The URIs that the client is subscribed to, sorted.
    pub subscriptions: Vec<String>,
}

impl ConnectionSnapshot {
    /// Creates the snapshot of a connection about which only the revision is known.
    pub fn new(version: String) -> Self {
        let (log_level, subscriptions) = (LoggingLevel::Debug, Vec::new());
        Self { version, initialize: None, initialized: false, log_level, subscriptions }
    }

    /// Takes a snapshot. Returns `None` before the handshake, and in the envelope era.
    pub fn of(connection: &Connection) -> Option<Self> {
        let agreed = connection.agreed()?;
        Some(Self {
            version: agreed.version.as_str().to_owned(),
            initialize: initialize_params(agreed),
            initialized: connection.is_initialized(),
            log_level: connection.lowest_level(),
            subscriptions: subscriptions::uris(connection),
        })
    }

    /// Creates a connection with the state of the snapshot. Returns `None` if its revision has no handshake.
    pub fn restore(
        &self,
        running: &RunningServer,
        outbound: Arc<dyn Outbound>,
        caller: Caller,
    ) -> Option<Arc<Connection>> {
        let version = self.version.parse().ok().filter(|it| ProtocolVersion::HANDSHAKE.contains(it))?;
        let params: Option<InitializeParams> =
            self.initialize.as_ref().and_then(|params| params.decode().ok());
        let client = params.map_or(ClientProfile::UNKNOWN, |params| {
            ClientProfile::new(Some(params.client_info), Some(params.capabilities))
        });
        let connection = Arc::new(Connection::handshake(version, outbound).with_caller(caller));
        connection.agree(Negotiated::new(version, client));
        connection.set_log_level(self.log_level);
        if self.initialized {
            connection.set_initialized();
            subscriptions::restore(running, &connection, &self.subscriptions);
        }
        Some(connection)
    }

    /// Applies what differs from an earlier snapshot to a connection, because another process has changed it.
    pub fn refresh(&self, earlier: &Self, running: &RunningServer, connection: &Arc<Connection>) {
        if self.initialized && !earlier.initialized {
            connection.set_initialized();
        }
        if self.log_level != earlier.log_level {
            connection.set_log_level(self.log_level);
        }
        let not_in = |other: &Self, uri: &&String| other.subscriptions.binary_search(uri).is_err();
        let added: Vec<_> = self.subscriptions.iter().filter(|uri| not_in(earlier, uri)).cloned().collect();
        let removed: Vec<_> = earlier.subscriptions.iter().filter(|uri| not_in(self, uri)).cloned().collect();
        if self.initialized && !(added.is_empty() && earlier.initialized) {
            subscriptions::restore(running, connection, &added);
        }
        subscriptions::remove(connection, &removed);
    }
}

fn initialize_params(agreed: &Negotiated) -> Option<Json> {
    let (info, capabilities) = (agreed.client.info.clone()?, agreed.client.capabilities.clone()?);
    // In full: what the client declared beyond its revision must not be lost either.
    Json::encode(&InitializeParams::new(agreed.version.as_str(), capabilities, info)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::connection::ClientCapability;
    use crate::registry::Server;
    use duplexer_core::dispatch::NoChannel;

    /// EXF-D1: a snapshot survives serialisation, and a restored connection has the same state: the client's extensions
    /// too.
    #[tokio::test]
    async fn a_connection_is_restored_with_its_state() {
        let running = Server::builder("x", "0").build().unwrap().start().await.unwrap();
        let first = Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::new(NoChannel));
        assert!(ConnectionSnapshot::of(&first).is_none());
        let params = r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{},"extensions":{"a.b/c":{"d":1}}},"clientInfo":{"name":"c","version":"1"}}"#;
        let params: InitializeParams = serde_json::from_str(params).unwrap();
        let client = ClientProfile::new(Some(params.client_info), Some(params.capabilities));
        first.agree(Negotiated::new("2025-06-18".parse().unwrap(), client));
        first.set_initialized();
        first.set_log_level(LoggingLevel::Warning);
        let snapshot = ConnectionSnapshot::of(&first).unwrap();
        let text = serde_json::to_string(&snapshot).unwrap();
        let read: ConnectionSnapshot = serde_json::from_str(&text).unwrap();
        assert_eq!(read, snapshot);
        let second = read.restore(&running, Arc::new(NoChannel), Caller::default()).unwrap();
        assert!(second.is_open() && second.is_initialized());
        assert_eq!(second.version().as_str(), "2025-06-18");
        assert!(second.client().supports(&ClientCapability::Roots));
        assert!(second.client().supports(&ClientCapability::Extension("a.b/c".into())));
        assert_eq!(ConnectionSnapshot::of(&second), Some(snapshot.clone()));
        let changed = ConnectionSnapshot { log_level: LoggingLevel::Error, ..snapshot.clone() };
        changed.refresh(&snapshot, &running, &second);
        assert_eq!(ConnectionSnapshot::of(&second), Some(changed));
        let foreign = ConnectionSnapshot { version: "2026-07-28".into(), ..snapshot };
        assert!(foreign.restore(&running, Arc::new(NoChannel), Caller::default()).is_none());
    }
}
