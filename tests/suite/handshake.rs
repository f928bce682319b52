//! Handshakes, discovery, and the requests that are served before them.

use duplexer_core::dispatch::DispatchOptions;
use duplexer_server::{InitializeOverride, Server};
use duplexer_types::icon::Icon;
use duplexer_types::lifecycle::Implementation;
use serde_json::{Value, json};

use crate::matrix::{Link, Needs, over_every_link};
use crate::wire::{Wire, error_of, initialize};
use crate::{ENVELOPE, HANDSHAKE};

/// RUN-09, P-LEG-1, P-LEG-2: a revision of the handshake era is echoed; any other version becomes the newest of them.
#[tokio::test]
async fn a_handshake_echoes_the_revision_it_can_speak() {
    let newest = HANDSHAKE;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        (newest, newest),
        (ENVELOPE, newest),
        ("1999-01-01", newest),
    ] {
        for link in Link::of(HANDSHAKE, Needs::Answers) {
            let mut wire = Wire::fixture(link).await;
            let result = wire.result("initialize", initialize(asked, json!({}))).await;
            assert_eq!(result["protocolVersion"], agreed, "{asked}");
            assert_eq!(result["serverInfo"], json!({ "name": "fixture", "version": "1.2.3" }));
            assert_eq!(result["instructions"], "Call the tools.");
        }
    }
}

fn fully_described() -> Server {
    Server::builder("s", "1")
        .title("S")
        .description("d")
        .website_url("https://example.com")
        .icons([Icon::new("https://example.com/i.png")])
        .build()
        .unwrap()
}

/// RUN-10, SRV-01: the server's description, limited to the fields that the revision defines.
#[tokio::test]
async fn a_server_describes_itself_in_the_fields_of_its_client_s_revision() {
    let whole = json!({
        "name": "s", "version": "1", "title": "S", "description": "d", "websiteUrl": "https://example.com",
        "icons": [{ "src": "https://example.com/i.png" }],
    });
    for (revision, info) in [
        (HANDSHAKE, whole.clone()),
        ("2025-06-18", json!({ "name": "s", "version": "1", "title": "S" })),
        ("2025-03-26", json!({ "name": "s", "version": "1" })),
    ] {
        for link in Link::in_process(revision, Needs::Answers) {
            let mut wire = Wire::connect(link, fully_described()).await;
            let result = wire.result("initialize", initialize(revision, json!({}))).await;
            let expected = json!({ "protocolVersion": revision, "capabilities": {}, "serverInfo": info });
            assert_eq!(result, expected);
        }
    }
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wire = Wire::connect(link, fully_described()).await;
        wire.open(ENVELOPE).await;
        let result = wire.result("server/discover", json!({})).await;
        assert_eq!(result["_meta"], json!({ "io.modelcontextprotocol/serverInfo": whole }));
    }
}

/// SRV-07, RUN-16, P-DISC-1, P-DISC-2, P-VER-5, P-EXT-4: capabilities are computed on request; the identity is in
/// `_meta` only; no extension without configuration.
#[tokio::test]
async fn discovery_returns_what_a_handshake_would() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let result = wire.result("server/discover", json!({})).await;
        let quiet = json!({ "listChanged": false });
        let expected = json!({
            "supportedVersions": [ENVELOPE],
            "capabilities": { "tools": quiet, "prompts": quiet, "logging": {} },
            "instructions": "Call the tools.",
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "fixture", "version": "1.2.3" } },
        });
        assert_eq!(result, expected);
    })
    .await;
}

/// SRV-07: the author's own handler replaces the derived description.
#[tokio::test]
async fn discovery_can_be_replaced() {
    use duplexer_types::lifecycle::{DiscoverResult, EmptyParams};
    let server =
        Server::builder("s", "0").on(duplexer_types::methods::ServerDiscover, |_: EmptyParams| async {
            let capabilities = duplexer_types::capabilities::ServerCapabilities::new();
            Ok::<_, duplexer_core::error::McpError>(
                DiscoverResult::new(["x".to_owned()], capabilities).ttl_ms(7_u64),
            )
        });
    let server = server.build().unwrap();
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let mut wire = Wire::connect(link, server.clone()).await;
        wire.open(ENVELOPE).await;
        let result = wire.result("server/discover", json!({})).await;
        assert_eq!((&result["supportedVersions"], &result["ttlMs"]), (&json!(["x"]), &json!(7)));
    }
}

/// RUN-07, CONN-01, SRV-02, P-LEG-6: before the handshake only `ping` is served.
#[tokio::test]
async fn before_the_handshake_only_ping_is_served() {
    for link in Link::of(HANDSHAKE, Needs::Connection) {
        let mut wire = Wire::fixture(link).await;
        assert_eq!(wire.result("ping", json!({})).await, json!({}));
        let text = "params._meta must be an object carrying the required \
                    'io.modelcontextprotocol/protocolVersion' and 'io.modelcontextprotocol/clientCapabilities' \
                    envelope keys; or begin with `initialize`";
        let refused = (-32602, text.to_owned(), Value::Null);
        assert_eq!(wire.error("tools/list", json!({})).await, refused);
        assert_eq!(wire.error("test/echo", json!({})).await, refused);
        wire.open(HANDSHAKE).await;
        assert_eq!(wire.result("tools/list", json!({})).await["tools"][0]["name"], "echo");
    }
}

/// CONN-02: a client that sends `initialized` without a handshake is served.
#[tokio::test]
async fn a_bare_initialized_opens_the_connection() {
    for link in Link::of(HANDSHAKE, Needs::Connection) {
        let mut wire = Wire::fixture(link).await;
        wire.notify("notifications/initialized", json!({})).await;
        assert_eq!(wire.result("tools/list", json!({})).await["tools"][0]["name"], "echo");
        let facts: Value = serde_json::from_str(&wire.tool_text("facts", json!({})).await).unwrap();
        assert_eq!((&facts["version"], &facts["client"]), (&json!(HANDSHAKE), &Value::Null));
    }
}

/// DISP-21: a pipelined request finds the connection open.
#[tokio::test]
async fn a_request_right_behind_the_handshake_is_served() {
    for link in Link::of(HANDSHAKE, Needs::Connection) {
        let mut wire = Wire::fixture(link).await;
        let opening = wire.request("initialize", initialize(HANDSHAKE, json!({}))).await;
        let pipelined = wire.request("tools/list", json!({})).await;
        assert!(wire.answer_to(pipelined).await.get("result").is_some());
        assert!(wire.answer_to(opening).await.get("result").is_some());
    }
}

/// RUN-11: the facts of a connection are written once; a second handshake changes nothing.
#[tokio::test]
async fn a_second_handshake_is_refused_and_changes_nothing() {
    for link in Link::of(HANDSHAKE, Needs::Connection) {
        let mut wire = Wire::fixture(link).await;
        wire.open("2025-03-26").await;
        let (code, ..) = wire.error("initialize", initialize(HANDSHAKE, json!({}))).await;
        assert_eq!(code, -32600);
        let facts: Value = serde_json::from_str(&wire.tool_text("facts", json!({})).await).unwrap();
        assert_eq!((&facts["version"], &facts["client"]), (&json!("2025-03-26"), &json!("wire")));
    }
}

/// RUN-05: an incomplete handshake is rejected and has no effect.
#[tokio::test]
async fn a_malformed_handshake_leaves_the_connection_closed() {
    let mut wire = Wire::fixture(Link::Memory).await;
    for params in [json!({}), json!({ "protocolVersion": 5, "capabilities": {}, "clientInfo": {} })] {
        assert_eq!(wire.error("initialize", params).await.0, -32602);
    }
    assert_eq!(wire.error("tools/list", json!({})).await.0, -32602);
    wire.open(HANDSHAKE).await;
}

/// A run can override the description of its server.
#[tokio::test]
async fn a_run_can_override_the_description_in_its_handshake() {
    let running = duplexer_tests::server().start().await.unwrap();
    let mut instead = InitializeOverride::default();
    instead.server_info = Some(Implementation::new("other", "9"));
    instead.instructions = Some("Do not.".to_owned());
    instead.capabilities = Some(duplexer_types::capabilities::ServerCapabilities::new());
    let other = running.with_initialize(instead);
    let mut wire = Wire::connect_to(Link::Memory, &other, DispatchOptions::default());
    let result = wire.result("initialize", initialize(HANDSHAKE, json!({}))).await;
    assert_eq!(result["serverInfo"], json!({ "name": "other", "version": "9" }));
    assert_eq!((&result["capabilities"], &result["instructions"]), (&json!({}), &json!("Do not.")));
}

/// P-RPC-9, P-RPC-10, P-RPC-11, STDIO-02: arrays are frames in the one revision that has them.
#[tokio::test]
async fn batches_are_accepted_where_they_were_negotiated() {
    for link in Link::of("2025-03-26", Needs::Answers) {
        let mut wire = Wire::fixture(link).await;
        wire.open("2025-03-26").await;
        let list = |id: i64| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" });
        wire.send(json!([list(21), list(22), { "jsonrpc": "2.0", "method": "notifications/x" }])).await;
        for id in [22, 21] {
            assert!(wire.answer_to(id).await.get("result").is_some());
        }
        let opening = json!({ "jsonrpc": "2.0", "id": 23, "method": "initialize",
            "params": initialize(HANDSHAKE, json!({})) });
        wire.send(json!([opening])).await;
        assert_eq!(error_of(&wire.answer_to(23).await).0, -32600);
        for revision in ["2024-11-05", "2025-06-18", HANDSHAKE, ENVELOPE] {
            let mut wire = Wire::fixture(link).await;
            wire.open(revision).await;
            wire.send(json!([list(21)])).await;
            let refused = wire.next().await;
            assert_eq!((error_of(&refused).0, refused.get("id")), (-32600, None), "{revision}");
        }
    }
}
