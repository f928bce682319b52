//! The included middleware on a server with tools, called without a transport.

mod limits;
mod logs;
mod results;

use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_types::methods::Method;
use duplexer_types::tool::CallToolResult;

use crate::kernel::connection::{Caller, ClientProfile, Connection};
use crate::kernel::principal::Principal;
use crate::kernel::testing;
use crate::{Outcome, RunningServer, Server, ServerBuilder};

fn builder() -> ServerBuilder<()> {
    Server::builder("tested", "0")
}

async fn start(builder: ServerBuilder<()>) -> RunningServer {
    builder.build().unwrap().start().await.unwrap()
}

/// Returns a connection of a principal with these scopes; of no principal for an empty name.
fn connection(client: &str, scopes: &[&str]) -> Arc<Connection> {
    let version = duplexer_types::version::ProtocolVersion::LATEST_HANDSHAKE;
    let connection = Connection::ready(version, ClientProfile::UNKNOWN);
    let mut principal = Principal::new(client);
    principal.scopes = scopes.iter().map(|scope| (*scope).to_owned()).collect();
    let principal = (!client.is_empty()).then(|| Arc::new(principal));
    let caller = Caller { principal, ..Caller::default() };
    Arc::new(connection.with_caller(caller))
}

async fn call(running: &RunningServer, client: &str, tool: &str) -> Result<Outcome, McpError> {
    call_with(running, client, tool, "{}").await
}

async fn call_with(
    running: &RunningServer,
    client: &str,
    tool: &str,
    arguments: &str,
) -> Result<Outcome, McpError> {
    let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
    testing::call(running, &connection(client, &[]), Method::ToolsCall, &params).await
}

fn text(outcome: &Outcome) -> &str {
    outcome.downcast_ref::<CallToolResult>().unwrap().content[0].as_text().unwrap()
}
