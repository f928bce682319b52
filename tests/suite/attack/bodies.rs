//! Attacks in the body of a POST, and the responses to them.

use serde_json::{Value, json};

use super::site::{Post, Site};
use super::{ERAS, echo, request, reveals_no_internals};
use crate::wire::envelope;
use crate::{ENVELOPE, HANDSHAKE};

/// R-H73, R-H74, R-H75: a request with an invalid id is rejected, never treated as a notification.
#[tokio::test]
async fn a_bad_id_makes_no_notification() {
    let site = Site::open().await;
    for revision in ERAS {
        for id in [json!(null), json!(true), json!({}), json!([1]), json!(1.5)] {
            let reply = site.send(&Post::of(revision, &echo(revision, id.clone(), "x"))).await;
            assert_eq!((reply.status, reply.code()), (400, -32600), "{revision} {id}");
            assert_eq!(reply.answer().get("id"), None);
        }
    }
    site.serves().await;
}

/// CVE-2025-53366: an unreadable body gets an error response, and the next request is served.
#[tokio::test]
async fn bodies_that_cannot_be_read_are_refused() {
    let site = Site::open().await;
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","id":7,"method":"no/such","params":{{"a":{open}{close}}}}}"#)
    };
    for revision in ERAS {
        for (body, code) in [
            (String::new(), -32700),
            ("{".to_owned(), -32700),
            ("NaN".to_owned(), -32700),
            ("\"\\ud800\"x".to_owned(), -32700),
            ("null".to_owned(), -32600),
            ("[]".to_owned(), -32600),
            (r#"{"jsonrpc":"1.0","id":7,"method":"tools/list"}"#.to_owned(), -32600),
            (r#"{"jsonrpc":"2.0","id":7,"method":5}"#.to_owned(), -32600),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":[]}"#.to_owned(), -32600),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","method":"tools/call"}"#.to_owned(), -32600),
            (r#"{"jsonrpc":"2.0","id":7,"Method":"tools/list"}"#.to_owned(), -32600),
            (deep(200), -32600),
            (deep(100_000), -32600),
        ] {
            let reply = site.send(&Post::raw(revision, &*body)).await;
            let shown = &body[..body.len().min(80)];
            assert_eq!((reply.status, reply.code()), (400, code), "{revision} {shown}");
            let id = body.contains(r#""id":7"#).then(|| json!(7));
            assert_eq!(reply.answer().get("id"), id.as_ref(), "{shown}");
        }
    }
    site.serves().await;
}

/// R-H82, R-H84, R-H85: faults and bugs are answered, each once, without internal details.
#[tokio::test]
async fn nothing_internal_is_revealed() {
    let site = Site::open().await;
    for revision in ERAS {
        for params in [
            json!({ "name": "echo" }),
            json!({ "name": "echo", "arguments": { "text": 5 } }),
            json!({ "name": "add", "arguments": { "a": "1", "b": null } }),
            json!({ "name": "absent" }),
            json!({ "name": "panic" }),
            json!({ "name": "fail" }),
            json!({ "name": 5 }),
        ] {
            let reply = site.send(&Post::of(revision, &request(revision, 1, "tools/call", params))).await;
            assert_eq!(reply.answer()["id"], 1);
            reveals_no_internals(&reply.body);
        }
        for turn in 0..40 {
            let tool = if turn % 2 == 0 {
                Post::tool(revision, "panic")
            } else {
                Post::of(revision, &echo(revision, 1, "x"))
            };
            let reply = site.send(&tool).await;
            assert_eq!(reply.answer()["error"]["code"].as_i64(), (turn % 2 == 0).then_some(-32603));
        }
    }
}

/// R-H86: ids are scoped to their client: two clients can use the same id at the same time.
#[tokio::test]
async fn one_id_in_flight_twice_is_answered_twice() {
    let site = Site::open().await;
    for revision in ERAS {
        let waiting = super::site::running(&site, revision, "wait").await;
        for _ in 0..2 {
            let reply = site.send(&Post::of(revision, &echo(revision, 1, "other"))).await;
            assert_eq!((reply.answer()["id"].clone(), reply.text_of_tool()), (json!(1), "other".to_owned()));
        }
        // A client cannot cancel the request of another client.
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        assert_eq!(site.send(&Post::of(revision, &cancel)).await.status, 202);
        drop(waiting);
    }
    let mut finishing = super::site::running(&site, ENVELOPE, "finish").await;
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    assert_eq!(site.send(&Post::of(ENVELOPE, &cancel)).await.status, 202);
    super::load::send_shutdown_signal(&site.child);
    assert!(finishing.until(b"finished").await.is_some(), "a posted cancel cancels nothing");
}

/// P-HTTP-9, P-HTTP-10: each rejection of the envelope era has its status and its id.
#[tokio::test]
async fn refusals_have_their_status() {
    let site = Site::open().await;
    let list = || request(ENVELOPE, "a", "tools/list", json!({}));
    let mut bare = list();
    bare["params"] = json!({});
    let mut other = list();
    other["params"]["_meta"] = envelope("1900-01-01");
    let asks = request(ENVELOPE, "a", "subscriptions/listen", json!({ "notifications": 5 }));
    for (post, status, code) in [
        (Post::of(ENVELOPE, &list()).instead("Mcp-Method", "prompts/list"), 400, -32020),
        (Post::of(ENVELOPE, &bare), 400, -32602),
        (Post::of("1900-01-01", &other), 400, -32022),
        (Post::of(ENVELOPE, &asks), 400, -32602),
        (Post::of(ENVELOPE, &request(ENVELOPE, "a", "no/such", json!({}))), 404, -32601),
        (Post::of(ENVELOPE, &request(ENVELOPE, "a", "logging/setLevel", json!({}))), 404, -32601),
    ] {
        let reply = site.send(&post).await;
        assert_eq!((reply.status, reply.code()), (status, code), "{}", reply.body);
        assert_eq!(reply.answer()["id"], "a");
    }
}

/// P-LEG-20, P-LEG-21: an unknown version is rejected; a missing header means the oldest revision with this transport.
#[tokio::test]
async fn the_version_header_is_checked() {
    let site = Site::open().await;
    for unknown in ["1900-01-01", "2025-11-26", "latest", ""] {
        let reply = site.send(&Post::of(unknown, &echo(HANDSHAKE, 1, "x"))).await;
        assert_eq!(reply.status, 400, "{unknown:?}");
    }
    // 2025-03-26 has no structured content, later revisions do.
    let add = request(HANDSHAKE, 1, "tools/call", json!({ "name": "add", "arguments": { "a": 1, "b": 2 } }));
    let structured =
        async |post: Post| site.send(&post).await.answer()["result"].get("structuredContent").cloned();
    assert_eq!(structured(Post::of(HANDSHAKE, &add)).await, Some(json!({ "result": 3 })));
    assert_eq!(structured(Post::of("2025-03-26", &add)).await, None);
    assert_eq!(structured(Post::of(HANDSHAKE, &add).without("MCP-Protocol-Version")).await, None);
}

/// P-ERA-1, P-HTTP-24: one endpoint serves both eras at once, on one connection too.
#[tokio::test]
async fn both_eras_are_served_side_by_side() {
    let site = Site::open().await;
    let _waiting = [
        super::site::running(&site, HANDSHAKE, "wait").await,
        super::site::running(&site, ENVELOPE, "wait").await,
    ];
    let mut socket = site.connect().await;
    for turn in 0..20 {
        let revision = ERAS[turn % 2];
        socket.send(&Post::of(revision, &echo(revision, turn, "x")).bytes()).await;
        let answer = socket.reply().await.expect("a response").answer();
        assert_eq!((&answer["id"], &answer["result"]["content"][0]["text"]), (&json!(turn), &json!("x")));
        assert_eq!(answer["result"].get("resultType").is_some(), revision == ENVELOPE);
    }
}

/// P-HTTP-15: a stream carries only messages of its own request.
#[tokio::test]
async fn a_stream_carries_its_own_request_only() {
    let site = Site::open().await;
    for revision in ERAS {
        let mut streams = Vec::new();
        for token in 0..8 {
            let params = json!({ "name": "finish", "_meta": { "progressToken": token } });
            let mut socket = site.connect().await;
            socket
                .send(&Post::of(revision, &request(revision, 100 + token, "tools/call", params)).bytes())
                .await;
            streams.push((token, socket));
        }
        let parse = |text: &[u8]| -> Value {
            let text = String::from_utf8_lossy(text).into_owned();
            serde_json::from_str(text.split("data: ").last().unwrap().trim()).unwrap()
        };
        for (token, socket) in &mut streams {
            socket.until(b"\r\n\r\n").await.expect("a head");
            let event = parse(&socket.until(b"}\r\n\r\n").await.expect("an event"));
            assert_eq!(
                (&event["method"], &event["params"]["progressToken"]),
                (&json!("notifications/progress"), &json!(*token))
            );
        }
        drop(streams);
    }
}
