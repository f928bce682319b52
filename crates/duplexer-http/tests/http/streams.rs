//! Responses that are streams.

use std::sync::atomic::Ordering;
use std::time::Duration;

use duplexer_http::Responses;
use serde_json::json;

use crate::support::{Post, Site, events};

/// HTTPM-11, HTTPM-15, P-HTTP-13, P-HTTP-16, P-HTTP-18: notifications, then the response, then the end.
#[tokio::test]
async fn the_first_notification_makes_a_stream() {
    let site = Site::new().await;
    let reply = site.post(&Post::tool("tell")).await;
    assert_eq!(reply.status, 200);
    for (name, value) in [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache, no-transform"),
        ("x-accel-buffering", "no"),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    let text = reply.text();
    assert!(text.starts_with("event: message\r\ndata: {") && text.ends_with("}\r\n\r\n"), "{text}");
    assert!(!text.contains("id: "));
    let events = reply.events();
    let progress: Vec<_> = events[..3].iter().map(|event| event["params"]["progress"].clone()).collect();
    assert_eq!(progress, [1, 2, 3].map(|step| json!(step)));
    assert!(events[..3].iter().all(|event| event["params"]["progressToken"] == 7));
    assert_eq!((&events[3]["id"], events.len()), (&json!(1), 4));
}

/// HTTPM-11: once the head is sent, an error is an event like any response.
#[tokio::test]
async fn an_error_after_a_notification_is_the_last_event() {
    let site = Site::new().await;
    let reply = site.post(&Post::tool("refuse late")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.events().last().unwrap()["error"]["code"], -32602);
}

/// HTTPM-10: in JSON mode there is one body, and notifications are dropped.
#[tokio::test]
async fn json_mode_has_one_body() {
    let site = Site::with(|builder| builder.responses(Responses::JsonOnly)).await;
    let reply = site.post(&Post::tool("tell")).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
    let reply = site.post(&Post::tool("refuse late")).await;
    assert_eq!((reply.status, reply.code()), (400, -32602));
}

/// HTTPM-11: events reach the client as they happen, not with the response.
#[tokio::test]
async fn an_event_does_not_wait_for_the_answer() {
    let site = Site::new().await;
    let mut wire = site.connect().await;
    wire.send(&Post::tool("tell then wait").bytes(site.address)).await;
    assert_eq!(wire.head().await.unwrap().header("content-type"), Some("text/event-stream"));
    let first = String::from_utf8(wire.chunk().await.unwrap()).unwrap();
    assert_eq!(events(&first)[0]["params"]["progress"], 1);
    site.stage.go.notify_one();
    let mut rest = String::new();
    while let Some(chunk) = wire.chunk().await {
        rest += std::str::from_utf8(&chunk).unwrap();
    }
    assert_eq!(events(&rest).len(), 2);
    assert_eq!(events(&rest)[1]["result"]["content"][0]["text"], "done");
}

/// HTTPM-11, P-SUB-16: a pending response becomes a stream after `sse_after`, and comments keep it alive.
#[tokio::test]
async fn silence_is_filled_with_comments() {
    let quick = Duration::from_millis(50);
    let site = Site::with(|builder| builder.sse_after(quick).sse_keep_alive(quick)).await;
    let mut wire = site.connect().await;
    wire.send(&Post::tool("go").bytes(site.address)).await;
    assert_eq!(wire.head().await.unwrap().header("content-type"), Some("text/event-stream"));
    for _ in 0..2 {
        assert_eq!(wire.chunk().await.unwrap(), b": ping\r\n\r\n");
    }
    site.stage.go.notify_one();
    loop {
        let chunk = String::from_utf8(wire.chunk().await.unwrap()).unwrap();
        if let Some(answer) = events(&chunk).first() {
            assert_eq!(answer["result"]["content"][0]["text"], "done");
            break;
        }
    }
    assert_eq!(wire.chunk().await, None);
}

/// HTTPM-12, P-HTTP-17: a client that disconnects drops the handler, before the head and after it.
#[tokio::test]
async fn a_disconnect_drops_the_handler() {
    let site = Site::new().await;
    for (index, tool) in ["wait", "tell then wait"].into_iter().enumerate() {
        let mut wire = site.connect().await;
        wire.send(&Post::tool(tool).bytes(site.address)).await;
        site.stage.until(&site.stage.started, index + 1).await;
        if tool != "wait" {
            wire.head().await.unwrap();
        }
        assert_eq!(site.stage.ended.load(Ordering::SeqCst), index);
        drop(wire);
        site.stage.until(&site.stage.ended, index + 1).await;
    }
}

/// While the client does not read, the handler does not advance; other clients are not affected.
#[tokio::test]
async fn a_slow_reader_delays_only_its_own_handler() {
    let site = Site::new().await;
    let mut slow = site.connect().await;
    slow.send(&Post::tool("flood").bytes(site.address)).await;
    slow.head().await.unwrap();
    // The socket's buffers fill up, then the counter stops: detected when two samples around other calls agree.
    let mut sent = usize::MAX;
    loop {
        for _ in 0..200 {
            assert_eq!(site.post(&Post::tool("echo")).await.status, 200);
        }
        let now = site.stage.sent.load(Ordering::SeqCst);
        if now == sent {
            break;
        }
        sent = now;
    }
    assert!(sent < 100_000, "the handler went on without a reader: {sent}");
    while site.stage.sent.load(Ordering::SeqCst) == sent {
        assert!(slow.chunk().await.is_some());
    }
}

/// An unread stream is closed and its handler dropped.
#[tokio::test]
async fn an_unread_stream_is_cut() {
    let site = Site::with(|builder| {
        builder.sse_keep_alive(Duration::from_millis(100)).unread_timeout(Duration::from_millis(400))
    })
    .await;
    let mut slow = site.connect().await;
    slow.send(&Post::tool("flood").bytes(site.address)).await;
    site.stage.until(&site.stage.ended, 1).await;
    while slow.fill().await {}
}

/// HTTPM-06, P-HTTP-24, P-SUB-16: a subscription is always a stream, in JSON mode too, and many run concurrently.
#[tokio::test]
async fn a_subscription_is_always_a_stream() {
    let site = Site::with(|builder| builder.responses(Responses::JsonOnly).max_subscriptions(3)).await;
    let listen =
        || Post::envelope("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let reply = site.post(&listen().without("accept").header("accept", "application/json")).await;
    assert_eq!((reply.status, reply.text().as_str()), (406, ""));
    let mut open = Vec::new();
    for _ in 0..3 {
        let mut wire = site.connect().await;
        wire.send(&listen().bytes(site.address)).await;
        let head = wire.head().await.unwrap();
        assert_eq!(head.header("content-type"), Some("text/event-stream"));
        assert_eq!(head.header("x-accel-buffering"), Some("no"));
        let first = String::from_utf8(wire.chunk().await.unwrap()).unwrap();
        assert_eq!(events(&first)[0]["method"], "notifications/subscriptions/acknowledged");
        open.push(wire);
    }
    let reply = site.post(&listen()).await;
    assert_eq!((reply.status, reply.code(), reply.header("retry-after")), (503, -32603, Some("1")));
    assert_eq!(site.post(&Post::tool("echo")).await.status, 200, "others are not concerned");
    open.pop();
    site.stage.until(&site.stage.ended, 1).await;
    let malformed = Post::envelope("subscriptions/listen", json!({"notifications": 5}));
    let reply = site.post(&malformed).await;
    assert_eq!((reply.status, reply.code()), (400, -32602));
}
