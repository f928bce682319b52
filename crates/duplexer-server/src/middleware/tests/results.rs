//! What changes, keeps or hides results: the cache, scopes of tools, redaction.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use duplexer_types::tool::{CallToolResult, ListToolsResult};
use serde_json::json;

use super::{builder, call, call_with, connection, start, text};
use crate::kernel::testing;
use crate::middleware::Redaction;
use crate::tool::{ResultCache, Tool, ToolError, ToolScopes};

/// Returns a tool that counts its calls.
fn counting(name: &str, calls: &Arc<AtomicUsize>) -> Tool<()> {
    let calls = Arc::clone(calls);
    Tool::new(name, move || {
        let number = calls.fetch_add(1, Ordering::SeqCst) + 1;
        async move { format!("call {number}") }
    })
}

#[tokio::test(start_paused = true)]
async fn results_of_tools_that_only_read_are_cached_by_caller_and_arguments() {
    let calls = Arc::default();
    let cache = ResultCache::new(Duration::from_secs(60)).tool("never", Duration::ZERO);
    let server = builder()
        .tool_middleware(cache)
        .tool(counting("reads", &calls).read_only())
        .tool(counting("never", &calls).read_only())
        .tool(counting("writes", &calls));
    let running = start(server).await;
    let check = async |client: &str, tool: &str, arguments: &str, expected: &str| {
        let outcome = call_with(&running, client, tool, arguments).await.unwrap();
        assert_eq!(text(&outcome), expected, "{client} {tool} {arguments}");
    };
    check("ada", "reads", "{}", "call 1").await;
    check("ada", "reads", "{}", "call 1").await;
    check("bob", "reads", "{}", "call 2").await;
    check("ada", "reads", r#"{"a":1}"#, "call 3").await;
    check("ada", "writes", "{}", "call 4").await;
    check("ada", "writes", "{}", "call 5").await;
    check("ada", "never", "{}", "call 6").await;
    check("ada", "never", "{}", "call 7").await;
    tokio::time::advance(Duration::from_secs(60)).await;
    check("ada", "reads", "{}", "call 8").await;
}

#[tokio::test]
async fn the_cache_is_bounded_and_can_be_shared_and_cleared() {
    let calls = Arc::default();
    let cache = ResultCache::new(Duration::from_secs(60)).max_entries(2).for_everyone();
    let running =
        start(builder().tool_middleware(cache.clone()).tool(counting("reads", &calls).read_only())).await;
    let get = async |client: &str, arguments: &str| {
        text(&call_with(&running, client, "reads", arguments).await.unwrap()).to_owned()
    };
    assert_eq!(get("ada", "{}").await, get("bob", "{}").await);
    get("ada", r#"{"a":1}"#).await;
    get("ada", r#"{"a":2}"#).await;
    assert_eq!(get("ada", r#"{"a":2}"#).await, "call 3");
    assert_eq!(get("ada", "{}").await, "call 4", "the oldest was removed");
    cache.clear();
    assert_eq!(get("ada", "{}").await, "call 5");
}

#[tokio::test]
async fn failures_are_not_cached() {
    let calls = Arc::new(AtomicUsize::new(0));
    let failing = {
        let calls = Arc::clone(&calls);
        Tool::new("fails", move || {
            calls.fetch_add(1, Ordering::SeqCst);
            async { Err::<(), _>(ToolError::new("busy")) }
        })
    };
    let cache = ResultCache::new(Duration::from_secs(60));
    let running = start(builder().tool_middleware(cache).tool(failing.read_only())).await;
    for _ in 0..2 {
        assert!(call(&running, "ada", "fails").await.unwrap().is_error());
    }
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_caller_sees_and_calls_the_tools_of_its_scopes() {
    let scopes = ToolScopes::new().tool("delete", ["write"]).prefix("admin_", ["admin"]);
    let tool = |name: &str| Tool::new(name, || async { "done" });
    let server =
        builder().visible(scopes.filter()).tool(tool("list")).tool(tool("delete")).tool(tool("admin_x"));
    let running = start(server).await;
    let seen = async |client: &str, scopes: &[&str]| {
        let connection = connection(client, scopes);
        let listed = testing::call(&running, &connection, Method::ToolsList, "{}").await.unwrap();
        let listed: ListToolsResult = listed.into_typed().unwrap();
        let mut callable = Vec::new();
        for name in ["list", "delete", "admin_x"] {
            let params = format!(r#"{{"name":"{name}"}}"#);
            if testing::call(&running, &connection, Method::ToolsCall, &params).await.is_ok() {
                callable.push(name.to_owned());
            }
        }
        assert_eq!(listed.tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>(), callable);
        callable.join(" ")
    };
    assert_eq!(seen("", &[]).await, "list");
    assert_eq!(seen("ada", &["read"]).await, "list");
    assert_eq!(seen("ada", &["write"]).await, "list delete");
    assert_eq!(seen("ada", &["write", "admin"]).await, "list delete admin_x");
}

#[tokio::test]
async fn secrets_are_redacted_in_texts_structures_and_errors() {
    let secret = "hunter-2-and-more";
    let redaction = Redaction::builder().secret(secret).build().unwrap();
    let server = builder()
        .middleware(redaction)
        .tool(Tool::new("text", move || async move { format!("It is {secret}.") }))
        .tool(Tool::new("json", move || async move {
            CallToolResult::structured(json!({ "key": secret, "n": 1 }))
        }))
        .tool(Tool::new("error", move || async move {
            Err::<(), _>(McpError::new(ErrorCode(7), format!("no {secret}")).with_data(json!([secret])))
        }))
        .on_custom("x/custom", move |_: serde_json::Value| async move {
            Ok::<_, McpError>(json!({ "a": secret }))
        });
    let running = start(server).await;
    assert_eq!(text(&call(&running, "", "text").await.unwrap()), "It is [redacted].");
    let outcome = call(&running, "", "json").await.unwrap();
    let result = outcome.downcast_ref::<CallToolResult>().unwrap();
    assert_eq!(result.structured_content.as_ref().unwrap().as_str(), r#"{"key":"[redacted]","n":1}"#);
    assert_eq!(text(&outcome), r#"{"key":"[redacted]","n":1}"#);
    let error = call(&running, "", "error").await.unwrap_err().to_wire("m");
    assert_eq!((&*error.message, error.data.unwrap().as_str()), ("no [redacted]", r#"["[redacted]"]"#));
    let custom =
        running.call(&connection("", &[]), testing::context(Some(1_i64.into())), "x/custom", None).await;
    assert_eq!(custom.unwrap().text(), r#"{"a":"[redacted]"}"#);
}
