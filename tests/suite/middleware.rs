//! Middleware: order, rewriting, rejection, and the included middleware.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_server::middleware::{AccessLog, ConcurrencyLimit, Middleware, Next, Timeout};
use duplexer_server::{Context, Outcome, Server};
use duplexer_types::error::ErrorCode;
use duplexer_types::lifecycle::{Implementation, InitializeResult};
use duplexer_types::methods;
use duplexer_types::subscription::{SubscriptionsListenParams, SubscriptionsListenResult};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::matrix::{Link, Needs, in_both_eras};
use crate::wire::{Wire, initialize};
use crate::{ENVELOPE, HANDSHAKE};

type Entries = Arc<Mutex<Vec<String>>>;

fn noting(log: &Entries, name: &'static str) -> impl Middleware {
    let log = Arc::clone(log);
    move |cx: Context, message: Message, next: Next| {
        let log = Arc::clone(&log);
        async move {
            log.lock().unwrap().push(format!("{name} {} {}", cx.method(), cx.protocol_version()));
            let outcome = next.run(cx, message).await;
            let ending = match &outcome {
                Ok(_) => "done".to_owned(),
                Err(error) => error.to_string(),
            };
            log.lock().unwrap().push(format!("{name} {ending}"));
            outcome
        }
    }
}

fn echoing() -> duplexer_server::ServerBuilder<()> {
    Server::builder("s", "0").on_custom("x/echo", |params: Value| async { Ok::<_, McpError>(params) })
}

/// RUN-02, RUN-01: outermost first, around the handshake, unknown methods and invalid params; before the handshake in
/// the default revision.
#[tokio::test]
async fn middleware_sees_everything_outermost_first() {
    let log = Entries::default();
    let server = echoing().middleware(noting(&log, "outer")).middleware(noting(&log, "inner"));
    let mut wire = Wire::connect(Link::Memory, server.build().unwrap()).await;
    let entries = || std::mem::take(&mut *log.lock().unwrap());
    wire.result("initialize", initialize("2024-11-05", json!({}))).await;
    let expected = ["outer initialize 2025-11-25", "inner initialize 2025-11-25", "inner done", "outer done"];
    assert_eq!(entries(), expected);
    wire.error("no/such", json!({})).await;
    assert_eq!(entries()[1..3], ["inner no/such 2024-11-05", "inner Method not found"]);
    wire.error("tools/call", json!({ "name": 5 })).await;
    assert_eq!(entries()[3], "outer invalid request parameters");
}

/// RUN-02: middleware can pass a different message to the inner layers.
#[tokio::test]
async fn middleware_rewrites_messages() {
    let rewrite = |cx: Context, message: Message, next: Next| async move {
        if cx.method() != "x/old" {
            return next.run(cx, message).await;
        }
        let message = message.with_method("x/echo").with_params(Some(r#"{"re":"written"}"#.into()));
        next.run(cx, message).await
    };
    let server = || echoing().middleware(rewrite).build().unwrap();
    in_both_eras(server, async |mut wire| {
        assert_eq!(wire.result("x/old", json!({ "as": "sent" })).await["re"], "written");
        assert_eq!(wire.result("x/echo", json!({ "as": "sent" })).await["as"], "sent");
    })
    .await;
}

/// RUN-02: middleware can reject a message, and can return a result itself.
#[tokio::test]
async fn middleware_vetoes_and_answers() {
    let guard = |cx: Context, message: Message, next: Next| async move {
        match cx.method() {
            "x/no" => Err(McpError::new(ErrorCode(9), "vetoed")),
            "x/yes" => Outcome::custom(&json!({ "by": "middleware" })),
            _ => next.run(cx, message).await,
        }
    };
    let server = || echoing().middleware(guard).build().unwrap();
    in_both_eras(server, async |mut wire| {
        assert_eq!(wire.error("x/no", json!({})).await, (9, "vetoed".to_owned(), Value::Null));
        let result = wire.result("x/yes", json!({})).await;
        assert_eq!(result["by"], "middleware");
        assert_eq!(result.get("resultType").is_some(), wire.is_enveloped());
    })
    .await;
}

/// RUN-11: a rejected handshake has no effect, even if the inner layers had accepted it.
#[tokio::test]
async fn a_vetoed_handshake_leaves_nothing_behind() {
    let guard = |cx: Context, message: Message, next: Next| async move {
        let banned = cx.raw_params().is_some_and(|params| params.contains("banned"));
        let outcome = next.run(cx, message).await?;
        if banned { Err(McpError::new(ErrorCode(9), "vetoed")) } else { Ok(outcome) }
    };
    let mut wire = Wire::connect(Link::Memory, echoing().middleware(guard).build().unwrap()).await;
    let banned = json!({ "experimental": { "banned": {} } });
    assert_eq!(wire.error("initialize", initialize("2024-11-05", banned)).await.0, 9);
    assert_eq!(wire.error("x/echo", json!({})).await.0, -32602);
    wire.open(HANDSHAKE).await;
    assert_eq!(wire.result("x/echo", json!({ "a": 1 })).await, json!({ "a": 1 }));
}

/// RUN-11: the connection uses the result that the client receives, and the params that the client sent.
#[tokio::test]
async fn a_handshake_agrees_on_what_its_client_receives() {
    let answer = |cx: Context, message: Message, next: Next| async move {
        if cx.method() == "initialize" {
            let capabilities = cx.server().server().capabilities(cx.protocol_version());
            let info = Implementation::new("guard", "1");
            return Ok(Outcome::of(InitializeResult::new("2025-06-18", capabilities, info)));
        }
        next.run(cx, message).await
    };
    let server = Server::builder("s", "0").middleware(answer).on_custom(
        "x/facts",
        |cx: Context<()>, _: Value| async move {
            let client = cx.connection().client().info.as_ref().map(|info| info.name.clone());
            Ok::<_, McpError>(json!({ "version": cx.protocol_version().as_str(), "client": client }))
        },
    );
    let server = server.build().unwrap();
    for link in Link::in_process(HANDSHAKE, Needs::Session) {
        let mut wire = Wire::connect(link, server.clone()).await;
        let result = wire.result("initialize", initialize(HANDSHAKE, json!({}))).await;
        assert_eq!(
            (&result["protocolVersion"], &result["serverInfo"]["name"]),
            (&json!("2025-06-18"), &json!("guard"))
        );
        let facts = wire.result("x/facts", json!({})).await;
        assert_eq!(facts, json!({ "version": "2025-06-18", "client": "wire" }));
    }
}

/// A server with a method that runs until the test ends it, and a long-lived subscription.
fn lasting(middleware: impl Middleware, started: &Arc<Notify>, go_on: &Arc<Notify>) -> Server {
    let (started, go_on) = (Arc::clone(started), Arc::clone(go_on));
    echoing()
        .middleware(middleware)
        .on_custom("x/last", move |_: Value| {
            started.notify_one();
            let go_on = Arc::clone(&go_on);
            async move {
                go_on.notified().await;
                Ok::<_, McpError>(())
            }
        })
        .on(methods::SubscriptionsListen, |cx: Context<()>, _: SubscriptionsListenParams| async move {
            cx.notify::<methods::SubscriptionsAcknowledged>(
                &duplexer_types::subscription::SubscriptionsAcknowledgedParams::new(
                    duplexer_types::subscription::SubscriptionFilter::new(),
                ),
            )
            .await;
            cx.closing().cancelled().await;
            Ok::<_, McpError>(SubscriptionsListenResult::new())
        })
        .build()
        .unwrap()
}

/// P-CAN-5: the `Timeout` middleware ends requests, but not subscriptions.
#[tokio::test(start_paused = true)]
async fn a_request_that_takes_too_long_is_ended() {
    let (started, go_on) = (Arc::default(), Arc::default());
    let server = lasting(Timeout::new(Duration::from_secs(5)), &started, &go_on);
    let mut wire = Wire::connect(Link::Memory, server).await;
    wire.open(ENVELOPE).await;
    let listen = wire.request("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(wire.next().await["method"], "notifications/subscriptions/acknowledged");
    let (code, text, _) = wire.error("x/last", json!({})).await;
    assert_eq!((code, &*text), (-32001, "Request 'x/last' timed out"));
    let (rest, ended) = wire.finish().await;
    assert!(rest.len() == 1 && rest[0]["id"] == listen && ended.is_orderly(), "{rest:?}");
}

/// The `ConcurrencyLimit` middleware queues further requests; notifications and subscriptions pass.
#[tokio::test]
async fn at_most_so_many_requests_run_at_a_time() {
    let (started, go_on): (Arc<Notify>, Arc<Notify>) = (Arc::default(), Arc::default());
    let server = lasting(ConcurrencyLimit::new(1), &started, &go_on);
    let mut wire = Wire::connect(Link::Memory, server).await;
    wire.open(ENVELOPE).await;
    wire.request("subscriptions/listen", json!({ "notifications": {} })).await;
    assert_eq!(wire.next().await["method"], "notifications/subscriptions/acknowledged");
    let first = wire.request("x/last", json!({})).await;
    started.notified().await;
    let second = wire.request("x/echo", json!({})).await;
    go_on.notify_one();
    assert_eq!(wire.next().await["id"], first);
    assert_eq!(wire.next().await["id"], second);
}

/// The `AccessLog` middleware changes nothing.
#[tokio::test]
async fn logging_leaves_everything_as_it_is() {
    in_both_eras(
        || echoing().middleware(AccessLog).build().unwrap(),
        async |mut wire| {
            assert_eq!(wire.result("x/echo", json!({ "a": 1 })).await["a"], 1);
            assert_eq!(wire.error("no/such", json!({})).await.0, -32601);
        },
    )
    .await;
}
