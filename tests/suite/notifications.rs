//! Notifications: they are never answered, and are handled where the revision defines them.

use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_server::middleware::Next;
use duplexer_server::{Context, Server};
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::matrix::{Link, Needs, everywhere, in_both_eras};
use crate::wire::Wire;
use crate::{ENVELOPE, HANDSHAKE};

type Events = mpsc::Receiver<String>;

/// A server whose handlers and middleware report the notifications that they receive.
fn listening() -> (Server, Events) {
    let (report, events) = mpsc::channel(64);
    let report = move |text: String| report.try_send(text).unwrap();
    let (seen, roots, mark, initialized) = (report.clone(), report.clone(), report.clone(), report);
    let server = Server::builder("s", "0")
        .middleware(move |cx: Context, message, next: Next| {
            let seen = seen.clone();
            async move {
                let method = cx.method().to_owned();
                let outcome = next.run(cx, message).await;
                seen(format!("{method} {}", if outcome.is_ok() { "passed" } else { "failed" }));
                outcome
            }
        })
        .on_notification(methods::RootsListChanged, move |_: EmptyParams| {
            roots("roots".to_owned());
            async { Ok::<_, McpError>(()) }
        })
        .on_notification(methods::Initialized, move |cx: Context<()>, _: EmptyParams| {
            initialized(format!("initialized {}", cx.connection().is_initialized()));
            async { Ok::<_, McpError>(()) }
        })
        .on_custom_notification("notifications/mark", move |cx: Context<()>, params: Value| {
            let client = cx.connection().client();
            let known = client.info.is_some() || client.capabilities.is_some();
            mark(format!("mark {} {} known={known}", params["n"], cx.protocol_version()));
            async move { if params["n"] == 13 { Err(McpError::internal("unlucky")) } else { Ok(()) } }
        })
        .build()
        .unwrap();
    (server, events)
}

async fn expect(events: &mut Events, expected: &[&str]) {
    for expected in expected {
        assert_eq!(events.recv().await.as_deref(), Some(*expected));
    }
}

/// RUN-18, SRV-04: the flag is set before the handler of `initialized` runs; a handler's failure reaches only middleware.
#[tokio::test]
async fn handlers_receive_what_their_revision_defines() {
    for link in Link::in_process(HANDSHAKE, Needs::Session) {
        let (server, mut events) = listening();
        let mut wire = Wire::connect(link, server).await;
        wire.open(HANDSHAKE).await;
        expect(&mut events, &["initialize passed", "initialized true", "notifications/initialized passed"])
            .await;
        wire.notify("notifications/roots/list_changed", json!({})).await;
        expect(&mut events, &["roots", "notifications/roots/list_changed passed"]).await;
        wire.notify("notifications/mark", json!({ "n": 13 })).await;
        expect(&mut events, &["mark 13 2025-11-25 known=true", "notifications/mark failed"]).await;
        // Unknown, malformed, and of the wrong direction: ignored, but middleware has seen them.
        wire.notify("notifications/absent", json!({})).await;
        expect(&mut events, &["notifications/absent passed"]).await;
        wire.notify("notifications/progress", json!({ "progress": "much" })).await;
        expect(&mut events, &["notifications/progress passed"]).await;
        wire.notify("notifications/message", json!({ "level": "info", "data": 1 })).await;
        expect(&mut events, &["notifications/message passed"]).await;
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// RUN-18: before the handshake only `initialized` is handled.
#[tokio::test]
async fn nothing_is_handled_before_the_handshake() {
    let (server, mut events) = listening();
    let mut wire = Wire::connect(Link::Memory, server).await;
    wire.result("ping", json!({})).await;
    wire.notify("notifications/mark", json!({ "n": 1 })).await;
    expect(&mut events, &["ping passed", "notifications/mark passed"]).await;
    wire.notify("notifications/initialized", json!({})).await;
    expect(&mut events, &["initialized true", "notifications/initialized passed"]).await;
}

/// ERA-08: in the envelope era a notification has no client and the newest revision, whatever it declares.
#[tokio::test]
async fn a_notification_of_the_envelope_era_is_anonymous() {
    let (server, mut events) = listening();
    let mut wire = Wire::connect(Link::Memory, server).await;
    wire.open(ENVELOPE).await;
    wire.result("server/discover", json!({})).await;
    expect(&mut events, &["server/discover passed"]).await;
    wire.notify("notifications/mark", json!({ "n": 1, "_meta": crate::wire::envelope(ENVELOPE) })).await;
    expect(&mut events, &["mark 1 2026-07-28 known=false", "notifications/mark passed"]).await;
    // Not of this era.
    wire.notify("notifications/roots/list_changed", json!({})).await;
    expect(&mut events, &["notifications/roots/list_changed passed"]).await;
    wire.notify("notifications/initialized", json!({})).await;
    expect(&mut events, &["notifications/initialized passed"]).await;
}

/// P-RPC-5, P-CAN-2: no notification is answered.
#[tokio::test]
async fn a_notification_is_never_answered() {
    everywhere(Needs::Answers, async |mut wire| {
        for method in ["notifications/x", "notifications/cancelled", "notifications/initialized", "x/y"] {
            wire.notify(method, json!({ "requestId": 99 })).await;
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    })
    .await;
}

/// P-RPC-5: a request without an id is not executed.
#[tokio::test]
async fn a_request_without_an_id_is_not_executed() {
    let (report, mut events) = mpsc::channel::<()>(8);
    let report = Arc::new(report);
    let server = move || {
        let called = Arc::clone(&report);
        Server::builder("s", "0")
            .on(methods::ToolsList, move |_: duplexer_types::page::PaginatedParams| {
                called.try_send(()).unwrap();
                async { Ok::<_, McpError>(duplexer_types::tool::ListToolsResult::new(vec![])) }
            })
            .build()
            .unwrap()
    };
    in_both_eras(server, async |mut wire| {
        wire.notify("tools/list", json!({ "_meta": crate::wire::envelope(ENVELOPE) })).await;
        wire.notify("initialize", crate::wire::initialize("2024-11-05", json!({}))).await;
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    })
    .await;
    assert!(events.try_recv().is_err(), "a handler was run");
}
