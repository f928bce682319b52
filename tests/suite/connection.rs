//! Connection state: what the server stores about a client, for how long, and the hooks that run at the end.

use std::sync::{Arc, Mutex};

use bytestring::ByteString;
use duplexer_core::dispatch::{
    BoxFuture, CallContext, Cancellation, Channel, DispatchOptions, Message, NoChannel, NotifyFuture,
    Outbound, OutboundRequest,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::TransportContext;
use duplexer_server::driver::{serve_envelope, serve_on, serve_one};
use duplexer_server::{Caller, ClientProfile, Connection, Context, Principal, RunningServer, Server};
use duplexer_types::jsonrpc::{self, Body, RequestId};
use duplexer_types::version::ProtocolVersion;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::matrix::{Link, Needs, everywhere, over_every_link};
use crate::wire::{Wire, envelope};
use crate::{ENVELOPE, HANDSHAKE};

async fn facts(wire: &mut Wire, meta: Value) -> Value {
    serde_json::from_str(&wire.tool_text("facts", meta).await).unwrap()
}

/// RUN-20, CONN-03, SRV-09: the facts about a request that a handler can read.
#[tokio::test]
async fn a_context_knows_its_request() {
    everywhere(Needs::Answers, async |mut wire| {
        let meta = json!({ "traceparent": "00-a", "com.example/x": 1 });
        let found = facts(&mut wire, meta).await;
        let id = found["id"].as_i64();
        // Without sessions the server does not store the handshake.
        let client = (wire.is_enveloped() || wire.is_stateful()).then_some("wire");
        let expected = json!({
            "state": "hello", "method": "tools/call", "id": id, "version": wire.revision(), "client": client,
            "capabilities": client.is_some(), "trace": "00-a", "meta": true, "params": true,
            "initialized": wire.is_stateful(), "session": found["session"], "principal": null,
        });
        assert_eq!(found, expected);
        assert_eq!(found["session"].is_string(), wire.link().is_http() && wire.is_stateful());
    })
    .await;
}

/// RUN-01, P-META-13: in the handshake era a malformed value in `_meta` counts as absent.
#[tokio::test]
async fn a_malformed_value_in_meta_is_ignored() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        let meta = json!({ "traceparent": 5, "progressToken": [] });
        assert_eq!(facts(&mut wire, meta).await["trace"], Value::Null);
    })
    .await;
}

/// RUN-05: a `_meta` that is not an object is refused in both eras, also where no handler decodes the params.
#[tokio::test]
async fn a_meta_that_is_not_an_object_is_refused() {
    over_every_link(HANDSHAKE, Needs::Answers, async |mut wire| {
        for meta in [json!("x"), json!(7), json!([]), json!(true), Value::Null] {
            for method in ["tools/call", "tools/list", "ping", "test/echo"] {
                let (code, ..) = wire.error(method, json!({ "name": "echo", "_meta": meta })).await;
                assert_eq!(code, -32602, "{method} {meta}");
            }
        }
        assert_eq!(wire.tool_text("echo", json!({})).await, "nothing");
    })
    .await;
}

/// CONN-04, P-STATE-1, P-STDIO-10: state belongs to its connection or session; without either, it lasts for one request.
#[tokio::test]
async fn state_lives_as_long_as_its_connection() {
    everywhere(Needs::Answers, async |mut wire| {
        let mut counts = Vec::new();
        for _ in 0..3 {
            counts.push(wire.tool_text("count", json!({})).await);
        }
        let expected = if wire.is_stateful() { ["1", "2", "3"] } else { ["1", "1", "1"] };
        assert_eq!(counts, expected);
    })
    .await;
    let running = duplexer_tests::server().start().await.unwrap();
    for _ in 0..2 {
        let mut wire = Wire::connect_to(Link::Memory, &running, DispatchOptions::default());
        wire.open(HANDSHAKE).await;
        assert_eq!(wire.tool_text("count", json!({})).await, "1");
    }
}

/// CONN-03, P-META-10: what one request declares about its client is not kept for the next.
#[tokio::test]
async fn an_envelope_applies_to_its_own_request_only() {
    over_every_link(ENVELOPE, Needs::Answers, async |mut wire| {
        let other = json!({ "io.modelcontextprotocol/clientInfo": { "name": "other", "version": "1" } });
        assert_eq!(facts(&mut wire, other).await["client"], "other");
        let anonymous = json!({ "io.modelcontextprotocol/clientInfo": null });
        let found = facts(&mut wire, anonymous).await;
        assert_eq!((&found["client"], &found["capabilities"]), (&Value::Null, &json!(true)));
        assert_eq!(facts(&mut wire, json!({})).await["client"], "wire");
    })
    .await;
}

/// A server whose tools register hooks, and which reports when the hooks run.
fn hooking() -> (Server, mpsc::Receiver<String>) {
    let (report, events) = mpsc::channel(16);
    let server = Server::builder("s", "0").on_custom("x/hook", move |cx: Context<()>, params: Value| {
        for name in ["first", "second"] {
            let (report, name) = (report.clone(), format!("{name} {}", params["how"]));
            cx.connection().on_close(move || async move { report.try_send(name).unwrap() });
        }
        let reported = report.try_send(format!("handling {}", params["how"]));
        async move {
            reported.unwrap();
            match params["how"].as_str() {
                Some("panics") => panic!("after the hooks are there"),
                Some("waits") => std::future::pending().await,
                Some("fails") => Err(McpError::internal("after the hooks are there")),
                _ => Ok(()),
            }
        }
    });
    (server.build().unwrap(), events)
}

/// CONN-05: on a handshake connection the hooks run at its end, in reverse order.
#[tokio::test]
async fn hooks_run_when_a_handshake_connection_ends() {
    for link in Link::in_process(HANDSHAKE, Needs::Session) {
        let (server, mut events) = hooking();
        let mut wire = Wire::connect(link, server).await;
        wire.open(HANDSHAKE).await;
        wire.result("x/hook", json!({ "how": "ends" })).await;
        assert_eq!(events.recv().await.as_deref(), Some("handling \"ends\""));
        assert!(events.try_recv().is_err());
        assert!(wire.finish().await.1.is_orderly());
        assert_eq!(events.recv().await.as_deref(), Some("second \"ends\""));
        assert_eq!(events.recv().await.as_deref(), Some("first \"ends\""));
    }
}

/// CONN-05: in the envelope era the hooks run after the request, however it ended.
#[tokio::test]
async fn hooks_run_when_an_envelope_request_ends() {
    for link in Link::in_process(ENVELOPE, Needs::Answers) {
        let (server, mut events) = hooking();
        let mut wire = Wire::connect(link, server).await;
        wire.open(ENVELOPE).await;
        for how in ["ends", "fails", "panics"] {
            wire.answer("x/hook", json!({ "how": how })).await;
            assert_eq!(events.recv().await, Some(format!("handling \"{how}\"")));
            assert_eq!(events.recv().await, Some(format!("second \"{how}\"")));
            assert_eq!(events.recv().await, Some(format!("first \"{how}\"")));
        }
    }
}

/// CONN-05: the hooks also run after a cancelled request.
#[tokio::test]
async fn hooks_run_when_an_envelope_request_is_cancelled() {
    for link in Link::in_process(ENVELOPE, Needs::Cancelling) {
        let (server, mut events) = hooking();
        let mut wire = Wire::connect(link, server).await;
        wire.open(ENVELOPE).await;
        let id = wire.request("x/hook", json!({ "how": "waits" })).await;
        assert_eq!(events.recv().await.as_deref(), Some("handling \"waits\""));
        wire.notify("notifications/cancelled", json!({ "requestId": id })).await;
        assert_eq!(events.recv().await.as_deref(), Some("second \"waits\""));
        assert_eq!(events.recv().await.as_deref(), Some("first \"waits\""));
    }
}

/// An outbound channel that records notifications.
#[derive(Default)]
struct Kept {
    sent: Mutex<Vec<String>>,
    never: Cancellation,
}

impl Outbound for Kept {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        Box::pin(std::future::ready(Err(CallError::NoBackChannel(request.method))))
    }

    fn notify(&self, method: &str, _: Option<&dyn Body>) -> NotifyFuture {
        self.sent.lock().unwrap().push(method.to_owned());
        NotifyFuture::done()
    }
}

impl Channel for Kept {
    fn cancellation(&self) -> &Cancellation {
        &self.never
    }

    fn closing(&self) -> &Cancellation {
        &self.never
    }
}

fn call_context(id: Option<i64>) -> (CallContext, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let transport = Arc::new(TransportContext::stream("test"));
    (CallContext::new(id.map(RequestId::from), transport, Arc::clone(&kept) as _), kept)
}

fn message(method: &str, params: &Value) -> Message {
    Message::new(method.to_owned(), Some(params.to_string().into()))
}

fn written(reply: &impl Body) -> Value {
    let mut out = Vec::new();
    jsonrpc::write_success(&mut out, &RequestId::from(1_i64), reply).unwrap();
    serde_json::from_slice::<Value>(&out).unwrap()["result"].clone()
}

async fn started() -> RunningServer {
    duplexer_tests::server().start().await.unwrap()
}

/// CONN-01, CONN-06: one request without a session: ready from the start, without a channel for requests outside it.
#[tokio::test]
async fn a_single_request_is_served_on_a_connection_of_its_own() {
    let running = started().await;
    let ready = || Arc::new(Connection::ready(ProtocolVersion::V2025_06_18, ClientProfile::UNKNOWN));
    let (cx, _) = call_context(Some(1));
    let call = message("tools/call", &json!({ "name": "facts" }));
    let result = written(&serve_one(&running, ready(), cx, call).await.unwrap());
    let found: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&found["version"], &found["capabilities"]), (&json!("2025-06-18"), &json!(false)));
    let (cx, _) = call_context(Some(1));
    let refused = serve_one(&running, ready(), cx, message("tools/call", &json!({ "name": "ping" }))).await;
    let error = refused.unwrap_err().to_wire("tools/call");
    assert!(error.message.starts_with("Cannot send 'ping': "), "{error:?}");
    // Notifications outside a request have no receiver, and that is no failure.
    let (cx, kept) = call_context(Some(1));
    serve_one(&running, ready(), cx, message("tools/call", &json!({ "name": "log" }))).await.unwrap();
    assert_eq!(*kept.sent.lock().unwrap(), ["notifications/message", "notifications/message"]);
}

/// CONN-01: a long-lived connection is served message by message.
#[tokio::test]
async fn messages_are_served_one_by_one_on_a_long_lived_connection() {
    let running = started().await;
    let connection = Arc::new(Connection::handshake(ProtocolVersion::LATEST_HANDSHAKE, Arc::new(NoChannel)));
    let serve = async |id: Option<i64>, method: &str, params: Value| {
        serve_on(&running, &connection, None, call_context(id).0, message(method, &params)).await
    };
    assert!(serve(Some(1), "tools/list", json!({})).await.unwrap().is_err());
    let opened = serve(Some(2), "initialize", crate::wire::initialize("2025-06-18", json!({}))).await;
    assert_eq!(written(&opened.unwrap().unwrap())["protocolVersion"], "2025-06-18");
    assert!(serve(None, "notifications/initialized", json!({})).await.is_none());
    assert!(connection.is_initialized() && connection.is_open());
    for count in ["1", "2"] {
        let counted = serve(Some(3), "tools/call", json!({ "name": "count" })).await.unwrap().unwrap();
        assert_eq!(written(&counted)["content"][0]["text"], count);
    }
}

/// ENV-03, CONN-01: one request of the envelope era, from the envelope checks to its result, with the transport's facts
/// about its caller.
#[tokio::test]
async fn a_single_envelope_request_is_served_from_the_envelope_checks_on() {
    let running = started().await;
    let params = json!({ "name": "facts", "_meta": envelope(ENVELOPE) });
    let mut caller = Caller::default();
    caller.session_id = Some("s-1".into());
    caller.principal = Some(Arc::new(Principal::new("client")));
    let call = message("tools/call", &params);
    let served = serve_envelope(&running, call_context(Some(1)).0, call.clone(), None, caller).await;
    let found = written(&served.unwrap())["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(found.contains("\"session\":\"s-1\""), "{found}");
    assert!(found.contains("\"principal\":\"client\""), "{found}");
    let no_headers = |_: &str| duplexer_types::headers::Values::Absent;
    let refused =
        serve_envelope(&running, call_context(Some(1)).0, call, Some(&no_headers), Caller::default()).await;
    assert_eq!(refused.unwrap_err().to_wire("tools/call").code.0, -32020);
}

/// A handler can be called without a transport.
#[tokio::test]
async fn a_handler_is_called_without_a_transport() {
    let running = started().await;
    let connection = Arc::new(Connection::ready(ProtocolVersion::LATEST_HANDSHAKE, ClientProfile::UNKNOWN));
    let cx = call_context(Some(1)).0;
    let outcome = running.call(&connection, cx, "tools/call", Some(r#"{"name":"echo"}"#)).await.unwrap();
    let result = outcome.into_typed::<duplexer_types::tool::CallToolResult>().unwrap();
    assert_eq!(result, duplexer_types::tool::CallToolResult::text("nothing"));
}
