//! Client and server in one process, in both eras, with and without frames.

mod subscriptions;

use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_types::elicitation::{ElicitParams, ElicitResult, FormSchema};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult, ToolDefinition};
use duplexer_types::version::Era;

use super::*;
use crate::client::{Client, ClientBuilder, ClientError, Negotiation};
use crate::error::McpError;
use crate::server::Context;

fn server() -> Server {
    Server::builder("demo", "1.2.3")
        .state(String::from("state"))
        .on(methods::ToolsList, async |_: PaginatedParams| {
            Ok::<_, McpError>(ListToolsResult::new(vec![ToolDefinition::new("greet", Json::object())]))
        })
        .on(methods::ToolsCall, async |cx: Context<String>, params: CallToolParams| {
            match params.name.as_str() {
                "greet" => {
                    cx.progress(0.5).total(1.0).message("half").await;
                    Ok(CallToolResult::text(format!("hello from {}", cx.state())))
                }
                "ask" => {
                    let question = ElicitParams::form("Sure?", FormSchema::new(JsonObject::new()));
                    let answer = cx.elicit_request(&question).await?;
                    Ok(CallToolResult::text(answer.action.as_str()))
                }
                "panic" => panic!("secret"),
                _ => Err(McpError::internal("secret")),
            }
        })
        .build()
        .unwrap()
}

fn builder(negotiation: Negotiation) -> ClientBuilder {
    Client::builder("c", "1").negotiation(negotiation).on_elicitation(async |_| Ok(ElicitResult::decline()))
}

async fn check_greeting(client: &Client) {
    let progress = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&progress);
    let result = client
        .call_tool("greet", ())
        .on_progress(move |_| {
            count.fetch_add(1, Ordering::SeqCst);
        })
        .await
        .unwrap();
    assert_eq!(result.content[0].as_text(), Some("hello from state"));
    assert_eq!(progress.load(Ordering::SeqCst), 1);
    assert_eq!(client.all_tools().await.unwrap()[0].name, "greet");
    for failing in ["panic", "error"] {
        let error = client.call_tool(failing, ()).await.unwrap_err();
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}

#[tokio::test]
async fn the_same_server_serves_clients_of_both_eras() {
    for (negotiation, era) in [(Negotiation::Auto, Era::Envelope), (Negotiation::Handshake, Era::Handshake)] {
        let client = TestClient::connect(&server(), builder(negotiation)).await.unwrap();
        assert_eq!(client.era(), era);
        check_greeting(&client).await;
        assert_eq!(client.server_info().unwrap().version, "1.2.3");
        client.close().await;
    }
}

/// CLT-13: in-process, without frames, the session is negotiated and served in the same way.
#[tokio::test]
async fn a_client_without_frames_sees_the_same_server() {
    for (negotiation, era) in [(Negotiation::Auto, Era::Envelope), (Negotiation::Handshake, Era::Handshake)] {
        let running = server().start().await.unwrap();
        let client = in_process(&running, builder(negotiation)).await.unwrap();
        assert_eq!(client.era(), era);
        check_greeting(&client).await;
        client.close().await.unwrap();
        running.shutdown().await;
    }
}

/// ERA-07, P-RPC-17: handlers send requests to the client in the handshake era, and never in the envelope era.
#[tokio::test]
async fn a_handler_sends_requests_where_the_era_has_a_back_channel() {
    let client = TestClient::connect(&server(), builder(Negotiation::Handshake)).await.unwrap();
    assert_eq!(client.call_tool("ask", ()).await.unwrap().content[0].as_text(), Some("decline"));
    let client = TestClient::connect(&server(), builder(Negotiation::Auto)).await.unwrap();
    let error = client.call_tool("ask", ()).await.unwrap_err();
    let ClientError::Call(crate::error::CallError::Rpc(error)) = error else { panic!("{error}") };
    assert_eq!(
        error.message,
        "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests."
    );
    let requested =
        client.transcript().lines().iter().any(|line| line.starts_with("<--") && line.contains("\"method\""));
    assert!(!requested, "{}", client.transcript());
}

#[tokio::test]
async fn a_transcript_shows_the_frames_in_order() {
    let client = TestClient::new(&server()).await.unwrap();
    client.all_tools().await.unwrap();
    let lines = client.transcript().lines();
    assert!(
        lines[0].starts_with(r#"--> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"#),
        "{lines:?}"
    );
    assert!(lines[1].starts_with(r#"<-- {"jsonrpc":"2.0","id":1,"result":{"#), "{lines:?}");
    assert!(lines[2].contains("tools/list") && lines[3].contains("greet"), "{lines:?}");
}

/// A lifespan runs once, before the first connection, and ends with the server.
#[tokio::test]
async fn a_test_client_starts_and_ends_the_servers_lifespan() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let server = Server::builder("life", "0")
        .lifespan(async || Ok::<_, crate::error::BoxError>(7_u32))
        .on_shutdown(move |state: Arc<u32>| {
            let count = Arc::clone(&count);
            async move {
                count.fetch_add(*state as usize, Ordering::SeqCst);
            }
        })
        .build()
        .unwrap();
    TestClient::new(&server).await.unwrap().close().await;
    assert_eq!(ended.load(Ordering::SeqCst), 7);
    let failing =
        Server::builder("life", "0").lifespan(async || Err::<u32, _>("no database")).build().unwrap();
    assert!(matches!(TestClient::new(&failing).await, Err(TestError::Start(_))));
}
