//! Spans of requests to the peer, and the context that is sent with them.

use duplexer_core::dispatch::CallOptions;
use duplexer_core::error::McpError;
use duplexer_server::Context;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use opentelemetry::trace::SpanKind;
use opentelemetry::trace::noop::NoopTracerProvider;
use serde_json::{Value as Json, json};

use super::*;

/// A tool that pings the client for a second at most.
async fn ping(cx: Context<()>, _: CallToolParams) -> Result<CallToolResult, McpError> {
    let options = CallOptions::new().timeout(std::time::Duration::from_secs(1));
    let answer = cx.request::<methods::Ping>(&EmptyParams::new(), options).await;
    Ok(CallToolResult::text(if answer.is_ok() { "fine" } else { "not fine" }))
}

/// The client calls the tool with this `_meta`. Returns the request that the tool sends.
async fn called(wire: &mut Wire, meta: Json) -> Json {
    wire.shake_hands().await;
    let params = json!({"name": "ping", "_meta": meta});
    wire.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})).await;
    wire.next().await
}

/// As [`called`], and the client responds and waits for the result of the tool.
async fn answered(wire: &mut Wire, meta: Json, mut answer: Json) -> Json {
    let asked = called(wire, meta).await;
    answer["jsonrpc"] = "2.0".into();
    answer["id"] = asked["id"].clone();
    wire.send(&answer).await;
    wire.next().await;
    asked
}

/// OTEL-05, P-META-12: the call is a child of the request it belongs to, and its context is sent to the peer.
#[tokio::test]
async fn a_call_made_in_a_handler_is_a_child_of_its_request() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, ping);
    let hook = OtelHook::with_provider(&recorder.provider);
    let meta = json!({"traceparent": parent(), "tracestate": "v=1", "baggage": "user=a%20b"});
    let script = async |wire: &mut Wire| answered(wire, meta, json!({"result": {}})).await;
    let asked = serve(server, Some(hook), script).await;
    let (request, call) = (recorder.span("tools/call ping"), recorder.span("MCP send ping"));
    assert_eq!((request.span_context.trace_id(), request.parent_span_id), ids());
    assert_eq!(call.parent_span_id, request.span_context.span_id());
    assert_eq!(call.span_context.trace_id(), ids().0);
    assert_eq!((&call.span_kind, &call.status), (&SpanKind::Client, &Status::Unset));
    assert_eq!(attribute(&call, "mcp.method.name").as_deref(), Some("ping"));
    assert_eq!(attribute(&call, "jsonrpc.request.id"), Some(asked["id"].to_string()));
    let traceparent = format!("00-{TRACE}-{}-01", call.span_context.span_id());
    let expected = json!({"traceparent": traceparent, "tracestate": "v=1", "baggage": "user=a%20b"});
    assert_eq!(asked["params"]["_meta"], expected);
}

/// OTEL-05: an error response of the peer is recorded on the span.
#[tokio::test]
async fn an_error_of_the_peer_is_on_the_span() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, ping);
    let hook = OtelHook::with_provider(&recorder.provider);
    let answer = json!({"error": {"code": -32601, "message": "what?"}});
    serve(server, Some(hook), async |wire: &mut Wire| answered(wire, json!({}), answer).await).await;
    let call = recorder.span("MCP send ping");
    assert_eq!(attribute(&call, "error.type").as_deref(), Some("-32601"));
    assert_eq!(attribute(&call, "rpc.response.status_code").as_deref(), Some("-32601"));
    assert_eq!(call.status, Status::error("what?"));
    assert_eq!(recorder.span("tools/call ping").status, Status::Unset);
}

/// OTEL-05: the end of the connection is not the call's error; its span ends all the same.
#[tokio::test]
async fn a_connection_that_ends_is_no_error_of_the_call() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, ping);
    let hook = OtelHook::with_provider(&recorder.provider);
    serve(server, Some(hook), async |wire: &mut Wire| called(wire, json!({})).await).await;
    let call = recorder.span("MCP send ping");
    assert_eq!((call.status.clone(), attribute(&call, "error.type")), (Status::Unset, None));
}

/// OTEL-05: a call that times out fails without a response.
#[tokio::test(start_paused = true)]
async fn a_call_without_an_answer_has_no_status_code() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, ping);
    let hook = OtelHook::with_provider(&recorder.provider);
    serve(server, Some(hook), async |wire: &mut Wire| {
        called(wire, json!({})).await;
        while wire.next().await["id"] != 3 {}
    })
    .await;
    let call = recorder.span("MCP send ping");
    assert_eq!(attribute(&call, "error.type").as_deref(), Some("-32001"));
    assert_eq!(attribute(&call, "rpc.response.status_code"), None);
}

/// OTEL-05: without a provider nothing is added, and the incoming context is propagated unchanged.
#[tokio::test]
async fn without_a_provider_a_context_is_passed_on_and_none_is_made() {
    let noop = NoopTracerProvider::new();
    for (meta, expected) in [
        (json!({}), Json::Null),
        (json!({"traceparent": parent()}), json!({"traceparent": parent()})),
        (json!({"baggage": "a=b"}), json!({"baggage": "a=b"})),
    ] {
        let server = Server::builder("quiet", "0").middleware(OtelMiddleware::with_provider(&noop));
        let server = server.on(methods::ToolsCall, ping);
        let script = async |wire: &mut Wire| answered(wire, meta, json!({"result": {}})).await;
        let asked = serve(server, Some(OtelHook::with_provider(&noop)), script).await;
        assert_eq!(asked["params"]["_meta"], expected);
    }
}

/// `new` uses the global provider, which is not set here and so records nothing.
#[tokio::test]
async fn the_global_provider_is_the_default() {
    let server =
        Server::builder("global", "0").middleware(OtelMiddleware::new()).on(methods::ToolsCall, ping);
    let script = async |wire: &mut Wire| answered(wire, json!({}), json!({"result": {}})).await;
    let asked = serve(server, Some(OtelHook::default()), script).await;
    assert_eq!((&asked["method"], &asked["params"]), (&json!("ping"), &json!({})));
}
