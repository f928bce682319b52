//! Spans of requests and notifications to a server.

use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_server::middleware::Next;
use duplexer_server::{Context, Outcome};
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::methods;
use duplexer_types::prompt::{GetPromptParams, GetPromptResult};
use duplexer_types::tool::{CallToolParams, CallToolResult};
use opentelemetry::trace::{SpanKind, TraceContextExt as _};
use serde_json::json;

use super::*;

/// A tool whose name selects its outcome.
async fn tool(params: CallToolParams) -> Result<CallToolResult, McpError> {
    match params.name.as_str() {
        "refuse" => Err(ErrorObject::new(ErrorCode(-32099), "not today").into()),
        "break" => Err(McpError::internal("the secret cause")),
        "panic" => panic!("a secret"),
        "fail" => Ok(CallToolResult::text("it did not work").is_error(true)),
        name => Ok(CallToolResult::text(name)),
    }
}

/// OTEL-01, OTEL-02, OTEL-04, OTEL-06: the caller's span is the parent, and the span describes the request.
#[tokio::test]
async fn a_request_is_a_child_of_the_span_its_caller_names() {
    let recorder = Recorder::new();
    let server =
        recorder.server().on(methods::ToolsCall, tool).on(methods::PromptsGet, |_: GetPromptParams| async {
            Ok::<_, McpError>(GetPromptResult::new(Vec::new()))
        });
    serve(server, None, async |wire: &mut Wire| {
        let meta = json!({"traceparent": parent(), "tracestate": "v=1"});
        wire.ask("tools/call", json!({"name": "echo", "_meta": meta})).await;
        wire.ask("prompts/get", json!({"name": "hello"})).await;
        wire.ask("server/discover", json!({})).await;
    })
    .await;
    let span = recorder.span("tools/call echo");
    assert_eq!((span.span_context.trace_id(), span.parent_span_id), ids());
    assert!(span.parent_span_is_remote);
    assert_eq!(span.span_context.trace_state().header(), "v=1");
    assert_eq!((&span.span_kind, &span.status), (&SpanKind::Server, &Status::Unset));
    assert_eq!(span.instrumentation_scope.name(), "duplexer");
    for (key, value) in [
        ("mcp.method.name", Some("tools/call")),
        ("mcp.protocol.version", Some("2026-07-28")),
        ("jsonrpc.request.id", Some("7")),
        ("gen_ai.operation.name", Some("execute_tool")),
        ("gen_ai.tool.name", Some("echo")),
        ("gen_ai.prompt.name", None),
        ("error.type", None),
    ] {
        assert_eq!(attribute(&span, key).as_deref(), value, "{key}");
    }
    let prompt = recorder.span("prompts/get hello");
    assert_eq!(attribute(&prompt, "gen_ai.prompt.name").as_deref(), Some("hello"));
    assert_eq!(attribute(&prompt, "gen_ai.tool.name"), None);
    assert_eq!(prompt.parent_span_id, SpanId::INVALID);
    assert_eq!(attribute(&recorder.span("server/discover"), "gen_ai.operation.name"), None);
}

/// OTEL-04: a malformed trace context does not change the parent.
#[tokio::test]
async fn a_malformed_parent_leaves_the_ambient_one() {
    let recorder = Recorder::new();
    // The outer of two is the ambient span of the inner.
    let server = recorder.server().middleware(OtelMiddleware::with_provider(&recorder.provider));
    let server = server.on(methods::ToolsCall, tool);
    serve(server, None, async |wire: &mut Wire| {
        let meta = json!({"traceparent": "00-nonsense-01"});
        wire.ask("tools/call", json!({"name": "echo", "_meta": meta})).await;
    })
    .await;
    let [inner, outer] = &recorder.spans()[..] else { panic!("two spans") };
    assert_eq!(inner.parent_span_id, outer.span_context.span_id());
    assert_eq!(outer.parent_span_id, SpanId::INVALID);
}

/// OTEL-03: the error is recorded, with its code if it has one; causes are recorded and not sent to the peer.
#[tokio::test]
async fn a_failure_says_what_it_was() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, tool);
    serve(server, None, async |wire: &mut Wire| {
        for name in ["refuse", "break", "panic", "fail"] {
            wire.ask("tools/call", json!({"name": name})).await;
        }
        wire.ask("tools/call", json!({"name": 5})).await;
        wire.ask("no/such", json!({"name": "method"})).await;
    })
    .await;
    for (name, kind, code, text) in [
        ("tools/call refuse", "-32099", Some("-32099"), "not today"),
        ("tools/call break", "_OTHER", None, "internal error"),
        ("tools/call panic", "panic", None, "the handler panicked"),
        ("tools/call fail", "tool_error", None, ""),
        ("tools/call", "-32602", Some("-32602"), "Invalid request parameters"),
        ("no/such method", "-32601", Some("-32601"), "Method not found"),
    ] {
        let span = recorder.span(name);
        assert_eq!(attribute(&span, "error.type").as_deref(), Some(kind), "{name}");
        assert_eq!(attribute(&span, "rpc.response.status_code").as_deref(), code, "{name}");
        assert_eq!(span.status, Status::error(text), "{name}");
        let has_exception = span.events.events.iter().any(|event| event.name == "exception");
        assert_eq!(has_exception, kind == "_OTHER", "{name}");
    }
}

/// OTEL-01, OTEL-02: notifications have spans too, without an id.
#[tokio::test]
async fn a_notification_has_a_span() {
    let recorder = Recorder::new();
    let server = recorder.server().on_custom_notification("custom/news", |_: serde_json::Value| async {
        Err::<(), _>(McpError::new(ErrorCode(5), "no"))
    });
    serve(server, None, async |wire: &mut Wire| {
        wire.shake_hands().await;
        let params = json!({"name": "news", "_meta": {"traceparent": parent()}});
        wire.send(&json!({"jsonrpc": "2.0", "method": "custom/news", "params": params})).await;
        // Answered when the notification has been handled: both run on one thread, in their order.
        wire.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
        wire.next().await;
    })
    .await;
    let span = recorder.span("custom/news news");
    assert_eq!((span.span_context.trace_id(), span.parent_span_id), ids());
    assert_eq!(attribute(&span, "jsonrpc.request.id"), None);
    assert_eq!(attribute(&span, "mcp.protocol.version").as_deref(), Some("2025-11-25"));
    assert_eq!(span.status, Status::error("no"));
    recorder.span("notifications/initialized");
    assert_eq!(attribute(&recorder.span("initialize"), "jsonrpc.request.id").as_deref(), Some("0"));
}

/// OTEL-01: inner middleware runs inside the span, also after an await.
#[tokio::test]
async fn the_span_is_current_in_everything_further_in() {
    async fn look(cx: Context, message: Message, next: Next) -> Result<Outcome, McpError> {
        let current = || opentelemetry::Context::current().span().span_context().trace_id();
        let before = current();
        tokio::task::yield_now().await;
        assert_eq!((before, current()), (ids().0, ids().0));
        next.run(cx, message).await
    }
    let recorder = Recorder::new();
    let server = recorder.server().middleware(look).on(methods::ToolsCall, tool);
    let answer = serve(server, None, async |wire: &mut Wire| {
        wire.ask("tools/call", json!({"name": "echo", "_meta": {"traceparent": parent()}})).await
    })
    .await;
    assert_eq!(answer["result"]["content"][0]["text"], "echo");
}

/// Texts of the peer are truncated before they become names.
#[tokio::test]
async fn long_names_are_cut() {
    let recorder = Recorder::new();
    serve(recorder.server(), None, async |wire: &mut Wire| {
        wire.ask(&"é".repeat(1000), json!({"name": "x".repeat(1000)})).await;
    })
    .await;
    let name = format!("{} {}", "é".repeat(128), "x".repeat(256));
    assert_eq!(recorder.names(), [name]);
}

/// A span ends with its request, also when the request is cancelled.
#[tokio::test]
async fn a_cancelled_request_ends_its_span() {
    let recorder = Recorder::new();
    let server = recorder.server().on(methods::ToolsCall, |cx: Context<()>, _: CallToolParams| async move {
        cx.progress(1.0).await;
        std::future::pending::<Result<CallToolResult, McpError>>().await
    });
    serve(server, None, async |wire: &mut Wire| {
        wire.shake_hands().await;
        let params = json!({"name": "wait", "_meta": {"progressToken": 1}});
        wire.send(&json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params})).await;
        wire.next().await;
        wire.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
        )
        .await;
        wire.send(&json!({"jsonrpc": "2.0", "id": 4, "method": "ping"})).await;
        wire.next().await;
    })
    .await;
    assert_eq!(recorder.span("tools/call wait").status, Status::Unset);
}
