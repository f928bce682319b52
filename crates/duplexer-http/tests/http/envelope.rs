//! The envelope era, request by request.

use duplexer_http::{Handshake, Responses};
use serde_json::json;

use crate::support::{Post, Site, meta};

/// HTTPM-11, HTTPM-13, P-HTTP-1, P-HTTP-4, P-HTTP-12: the response of a handler without notifications is one JSON body.
#[tokio::test]
async fn a_plain_call_is_answered_with_one_json_body() {
    let site = Site::new().await;
    let reply = site.post(&Post::tool("echo").header("Mcp-Session-Id", "stale")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.header("mcp-session-id"), None);
    let answer = reply.json();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["content"], json!([{"type": "text", "text": "echo"}]));
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(!reply.text().contains(": ") && !reply.text().contains("null"), "{}", reply.text());
}

/// HTTPM-01, HTTPM-03, P-HTTP-11: anything but POST.
#[tokio::test]
async fn other_methods_are_not_allowed() {
    let site = Site::new().await;
    for method in ["GET", "DELETE", "PUT", "OPTIONS", "PATCH"] {
        let reply = site.post(&Post::tool("echo").method(method)).await;
        assert_eq!(
            (reply.status, reply.header("allow"), reply.text().as_str()),
            (405, Some("POST"), ""),
            "{method}"
        );
    }
}

#[tokio::test]
async fn the_path_is_served_with_and_without_a_slash_and_never_redirected() {
    let site = Site::new().await;
    let named = Site::with(|builder| builder.path("/a/b/")).await;
    for (site, path, status) in [
        (&site, "/mcp", 200),
        (&site, "/mcp/", 200),
        (&site, "/mcp?x=1", 200),
        (&site, "/", 404),
        (&site, "/mcp/x", 404),
        (&site, "/mcp//", 404),
        (&named, "/a/b", 200),
        (&named, "/a/b/", 200),
        (&named, "/mcp", 404),
    ] {
        assert_eq!(site.post(&Post::tool("echo").path(path)).await.status, status, "{path}");
    }
}

/// HTTPM-02, P-HTTP-22, P-HTTP-23: the formats that the client accepts.
#[tokio::test]
async fn accept_must_cover_the_answer() {
    let site = Site::new().await;
    let json_only = Site::with(|builder| builder.responses(Responses::JsonOnly)).await;
    for (site, accept, status) in [
        (&site, "application/json", 406),
        (&site, "text/event-stream", 406),
        (&site, "*/*", 200),
        (&site, "application/json;q=1, text/*", 200),
        (&json_only, "application/json", 200),
        (&json_only, "text/event-stream", 406),
    ] {
        let reply = site.post(&Post::tool("echo").without("accept").header("accept", accept)).await;
        assert_eq!(reply.status, status, "{accept}");
        assert!(status == 200 || reply.body.is_empty(), "HTTPM-02: an empty body");
    }
    assert_eq!(site.post(&Post::tool("echo").without("accept")).await.status, 406);
}

/// HTTPM-04, HTTPM-07, TYP-02, TYP-05: bodies that are not one request or notification.
#[tokio::test]
async fn a_body_is_one_request_or_notification() {
    let site = Site::new().await;
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (body, code, id) in [
        ("", -32700, None),
        ("{", -32700, None),
        ("nonsense", -32700, None),
        ("[]", -32600, None),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","id":true,"method":"x"}"#, -32600, None),
        (r#"{"jsonrpc":"2.0","method":5}"#, -32600, None),
        (r#"{"jsonrpc":"1.0","id":8,"method":"x"}"#, -32600, Some(8)),
        (r#"{"jsonrpc":"2.0","id":9,"method":"x","params":[]}"#, -32600, Some(9)),
        ("5", -32600, None),
        (&deep, -32600, Some(1)),
    ] {
        let reply = site.post(&Post::body(body).header("MCP-Protocol-Version", "2026-07-28")).await;
        assert_eq!((reply.status, reply.code()), (400, code), "{body}");
        let answer = reply.json();
        assert_eq!(answer.get("id").and_then(serde_json::Value::as_i64), id, "{body}");
        let text = if code == -32700 {
            "Parse error"
        } else {
            "Body must be a single JSON-RPC request or notification object"
        };
        assert_eq!(answer["error"]["message"], text);
    }
    let mut invalid = Post::body("x").header("MCP-Protocol-Version", "2026-07-28").bytes(site.address);
    *invalid.last_mut().unwrap() = 0xff;
    let mut wire = site.connect().await;
    wire.send(&invalid).await;
    assert_eq!(wire.reply().await.code(), -32700);
}

/// HTTPM-05, P-HTTP-6: notifications are accepted and dropped, whatever their content.
#[tokio::test]
async fn a_notification_is_taken_and_dropped() {
    let site = Site::new().await;
    let post = Post::body(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let reply = site.post(&post.clone().header("MCP-Protocol-Version", "2026-07-28")).await;
    assert_eq!((reply.status, reply.text().as_str()), (202, ""));
    let reply = site.post(&post.clone().header("MCP-Protocol-Version", "2099-01-01")).await;
    assert_eq!((reply.status, reply.code()), (400, -32022));
    assert_eq!(
        reply.json()["error"]["data"],
        json!({"supported": ["2026-07-28"], "requested": "2099-01-01"})
    );
    assert_eq!(reply.json().get("id"), None);
}

/// ENV-01..ENV-07, ENV-09, HTTPM-09, HTTPM-14, P-HTTP-7, P-HTTP-8, P-HTTP-10, P-HDR-4, P-HDR-5, P-HDR-6, P-HDR-7,
/// P-HDR-9: the envelope checks and their statuses.
#[tokio::test]
async fn the_ladder_answers_with_its_statuses() {
    let site = Site::new().await;
    let bare = |method: &str| {
        Post::body(json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": {}}).to_string())
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", method)
    };
    let named = |version: &str, header: &str| {
        let mut meta = meta();
        meta["io.modelcontextprotocol/protocolVersion"] = json!(version);
        let body = json!({"jsonrpc": "2.0", "id": "a", "method": "tools/list", "params": {"_meta": meta}});
        Post::body(body.to_string()).header("MCP-Protocol-Version", header).header("Mcp-Method", "tools/list")
    };
    let list = || Post::envelope("tools/list", json!({}));
    let call = || Post::tool("echo");
    for (what, post, status, code, text) in [
        ("no envelope", bare("tools/list"), 400, -32602, "params._meta must be an object carrying"),
        ("initialize without envelope", bare("initialize"), 400, -32602, "params._meta must be an object"),
        (
            "no version header",
            list().without("MCP-Protocol-Version"),
            400,
            -32020,
            "mcp-protocol-version header does not match the request envelope's protocol version",
        ),
        (
            "handshake version header",
            list().without("MCP-Protocol-Version").header("MCP-Protocol-Version", "2025-11-25"),
            400,
            -32020,
            "mcp-protocol-version",
        ),
        (
            "no method header",
            list().without("Mcp-Method"),
            400,
            -32020,
            "mcp-method header does not match the request body's method",
        ),
        (
            "method in capitals",
            list().without("Mcp-Method").header("Mcp-Method", "TOOLS/LIST"),
            400,
            -32020,
            "mcp-method",
        ),
        (
            "no name header",
            call().without("Mcp-Name"),
            400,
            -32020,
            "mcp-name header does not match the request body's 'name' parameter",
        ),
        ("another name", call().without("Mcp-Name").header("Mcp-Name", "other"), 400, -32020, "mcp-name"),
        ("header before version", named("2099-01-01", "2026-07-28"), 400, -32020, "mcp-protocol-version"),
        ("unknown version", named("2099-01-01", "2099-01-01"), 400, -32022, "Unsupported protocol version"),
        (
            "version of the other era",
            named("2025-11-25", "2025-11-25"),
            400,
            -32022,
            "Unsupported protocol version",
        ),
        ("unknown method", Post::envelope("unknown/method", json!({})), 404, -32601, "Method not found"),
        ("initialize", Post::envelope("initialize", json!({})), 404, -32601, "Method not found"),
        ("ping", Post::envelope("ping", json!({})), 404, -32601, "Method not found"),
        ("a level", Post::envelope("logging/setLevel", json!({})), 404, -32601, "Method not found"),
        ("subscribe", Post::envelope("resources/subscribe", json!({})), 404, -32601, "Method not found"),
        ("unsubscribe", Post::envelope("resources/unsubscribe", json!({})), 404, -32601, "Method not found"),
        ("another method", list().without("Mcp-Method").header("Mcp-Method", "x"), 400, -32020, "mcp-method"),
        (
            "bad params",
            Post::envelope("tools/call", json!({"name": 5})),
            400,
            -32602,
            "Invalid request parameters",
        ),
        ("handler's own", Post::tool("refuse"), 200, -32603, "no"),
        ("panic", Post::tool("panic"), 200, -32603, "Internal server error"),
        ("later panic", Post::tool("panic later"), 200, -32603, "Internal server error"),
    ] {
        let reply = site.post(&post).await;
        assert_eq!((reply.status, reply.code()), (status, code), "{what}: {}", reply.text());
        assert_eq!(reply.header("content-type"), Some("application/json"), "{what}");
        let answer = reply.json();
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(text), "{what}: {answer}");
        assert!(answer["id"] == 1 || answer["id"] == "a", "{what}: {answer}");
    }
}

/// HTTPM-08, P-HDR-25: a routing header appears once; this is checked before the envelope.
#[tokio::test]
async fn routing_headers_stand_once() {
    let site = Site::new().await;
    for name in ["mcp-protocol-version", "mcp-method", "mcp-name"] {
        let mut post = Post::tool("echo");
        let again = post.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).unwrap().clone();
        post.headers.push(again);
        let reply = site.post(&post).await;
        assert_eq!((reply.status, reply.code()), (400, -32020));
        assert_eq!(reply.json()["error"]["message"], format!("{name} header appears more than once"));
        assert_eq!(reply.json()["id"], 1);
    }
    let bare = Post::body(r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#)
        .header("MCP-Protocol-Version", "2026-07-28")
        .header("mcp-protocol-version", "2025-11-25");
    assert_eq!(site.post(&bare).await.code(), -32020);
}

/// P-HDR-8, P-HDR-10, P-HDR-11: names are case-insensitive, values are trimmed and decoded.
#[tokio::test]
async fn headers_are_compared_as_they_are_meant() {
    let site = Site::new().await;
    let post = Post::tool("echo").without("Mcp-Name").without("Mcp-Method");
    let post = post.header("MCP-NAME", "   echo ").header("mcp-METHOD", "tools/call");
    assert_eq!(site.post(&post).await.status, 200);
    let encoded = Post::tool("über").without("Mcp-Name").header("Mcp-Name", "=?base64?w7xiZXI=?=");
    assert_eq!(site.post(&encoded).await.status, 200);
    let malformed = Post::tool("Hello").without("Mcp-Name").header("Mcp-Name", "=?base64?SGVsbG8?=");
    assert_eq!(site.post(&malformed).await.code(), -32020);
}

/// HDR-06, HDR-07, HDR-08, P-HDR-13, P-HDR-17..19, P-HDR-23: mirrored arguments.
#[tokio::test]
async fn mirrored_arguments_agree_with_their_headers() {
    let site = Site::new().await;
    let call = |arguments: serde_json::Value, headers: &[(&str, &str)]| {
        let post = Post::envelope("tools/call", json!({"name": "mirrored", "arguments": arguments}));
        headers.iter().fold(post, |post, (name, value)| post.header(name, value))
    };
    for (post, text) in [
        (call(json!({"region": "us"}), &[("Mcp-Param-Region", "us")]), ""),
        (call(json!({"region": "us"}), &[("MCP-PARAM-REGION", "=?base64?dXM=?=")]), ""),
        (call(json!({"region": null}), &[]), ""),
        (call(json!({}), &[("Mcp-Param-Other", "x")]), ""),
        (call(json!({"count": 42}), &[("Mcp-Param-Count", "42.0")]), ""),
        (
            call(json!({"region": "us"}), &[]),
            "Mcp-Param-Region header is missing but the request body's 'region' argument is present",
        ),
        (
            call(json!({}), &[("Mcp-Param-Region", "us")]),
            "Mcp-Param-Region header is present but the request body's 'region' argument is absent",
        ),
        (
            call(json!({"region": "us"}), &[("Mcp-Param-Region", "eu")]),
            "Mcp-Param-Region header does not match the request body's 'region' argument",
        ),
        (
            call(json!({"region": "us"}), &[("Mcp-Param-Region", "us"), ("Mcp-Param-Region", "us")]),
            "Mcp-Param-Region header appears more than once",
        ),
        (
            call(json!({"region": "us"}), &[("Mcp-Param-Region", "=?base64?dX!?=")]),
            "Mcp-Param-Region header carries a malformed base64 sentinel value",
        ),
        (call(json!({"region": "ü"}), &[("Mcp-Param-Region", "ü")]), "Mcp-Param-Region header"),
    ] {
        let reply = site.post(&post).await;
        if text.is_empty() {
            assert_eq!(reply.status, 200, "{}", reply.text());
        } else {
            assert_eq!((reply.status, reply.code()), (400, -32020));
            assert!(reply.json()["error"]["message"].as_str().unwrap().starts_with(text), "{}", reply.text());
        }
    }
}

/// Protocol 4.2: a server of only this era names the revisions that it serves.
#[tokio::test]
async fn the_other_era_can_be_refused() {
    let site = Site::with(|builder| builder.handshake(Handshake::Disabled)).await;
    let reply = site.post(&Post::body(r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{}}"#)).await;
    assert_eq!((reply.status, reply.code()), (400, -32020));
    assert_eq!(reply.json()["id"], 4);
    assert!(reply.text().contains("2026-07-28"));
    assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
}

/// A handler sees the headers of its request and cannot send requests to the client (P-HTTP-14).
#[tokio::test]
async fn a_handler_sees_headers_and_has_no_way_to_ask() {
    let site = Site::new().await;
    let reply = site.post(&Post::tool("ask").header("X-Test", "one").header("x-test", "two")).await;
    assert_eq!(reply.json()["result"]["content"][0]["text"], "one,two");
}
