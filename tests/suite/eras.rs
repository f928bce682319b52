//! How the era of a connection is decided and enforced.

use std::sync::{Arc, Mutex};

use duplexer_core::dispatch::{DispatchOptions, FailureMode, RunError};
use duplexer_core::error::McpError;
use duplexer_server::{Context, Server};
use serde_json::{Value, json};

use crate::matrix::{Link, Needs, everywhere, over_every_link};
use crate::wire::{Ended, Wire, envelope, error_of, initialize};
use crate::{ENVELOPE, HANDSHAKE};

const LOCKED: &str = "this connection serves the handshake protocol era; requests carrying the 2026-07-28 envelope \
                      are not accepted on it";

/// ERA-01, P-ERA-2: the first request decides by its content, even if it is invalid.
#[tokio::test]
async fn the_first_request_decides() {
    for link in Link::of(ENVELOPE, Needs::Connection) {
        // Any value of the key counts as an envelope.
        let mut wire = Wire::fixture(link).await;
        let odd = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": 7 } });
        assert_eq!(wire.error("tools/list", odd).await.0, -32602);
        assert_eq!(wire.error("initialize", initialize(HANDSHAKE, json!({}))).await.0, -32022);
        // `initialize` is a handshake even in an envelope.
        let mut wire = Wire::fixture(link).await;
        let mut params = initialize(HANDSHAKE, json!({}));
        params["_meta"] = envelope(ENVELOPE);
        assert_eq!(wire.result("initialize", params).await["protocolVersion"], HANDSHAKE);
        // Everything else is of the handshake era, an unknown method too.
        let mut wire = Wire::fixture(link).await;
        assert_eq!(wire.error("no/such", json!({})).await.0, -32601);
        assert_eq!(wire.result("ping", json!({})).await, json!({}));
        let enveloped = json!({ "_meta": envelope(ENVELOPE) });
        assert_eq!(wire.error("tools/list", enveloped).await.1, LOCKED);
    }
}

/// ERA-04, P-ERA-9: the error has no data, and the connection continues.
#[tokio::test]
async fn a_handshake_connection_refuses_envelopes() {
    over_every_link(HANDSHAKE, Needs::Connection, async |mut wire| {
        for meta in [envelope(ENVELOPE), envelope("1900-01-01")] {
            let refused = wire.error("tools/list", json!({ "_meta": meta })).await;
            assert_eq!(refused, (-32600, LOCKED.to_owned(), Value::Null));
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// ERA-05, P-ERA-3, P-ERA-9: the error lists the supported revisions, and the requested one if it can be read.
#[tokio::test]
async fn an_envelope_connection_refuses_handshakes() {
    over_every_link(ENVELOPE, Needs::Connection, async |mut wire| {
        wire.result("tools/list", json!({})).await;
        let text = "connection is serving the 2026-07-28 protocol; the initialize handshake is not accepted";
        let data = json!({ "supported": [ENVELOPE], "requested": HANDSHAKE });
        let refused = wire.error("initialize", initialize(HANDSHAKE, json!({}))).await;
        assert_eq!(refused, (-32022, text.to_owned(), data));
        for params in [json!({}), json!({ "protocolVersion": 5 })] {
            let (code, _, data) = wire.error("initialize", params).await;
            assert_eq!((code, data), (-32022, json!({ "supported": [ENVELOPE] })));
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// ERA-06, ENV-01, ENV-02, ENV-07, P-STDIO-11, P-VER-2: each request of an envelope connection is self-contained.
#[tokio::test]
async fn an_envelope_connection_requires_an_envelope_on_every_request() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        wire.result("tools/list", json!({})).await;
        let bare = |params: &str| format!(r#"{{"jsonrpc":"2.0","id":"r","method":"tools/list"{params}}}"#);
        for (params, code, text) in [
            ("", -32602, "params._meta must be an object carrying"),
            (r#","params":{"_meta":[]}"#, -32602, "params._meta must be an object carrying"),
            (r#","params":{"_meta":{}}"#, -32602, "params._meta is missing the required envelope key(s): io"),
        ] {
            wire.line(&bare(params)).await;
            let refused = error_of(&wire.answer_to("r").await);
            assert!(refused.0 == code && refused.1.starts_with(text), "{refused:?}");
        }
        let other = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": HANDSHAKE } });
        let data = json!({ "supported": [ENVELOPE], "requested": HANDSHAKE });
        let refused = wire.error("tools/list", other).await;
        assert_eq!(refused, (-32022, "Unsupported protocol version".to_owned(), data));
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// ENV-06: a version that is not a string is rejected before it is compared with the supported ones.
#[tokio::test]
async fn the_version_of_an_envelope_is_a_string() {
    over_every_link(ENVELOPE, Needs::BodyAlone, async |mut wire| {
        let number = json!({ "_meta": { "io.modelcontextprotocol/protocolVersion": 2026 } });
        let refused = wire.error("tools/list", number).await;
        assert_eq!(refused.1, "the protocol-version envelope value must be a string");
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

type Entries = Arc<Mutex<Vec<String>>>;

fn noting() -> (Server, Entries) {
    let entries = Entries::default();
    let noted = Arc::clone(&entries);
    let server = Server::builder("s", "0")
        .on_custom_notification("notifications/mark", move |cx: Context<()>, params: Value| {
            noted.lock().unwrap().push(format!("{} {}", params["n"], cx.protocol_version()));
            async { Ok::<_, McpError>(()) }
        })
        .build()
        .unwrap();
    (server, entries)
}

/// ERA-02: notifications before the first request do not decide the era; up to eight are handled, in order, before it.
#[tokio::test]
async fn early_notifications_are_kept_for_the_era_to_come() {
    for link in Link::in_process(ENVELOPE, Needs::Connection) {
        let (server, entries) = noting();
        let mut wire = Wire::connect(link, server).await;
        wire.line("not json").await;
        wire.line(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#).await;
        for n in 0..10 {
            wire.notify("notifications/mark", json!({ "n": n, "_meta": {} })).await;
        }
        wire.open(ENVELOPE).await;
        wire.result("server/discover", json!({})).await;
        let expected: Vec<_> = (0..8).map(|n| format!("{n} {ENVELOPE}")).collect();
        assert_eq!(*entries.lock().unwrap(), expected);
        assert_eq!(error_of(&wire.next().await).0, -32700);
    }
}

/// ERA-02: an envelope on a notification does not decide the era, and later pipelined messages wait for the early ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn early_notifications_are_handled_before_later_messages() {
    for _ in 0..50 {
        let mut wire = Wire::connect(Link::Memory, duplexer_tests::server()).await;
        wire.notify("notifications/initialized", json!({ "_meta": envelope(ENVELOPE) })).await;
        let mut ids = Vec::new();
        for _ in 0..4 {
            ids.push(wire.request("tools/list", json!({})).await);
        }
        for id in ids {
            assert!(wire.answer_to(id).await.get("result").is_some());
        }
    }
}

/// ERA-02: the handler of an early notification can send a request to the client; the handshake after it is answered
/// meanwhile.
#[tokio::test]
async fn an_early_notification_does_not_delay_the_handshake() {
    let server = Server::builder("s", "0").on_notification(
        duplexer_types::methods::Initialized,
        |cx: Context<()>, _: duplexer_types::lifecycle::EmptyParams| async move {
            cx.connection().ping().await?;
            cx.connection().tools_changed().await;
            Ok::<_, McpError>(())
        },
    );
    let mut wire = Wire::connect(Link::Memory, server.build().unwrap()).await;
    wire.notify("notifications/initialized", json!({})).await;
    wire.result("initialize", initialize(HANDSHAKE, json!({}))).await;
    let ping = wire.next().await;
    assert_eq!(ping["method"], "ping");
    wire.send(json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} })).await;
    assert_eq!(wire.next().await["method"], "notifications/tools/list_changed");
}

/// ERA-03, ERA-09, STDIO-05: an end of input before any request is an orderly end, and the peer sees it.
#[tokio::test]
async fn an_end_before_any_request_ends_the_server() {
    for link in Link::of(ENVELOPE, Needs::Connection) {
        let mut wire = Wire::fixture(link).await;
        wire.notify("notifications/initialized", json!({})).await;
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{rest:?} {ended:?}");
    }
}

/// ERA-08, P-STDIO-5, P-CAN-1, HTTPL-13: a cancelled request has no response of its own, also when the cancellation
/// uses the alternate form of its id.
#[tokio::test]
async fn a_cancelled_request_is_never_answered() {
    everywhere(Needs::Cancelling, async |mut wire| {
        let first = wire.request("tools/call", json!({ "name": "wait" })).await;
        let second = wire.request("tools/call", json!({ "name": "wait" })).await;
        wire.until_waiting(2).await;
        wire.notify("notifications/cancelled", json!({ "requestId": first })).await;
        wire.notify("notifications/cancelled", json!({ "requestId": second.to_string() })).await;
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
        wire.end_with_cancelled(&[first, second]).await;
    })
    .await;
}

/// ERA-10: in a test mode a failure ends the run, after it was answered.
#[tokio::test]
async fn a_failure_can_be_raised_out_of_the_run() {
    for revision in [HANDSHAKE, ENVELOPE] {
        let running = duplexer_tests::server().start().await.unwrap();
        let options = DispatchOptions::default().failures(FailureMode::Raise);
        let mut wire = Wire::connect_to(Link::Memory, &running, options);
        wire.open(revision).await;
        assert_eq!(error_of(&wire.tool("refuse").await).0, 7);
        assert_eq!(error_of(&wire.tool("fail").await).1, "Internal server error");
        let (rest, ended) = wire.rest().await;
        assert!(rest.is_empty() && matches!(ended, Ended::Run(Err(RunError::Handler(_)))), "{ended:?}");
    }
}
