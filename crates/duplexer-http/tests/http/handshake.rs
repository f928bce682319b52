//! The handshake era without sessions.

use serde_json::json;

use duplexer_http::Handshake;

use crate::support::{Post, Site};

fn request(method: &str, params: &serde_json::Value) -> Post {
    Post::body(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
}

/// MGR-09, P-LEG-28: no handshake is needed, the revision is the header's or 2025-03-26, and there is no session.
#[tokio::test]
async fn requests_are_served_one_by_one() {
    let site = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    let reply = site.post(&request("tools/call", &json!({"name": "echo"}))).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(reply.json()["result"], json!({"content": [{"type": "text", "text": "echo"}]}));
    let reply = site.post(&request("ping", &json!({})).header("MCP-Protocol-Version", "2025-11-25")).await;
    assert_eq!((reply.status, reply.json()["result"].clone()), (200, json!({})));
}

/// MGR-09: `initialize` is served too.
#[tokio::test]
async fn a_handshake_is_answered() {
    let site = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let reply = site.post(&request("initialize", &params)).await;
    assert_eq!(reply.json()["result"]["protocolVersion"], "2025-06-18", "{}", reply.text());
    let done = Post::body(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let reply = site.post(&done).await;
    assert_eq!((reply.status, reply.text().as_str()), (202, ""));
}

/// In this era an error response has status 200.
#[tokio::test]
async fn errors_have_status_200_and_malformed_bodies_400() {
    let site = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    let reply = site.post(&request("unknown/method", &json!({}))).await;
    assert_eq!((reply.status, reply.code()), (200, -32601));
    for (body, code) in
        [("{", -32700), ("[]", -32600), (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600)]
    {
        let reply = site.post(&Post::body(body)).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{body}");
    }
    let accept = request("ping", &json!({})).without("accept").header("accept", "application/json");
    let reply = site.post(&accept).await;
    assert_eq!(reply.status, 406);
    assert!(reply.text().contains("Client must accept both application/json and text/event-stream"));
}

/// HTTPL-09: notifications of a handler come before its response.
#[tokio::test]
async fn notifications_make_a_stream() {
    let site = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    let reply =
        site.post(&request("tools/call", &json!({"name": "tell", "_meta": {"progressToken": 7}}))).await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let events = reply.events();
    assert_eq!(events.len(), 4);
    assert_eq!(events[0]["params"]["progressToken"], 7);
    assert_eq!(events[3]["id"], 1);
}
