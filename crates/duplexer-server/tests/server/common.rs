//! A client of each era for every test.

use std::pin::Pin;

use duplexer::client::{Client, ClientBuilder, ClientError, Negotiation};
use duplexer::testing::TestClient;
use duplexer::{CallError, Server};
use duplexer_types::error::ErrorObject;
use duplexer_types::json::Json;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use duplexer_types::version::Era;
use serde_json::Value;

pub(crate) fn options(era: Era) -> ClientBuilder {
    let options = Client::builder("test", "1");
    match era {
        Era::Handshake => options.negotiation(Negotiation::Handshake),
        Era::Envelope => options,
    }
}

/// Runs the same test with a client of each era.
pub(crate) async fn both(server: &Server, test: impl AsyncFn(&TestClient, Era)) {
    for era in [Era::Handshake, Era::Envelope] {
        let client = TestClient::connect(server, options(era)).await.unwrap();
        assert_eq!(client.era(), era);
        test(&client, era).await;
        client.close().await;
    }
}

pub(crate) async fn call(client: &TestClient, name: &str, arguments: Value) -> CallToolResult {
    try_call(client, name, arguments).await.unwrap()
}

pub(crate) fn try_call<'a>(
    client: &'a TestClient,
    name: &str,
    arguments: Value,
) -> Pin<Box<dyn Future<Output = Result<CallToolResult, ClientError>> + 'a>> {
    let params = CallToolParams::new(name).arguments(Json::from(arguments));
    Box::pin(async move { client.call_tool_with(params).await })
}

/// The error object of a refused request.
pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorObject {
    match result.expect_err("a refusal") {
        ClientError::Call(CallError::Rpc(error)) => error,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|content| content.as_text()).unwrap_or_default()
}
