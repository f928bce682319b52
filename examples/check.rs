//! Helpers for self-checking examples: a client of each era, and a comparison that ends the example with an error.

use std::fmt::Debug;

use duplexer::client::{Client, Negotiation};
use duplexer::testing::TestClient;
use duplexer::types::tool::CallToolResult;
use duplexer::{BoxError, Server};

/// Connects a client of the handshake era and one of the envelope era.
pub async fn clients(server: &Server) -> Result<[TestClient; 2], BoxError> {
    let builder = || Client::builder("story", "1");
    let handshake = TestClient::connect(server, builder().negotiation(Negotiation::Handshake)).await?;
    let envelope = TestClient::connect(server, builder()).await?;
    Ok([handshake, envelope])
}

/// Calls a tool.
pub async fn call(
    client: &TestClient,
    tool: &str,
    arguments: serde_json::Value,
) -> Result<CallToolResult, BoxError> {
    Ok(client.call_tool(tool, arguments).await?)
}

/// Returns the first text of a result.
pub fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|content| content.as_text()).unwrap_or_default()
}

/// Returns an error if the two values differ.
#[expect(clippy::needless_pass_by_value, reason = "examples read better without references")]
pub fn same<T: Debug + PartialEq<U>, U: Debug>(found: T, expected: U) -> Result<(), BoxError> {
    if found == expected {
        return Ok(());
    }
    Err(format!("expected {expected:?}, found {found:?}").into())
}
