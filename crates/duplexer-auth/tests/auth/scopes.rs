//! Scopes of single tools and methods: step-up.

use std::time::Duration;

use duplexer_auth::{Auth, ScopeGuardBuilder, StaticToken};
use duplexer_core::transport::{TransportContext, lines};
use duplexer_http::{Handshake, MemoryEventStore, StreamableHttp};
use duplexer_server::{Server, serve};
use duplexer_types::methods::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Site, Time, header, json_of};

fn protected(base: &str, time: &Time) -> Auth {
    let here = format!("{base}/mcp");
    let soon = time.now() + Duration::from_millis(1);
    let tokens = [
        StaticToken::new("reader").client_id("ada").audience(&here).scopes(["read"]),
        StaticToken::new("writer").client_id("ada").audience(&here).scopes(["read", "write", "files"]),
        StaticToken::new("stranger").client_id("bob").audience(&here).scopes(["read"]),
        StaticToken::new("short").client_id("ada").audience(&here).scopes(["read"]).expires_at(soon),
    ];
    Auth::static_tokens(tokens).audience(here).require_scopes(["read"]).clock(time.clock()).build().unwrap()
}

fn guarded(guard: ScopeGuardBuilder) -> ScopeGuardBuilder {
    guard.tool("delete", ["write", "files"]).method(Method::ResourcesList, ["files"])
}

async fn site(time: &Time) -> Site {
    Site::guarded(|base| protected(base, time), guarded).await
}

/// P-AUS-7: in both eras, before any stream, with all scopes of the call in one challenge.
#[tokio::test]
async fn a_tool_can_require_further_scopes() {
    let site = site(&Time::new()).await;
    for call in [Site::tool, Site::old_tool] {
        let fine = call(&site, "list", Some("reader")).send().await.unwrap();
        assert_eq!(json_of(fine).await["result"]["content"][0]["text"], "list");
        let response = call(&site, "delete", Some("reader")).send().await.unwrap();
        assert_eq!(response.status(), 403);
        assert_eq!(header(&response, "content-type"), "application/json");
        assert_eq!(
            header(&response, "www-authenticate"),
            "Bearer error=\"insufficient_scope\", error_description=\"Required scope: write\", \
             scope=\"read write files\""
        );
        let body = json_of(response).await;
        assert_eq!((&body["id"], &body["error"]["code"]), (&json!(7), &json!(-32600)));
        let fine = call(&site, "delete", Some("writer")).send().await.unwrap();
        assert_eq!(json_of(fine).await["result"]["content"][0]["text"], "delete");
    }
}

/// MGR-07, P-AUS-13, P-LEG-25: in a session each request is authorized by its own token,
/// also with an event store; another principal finds no session.
#[tokio::test]
async fn a_session_is_stepped_up_and_belongs_to_its_principal() {
    let passing = |server: Server| StreamableHttp::builder(server).handshake(Handshake::Sessions);
    let kept = |server: Server| StreamableHttp::builder(server).event_store(MemoryEventStore::new());
    for build in [passing as fn(Server) -> duplexer_http::StreamableHttpBuilder, kept] {
        let time = Time::new();
        let site = Site::built(|base| protected(base, &time), guarded, build).await;
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        });
        let opened = site.message("initialize", &hello, Some("reader")).send().await.unwrap();
        assert_eq!(opened.status(), 200);
        let session = header(&opened, "mcp-session-id").to_owned();
        assert!(!session.is_empty());
        let call = async |name: &str, token: &str| {
            let request = site.old_tool(name, Some(token)).header("mcp-session-id", &session);
            request.send().await.unwrap()
        };
        let who = call("whoami", "reader").await.text().await.unwrap();
        assert!(who.contains(r#"\"scopes\":[\"read\"]"#), "{who}");
        let refused = call("delete", "reader").await;
        assert_eq!((refused.status().as_u16(), header(&refused, "content-type")), (403, "application/json"));
        assert!(header(&refused, "www-authenticate").contains("scope=\"read write files\""));
        assert_eq!(json_of(refused).await["id"], 7);
        assert_eq!(call("delete", "writer").await.status(), 200, "the same principal with a better token");
        let who = call("whoami", "writer").await.text().await.unwrap();
        assert!(who.contains("files"), "{who}");
        assert_eq!(call("whoami", "stranger").await.status(), 404);
        assert_eq!(call("whoami", "unknown").await.status(), 401);
    }
}

/// A rule for a method applies with and without a handler.
#[tokio::test]
async fn a_method_can_require_further_scopes() {
    let site = site(&Time::new()).await;
    let list = |token| {
        site.message("resources/list", &json!({}), Some(token)).header("MCP-Protocol-Version", "2025-11-25")
    };
    assert_eq!(list("reader").send().await.unwrap().status(), 403);
    assert_eq!(json_of(list("writer").send().await.unwrap()).await["error"]["code"], -32601);
}

/// The guard and the handler read the same name, or neither does.
#[tokio::test]
async fn a_name_given_twice_does_not_pass_the_guard() {
    let site = site(&Time::new()).await;
    for params in [r#"{"name":"list","name":"delete"}"#, r#"{"name":"list","\u006eame":"delete"}"#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        let request = site.message("x", &json!({}), Some("reader")).body(body);
        let answer = json_of(request.send().await.unwrap()).await;
        assert!(answer["error"]["code"].is_number(), "{answer}");
    }
}

/// `build` rejects scopes that are invalid in a challenge.
#[test]
fn scopes_of_a_guard_are_checked() {
    let auth = Auth::static_tokens([]).audience("https://x.example").build().unwrap();
    assert!(auth.guard().tool("x", ["a\"b"]).build().is_err());
    assert!(auth.guard().method(Method::ToolsCall, ["offline_access"]).build().is_err());
}

/// P-AUS-15: a long-lived request ends when its token expires, one millisecond after the frozen clock.
#[tokio::test]
async fn a_subscription_ends_with_its_token() {
    let site = site(&Time::new()).await;
    let params = json!({"notifications": {"toolsListChanged": true}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let request = site
        .message("subscriptions/listen", &params, Some("short"))
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("Mcp-Method", "subscriptions/listen");
    let stream = request.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    assert!(stream.text().await.unwrap().contains("The access token has expired"));
}

/// P-AUS-16: the process that started the server needs no token. Any other peer without one is refused, whatever its
/// transport calls itself.
#[tokio::test]
async fn only_a_local_process_needs_no_token() {
    let auth = protected("http://localhost:1", &Time::new());
    let running = crate::support::server(&auth, guarded).start().await.unwrap();
    let contexts = [
        (TransportContext::local_process("pipe"), false),
        (TransportContext::stream("stdio"), true),
        (TransportContext::stream("somewhere"), true),
    ];
    for (context, refused) in contexts {
        let kind = context.kind;
        let (near, far) = tokio::io::duplex(4096);
        let (reader, writer) = tokio::io::split(far);
        let transport = lines::over(reader, writer, context, 4096);
        let talk = async {
            let (mut from, mut to) = tokio::io::split(near);
            let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","_meta":{
                "io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
            to.write_all(format!("{}\n", call.replace('\n', "")).as_bytes()).await.unwrap();
            to.shutdown().await.unwrap();
            let mut answer = String::new();
            from.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let (served, answer) = tokio::join!(serve(&running, transport), talk);
        served.unwrap();
        assert_eq!(answer.contains("Authentication required"), refused, "{kind}: {answer}");
        assert_eq!(answer.contains("\"delete\""), !refused, "{kind}: {answer}");
    }
}
