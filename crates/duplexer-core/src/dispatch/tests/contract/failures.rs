//! Handlers that fail. The peer sees one failed call and no detail.

use std::fmt::Debug;
use std::time::Duration;

use duplexer_types::error::{ErrorCode, ErrorObject};
use serde_json::{Value, json};

use super::over_every_kind;
use crate::dispatch::CallOptions;
use crate::dispatch::tests::inbound::PanicOnDrop;
use crate::dispatch::tests::link::Kind;
use crate::dispatch::tests::{EventFields, Reply, TestInbound};
use crate::error::{CallError, McpError};

over_every_kind!(
    every_failure_is_one_answer_and_the_connection_goes_on,
    an_error_that_cannot_be_formatted_is_an_answer,
    a_handler_that_panics_while_it_is_dropped_does_no_harm,
);

fn failing() -> TestInbound {
    TestInbound::new()
        .on("refused", |_, _| async {
            let error = ErrorObject::new(ErrorCode(-7), "refused text").with_data(json!({"why": 1}));
            Err(McpError::Rpc(error))
        })
        .on("invalid", |_, _| async { Err(McpError::InvalidParams("secret".into())) })
        .on("internal", |_, _| async { Err(McpError::internal("secret")) })
        .on("panics", |_, _| async { panic!("secret") })
        .on("panics-late", |_, _| async {
            tokio::task::yield_now().await;
            std::panic::panic_any(5)
        })
        .on("panics-early", |_, _| -> std::future::Ready<_> { panic!("secret") })
        .on("panicking-schedule", |_, _| async { Ok(Reply::of(&json!({"schedule": "ordinary"}))) })
        .on("unwritable", |_, _| async { Ok(Reply::FailsToWrite) })
        .on("panicking", |_, _| async { Ok(Reply::PanicsOnWrite) })
        .on("booby", |_, _| async { Ok(Reply::PanicsOnDrop(PanicOnDrop)) })
        .on("drop-bomb", |_, _| {
            let bomb = PanicOnDrop;
            async move {
                let _bomb = bomb;
                Ok(Reply::of(&json!({})))
            }
        })
        .on("bomb-waits", |_, _| {
            let bomb = PanicOnDrop;
            async move {
                let _bomb = bomb;
                std::future::pending().await
            }
        })
        .on("unspeakable", |_, _| async { Err(McpError::internal(Unspeakable)) })
}

/// An error that panics when it is formatted, and when it is dropped.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic!("secret: display")
    }
}

impl std::error::Error for Unspeakable {}

/// DISP-32, DIR-04, RUN-19.
async fn every_failure_is_one_answer_and_the_connection_goes_on(kind: Kind) {
    let link = kind.link(TestInbound::new(), failing()).await;
    let internal = json!({"code": -32603, "message": "Internal server error"});
    let cases = [
        ("refused", json!({"code": -7, "message": "refused text", "data": {"why": 1}})),
        ("invalid", json!({"code": -32602, "message": "Invalid request parameters", "data": ""})),
        ("nowhere", json!({"code": -32601, "message": "Method not found", "data": "nowhere"})),
        ("internal", internal.clone()),
        ("panics", internal.clone()),
        ("panics-late", internal.clone()),
        ("panics-early", internal.clone()),
        ("unwritable", internal.clone()),
        ("panicking", internal.clone()),
        ("booby", internal.clone()),
        ("drop-bomb", internal),
    ];
    for (method, expected) in cases {
        let Err(CallError::Rpc(error)) = link.left.call(method, json!({})).await else {
            panic!("{method} is to fail");
        };
        assert_eq!(serde_json::to_value(&error).unwrap(), expected, "{method}");
        let params = json!({"after": method});
        assert_eq!(link.left.call("echo", params.clone()).await.unwrap(), params);
    }
    let answer: Value = link.left.call("panicking-schedule", json!({})).await.unwrap();
    assert_eq!(answer, json!({"schedule": "ordinary"}));
}

/// The `Display` of an error is its author's code too, and runs when a subscriber formats the log.
async fn an_error_that_cannot_be_formatted_is_an_answer(kind: Kind) {
    let _listening = tracing::subscriber::set_default(EventFields(|_: &str, value: &dyn Debug| {
        // Formats every event, as a subscriber that writes a log would.
        let _ = format!("{value:?}");
    }));
    let link = kind.link(TestInbound::new(), failing()).await;
    let Err(CallError::Rpc(error)) = link.left.call("unspeakable", json!({})).await else {
        panic!("it is to fail");
    };
    assert_eq!(error, ErrorObject::internal());
    link.left.call("echo", json!({})).await.unwrap();
}

async fn a_handler_that_panics_while_it_is_dropped_does_no_harm(kind: Kind) {
    let link = kind.link(TestInbound::new(), failing()).await;
    let options = CallOptions::new().timeout(Duration::from_millis(10));
    let outcome = link.left.call_with("bomb-waits", json!({}), options).await;
    assert!(matches!(outcome, Err(CallError::Timeout(_))));
    link.left.call("echo", json!({})).await.unwrap();
}
