//! Limits: rates, durations, concurrency, sizes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::jsonrpc::Body as _;
use duplexer_types::methods::Method;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{builder, call, connection, start, text};
use crate::builder::ServerBuilder;
use crate::driver::ServerRunner;
use crate::kernel::context::Context;
use crate::kernel::testing;
use crate::middleware::{
    AccessLog, ConcurrencyLimit, Deciding, Decision, LocalRateLimiter, Message, Middleware, Next, Quota,
    RateLimit, RateLimiter, RateRequest, RefusedBy, ResponseLimit, Timeout,
};
use crate::resource::Resource;
use crate::tool::Tool;

fn retry_after(result: Result<crate::Outcome, McpError>) -> Option<Duration> {
    match result {
        Ok(_) => None,
        Err(McpError::Busy(busy)) => {
            assert_eq!(busy.error.code, ErrorCode::LIMIT_EXCEEDED);
            Some(busy.retry_after)
        }
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn each_caller_has_a_quota_of_its_own_and_each_tool_another() {
    let limit = RateLimit::per_caller(Quota::per_second(2)).tool("slow", Quota::per_minute(1));
    let tool = |name: &str| Tool::new(name, || async { "done" });
    let running = start(builder().middleware(limit).tool(tool("quick")).tool(tool("slow"))).await;
    assert_eq!(retry_after(call(&running, "ada", "slow").await), None);
    assert_eq!(retry_after(call(&running, "ada", "slow").await), Some(Duration::from_secs(60)));
    assert_eq!(retry_after(call(&running, "ada", "quick").await), None);
    assert_eq!(retry_after(call(&running, "ada", "quick").await), Some(Duration::from_millis(500)));
    assert_eq!(retry_after(call(&running, "bob", "quick").await), None, "another caller");
    tokio::time::advance(Duration::from_millis(500)).await;
    assert_eq!(retry_after(call(&running, "ada", "quick").await), None);
}

#[tokio::test(start_paused = true)]
async fn a_limit_in_total_counts_all_callers_together() {
    let limit = RateLimit::in_total(Quota::per_second(1));
    let running = start(builder().middleware(limit).tool(Tool::new("t", || async {}))).await;
    assert_eq!(retry_after(call(&running, "ada", "t").await), None);
    assert!(retry_after(call(&running, "bob", "t").await).is_some());
}

/// A limiter whose decisions come later, as those of a store do.
struct Later;

impl RateLimiter for Later {
    fn decide(&self, request: &RateRequest<'_>, _: Instant) -> Deciding {
        let refused = request.tool.is_some_and(|(tool, _)| tool == "no");
        let decision: BoxFuture<'static, Decision> = Box::pin(async move {
            tokio::task::yield_now().await;
            if refused {
                Decision::Refused { by: RefusedBy::Tool, retry_after: Duration::from_secs(3) }
            } else {
                Decision::Admitted
            }
        });
        Deciding::Later(decision)
    }
}

#[tokio::test]
async fn a_limiter_can_decide_later() {
    let quota = Quota::per_second(1);
    let limit = RateLimit::of_tools().tool("no", quota).tool("yes", quota).limiter(Later);
    let tool = |name: &str| Tool::new(name, || async {});
    let running = start(builder().middleware(limit).tool(tool("no")).tool(tool("yes"))).await;
    assert_eq!(retry_after(call(&running, "ada", "yes").await), None);
    assert_eq!(retry_after(call(&running, "ada", "no").await), Some(Duration::from_secs(3)));
}

#[tokio::test(start_paused = true)]
async fn a_tool_can_have_a_timeout_of_its_own() {
    let timeout = Timeout::new(Duration::from_secs(1)).tool("render", Duration::from_secs(10));
    let nap = |name: &str| {
        Tool::new(name, || async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            "rested"
        })
    };
    let running = start(builder().middleware(timeout).tool(nap("render")).tool(nap("other"))).await;
    assert_eq!(text(&call(&running, "", "render").await.unwrap()), "rested");
    let McpError::Rpc(error) = call(&running, "", "other").await.unwrap_err() else { panic!("a timeout") };
    assert_eq!(error.code, ErrorCode::REQUEST_TIMEOUT);
    assert_eq!(error.message, "Request 'tools/call' timed out");
}

#[tokio::test]
async fn a_tool_can_have_a_limit_of_concurrent_calls_of_its_own() {
    let (running_now, most, go) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let render = {
        let (now, most, go) = (Arc::clone(&running_now), Arc::clone(&most), Arc::clone(&go));
        Tool::new("render", move || {
            let (now, most, go) = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&go));
            async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                go.notified().await;
                now.fetch_sub(1, Ordering::SeqCst);
            }
        })
    };
    let limit = ConcurrencyLimit::of_tools().tool("render", 2);
    let quick = Tool::new("quick", || async { "done" });
    let running = start(builder().middleware(limit).tool(render).tool(quick)).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let running = running.clone();
        calls.spawn(async move { call(&running, "", "render").await.is_ok() });
    }
    while running_now.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(text(&call(&running, "", "quick").await.unwrap()), "done", "another tool does not wait");
    while !calls.is_empty() {
        go.notify_one();
        if let Some(done) = calls.try_join_next() {
            assert!(done.unwrap());
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(most.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_result_beyond_the_limit_is_an_error_for_the_model_or_for_the_log() {
    let server = builder()
        .middleware(ResponseLimit::new(200))
        .tool(Tool::new("small", || async { "x" }))
        .tool(Tool::new("large", || async { "x".repeat(1000) }))
        .resource(Resource::text("a://large", "x".repeat(1000)).name("large"));
    let running = start(server).await;
    let write = async |method: Method, params: &'static str| {
        let runner = ServerRunner::new(running.clone(), connection("", &[]));
        let message = Message::new(method.name(), Some(params.into()));
        let response = runner.request(testing::context(Some(1_i64.into())), message).await.unwrap();
        let mut out = b"kept".to_vec();
        response.write(&mut out).map(|()| String::from_utf8(out).unwrap())
    };
    let small = write(Method::ToolsCall, r#"{"name":"small"}"#).await.unwrap();
    assert!(small.starts_with("kept{") && !small.contains("isError"), "{small}");
    let large = write(Method::ToolsCall, r#"{"name":"large"}"#).await.unwrap();
    assert!(large.starts_with("kept{") && large.contains("The limit is 200: request less."), "{large}");
    assert!(large.contains(r#""isError":true"#) && !large.contains("xxx"), "{large}");
    let error = write(Method::ResourcesRead, r#"{"uri":"a://large"}"#).await.unwrap_err();
    assert!(error.to_string().contains("and the limit is 200"), "{error}");
}

/// Middleware can call an included one with a message of its own.
#[tokio::test]
async fn an_included_middleware_passes_on_the_message_that_it_is_given() {
    let included: [Arc<dyn Middleware>; 5] = [
        Arc::new(Timeout::new(Duration::from_secs(60))),
        Arc::new(ConcurrencyLimit::new(1)),
        Arc::new(RateLimit::in_total(Quota::per_second(1))),
        Arc::new(ResponseLimit::new(1 << 20)),
        Arc::new(AccessLog),
    ];
    for layer in included {
        let rewrite = move |cx: Context, message: Message, next: Next| {
            let params = message.params().map(|params| params.replace("\"old\"", "\"new\"").into());
            layer.handle(cx, message.with_params(params), next)
        };
        let running =
            start(builder().middleware(rewrite).tool(Tool::new("new", || async { "the new one" }))).await;
        let outcome = call(&running, "ada", "old").await.unwrap();
        assert_eq!(text(&outcome), "the new one");
    }
}

/// A limiter of this process decides before its future is made; one that is called by other middleware has only the future.
#[tokio::test]
async fn a_rate_limit_counts_once_however_it_is_called() {
    let limit = RateLimit::in_total(Quota::per_hour(2));
    let inner = limit.clone();
    let called = move |cx: Context, message: Message, next: Next| inner.handle(cx, message, next);
    let check = async |server: ServerBuilder<()>| {
        let running = start(server.tool(Tool::new("t", || async {}))).await;
        for _ in 0..2 {
            call(&running, "ada", "t").await.unwrap();
        }
        let refused = call(&running, "ada", "t").await.unwrap_err();
        assert!(matches!(refused, McpError::Busy(_)), "{refused}");
    };
    check(builder().middleware(RateLimit::in_total(Quota::per_hour(2)))).await;
    check(builder().middleware(called)).await;
    let large = LocalRateLimiter::with_capacity(10);
    check(builder().middleware(limit.limiter(large))).await;
}
