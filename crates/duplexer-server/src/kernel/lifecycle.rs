//! The opening of a connection: `initialize`, `server/discover` and `ping`, as ordinary entries of the registry. The
//! kernel stores the outcome of a handshake after the whole middleware chain has succeeded.

use std::sync::Arc;

use duplexer_types::error::ErrorCode;
use duplexer_types::lifecycle::{DiscoverResult, InitializeParams, InitializeResult};
use duplexer_types::methods::Method;
use duplexer_types::version::{Era, ProtocolVersion};

use crate::features::{subscriptions, tasks};
use crate::kernel::connection::{ClientProfile, Connection, Negotiated};
use crate::kernel::context::{Context, StateMap};
use crate::kernel::envelope;
use crate::kernel::handler::{Entry, RawEntry};
use crate::kernel::outcome::Outcome;
use crate::registry::Handlers;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Returns whether the kernel handles a method itself.
pub(crate) fn is_reserved(method: Method) -> bool {
    method == Method::Initialize
}

/// Registers the kernel's own entries. All but the handshake can be replaced.
pub(crate) fn register(handlers: &mut Handlers) {
    handlers.set_default(Method::Initialize, immediate(initialize));
    handlers.set_default(Method::ServerDiscover, immediate(discover));
    handlers.set_default(Method::Ping, immediate(|_| Ok(Outcome::empty())));
}

/// Returns the error of a request that arrives before its connection is open. Its readers are people who type a request into a terminal.
pub(crate) fn not_open(connection: &Connection) -> McpError {
    let text = if connection.agreed().is_some() {
        format!("The session is not open yet: send `{}` first", Method::Initialized.name())
    } else {
        format!("{}; or begin with `{}`", envelope::missing_meta(), Method::Initialize.name())
    };
    McpError::new(ErrorCode::INVALID_PARAMS, text)
}

/// Marks the connection as initialized, if the message confirms the handshake.
pub(crate) fn confirm(message: &Message, connection: &Connection) {
    if message.known() == Some(Method::Initialized) && connection.era() == Era::Handshake {
        connection.set_initialized();
    }
}

/// Handles the effect of a notification on the connection.
pub(crate) fn observe(method: Method, cx: &Context<StateMap>) {
    if method == Method::Initialized {
        subscriptions::opened(cx);
    }
}

/// Returns the revision that a handshake settles on: the client's, if it has a handshake, otherwise the newest that has
/// one.
pub fn negotiate(requested: &str) -> ProtocolVersion {
    match requested.parse() {
        Ok(version) if ProtocolVersion::HANDSHAKE.contains(&version) => version,
        _ => ProtocolVersion::LATEST_HANDSHAKE,
    }
}

fn initialize(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let params: InitializeParams = cx.params()?;
    if cx.connection().agreed().is_some() {
        return Err(McpError::new(ErrorCode::INVALID_REQUEST, "the connection is initialized already"));
    }
    let version = negotiate(&params.protocol_version);
    let running = cx.server();
    let instead = running.initialize_override();
    let server = running.server();
    let info = instead.server_info.clone().unwrap_or_else(|| server.server_info().clone());
    let mut capabilities = running.handshake_capabilities(version);
    if let Some(offered) = capabilities.tasks.as_mut().filter(|_| !tasks::can_list(cx)) {
        offered.remove("list");
    }
    let mut result = InitializeResult::new(version.as_str(), capabilities, info);
    result.instructions = instead.instructions.clone().or_else(|| server.instructions().map(Into::into));
    Ok(Outcome::of(result))
}

/// Returns the outcome of a finished handshake: the revision that the result names, even if middleware made it, and the
/// facts that the client declared in its params.
pub(crate) fn agreement(method: Option<Method>, message: &Message, outcome: &Outcome) -> Option<Negotiated> {
    if method != Some(Method::Initialize) {
        return None;
    }
    let params = message.decode::<InitializeParams>().ok();
    let client = params.map_or(ClientProfile::UNKNOWN, |params| {
        ClientProfile::new(Some(params.client_info), Some(params.capabilities))
    });
    Some(Negotiated::new(negotiate(&result_version(outcome)), client))
}

fn result_version(outcome: &Outcome) -> String {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(rename = "protocolVersion")]
        version: String,
    }
    match outcome.downcast_ref::<InitializeResult>() {
        Some(result) => result.protocol_version.clone(),
        None => {
            serde_json::from_str(outcome.text()).map_or_else(|_| String::new(), |read: Version| read.version)
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one shape for all of the kernel's own entries")]
fn discover(cx: &Context<StateMap>) -> Result<Outcome, McpError> {
    let server = cx.server().server();
    let versions: Vec<String> = ProtocolVersion::envelope_names().into_iter().map(Into::into).collect();
    let mut result = DiscoverResult::new(versions, server.capabilities(cx.protocol_version()));
    result.instructions = server.instructions().map(Into::into);
    Ok(Outcome::of(result))
}

/// Returns an entry that awaits nothing.
fn immediate(answer: fn(&Context<StateMap>) -> Result<Outcome, McpError>) -> Arc<dyn Entry> {
    Arc::new(RawEntry(move |cx: Context<StateMap>| -> BoxFuture<'static, _> {
        Box::pin(std::future::ready(answer(&cx)))
    }))
}

#[cfg(test)]
mod tests {
    use duplexer_core::dispatch::NoChannel;

    use super::*;
    use crate::kernel::runner::ServerRunner;
    use crate::kernel::testing;

    /// RUN-07: `notifications/initialized` confirms a handshake, and nothing else does.
    #[test]
    fn only_the_client_s_confirmation_completes_a_handshake() {
        let initialized = |method: &str, version| {
            let connection = Connection::handshake(version, Arc::new(NoChannel));
            confirm(&Message::new(method.to_owned(), None), &connection);
            connection.is_initialized()
        };
        let handshake = ProtocolVersion::LATEST_HANDSHAKE;
        assert!(initialized("notifications/initialized", handshake));
        assert!(!initialized("notifications/cancelled", handshake));
        assert!(!initialized("notifications/other", handshake));
        assert!(!initialized("notifications/initialized", ProtocolVersion::LATEST_ENVELOPE));
        assert!(!initialized("notifications/cancelled", ProtocolVersion::LATEST_ENVELOPE));
    }

    /// RUN-07: the runner applies the confirmation itself, so a transport without order of arrival needs no driver.
    #[tokio::test]
    async fn a_notification_opens_its_connection() {
        let running = crate::registry::Server::builder("s", "0").build().unwrap().start().await.unwrap();
        let connection =
            Arc::new(Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::new(NoChannel)));
        let call = || testing::call(&running, &connection, Method::Ping, "{}");
        call().await.unwrap();
        assert!(!connection.is_open());
        let runner = ServerRunner::new(running.clone(), Arc::clone(&connection));
        runner.notification(testing::context(None), Message::new("notifications/initialized", None)).await;
        assert!(connection.is_initialized() && connection.is_open());
    }

    /// RUN-09, P-LEG-1, P-LEG-3: a handshake never settles on a revision without one.
    #[test]
    fn a_handshake_settles_on_a_handshake_revision() {
        for version in ProtocolVersion::HANDSHAKE {
            assert_eq!(negotiate(version.as_str()), *version);
        }
        for other in ["2026-07-28", "1999-01-01", "", "v999.0.0"] {
            assert_eq!(negotiate(other), ProtocolVersion::LATEST_HANDSHAKE, "{other}");
        }
    }
}
