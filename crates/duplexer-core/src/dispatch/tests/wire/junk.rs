//! Lines that are not a frame, and frames without a receiver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Wire, error, result};
use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{Batches, DispatchOptions, NotificationRoute, Schedule, lock};

const PARSE: (i64, &str) = (-32700, "Parse error");

/// DISP-22, STDIO-02: a request whose id can be read is answered under it, whatever else is wrong.
#[tokio::test(start_paused = true)]
async fn a_malformed_request_is_answered_under_its_id_if_that_can_be_read() {
    let mut wire = Wire::new(TestInbound::new()).await;
    let cases = [
        (r#"{"jsonrpc":"1.0","id":7,"method":"echo"}"#, json!(7), "jsonrpc is not \"2.0\""),
        (r#"{"jsonrpc":"2.0","id":"a","method":5}"#, json!("a"), "the method is not a string"),
        (r#"{"jsonrpc":"2.0","id":8,"method":"echo","params":[1]}"#, json!(8), "params is not an object"),
        (r#"{"jsonrpc":"2.0","id":9}"#, json!(9), "there is neither a method nor a result"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"echo","method":"x"}"#, json!(1), "a member stands twice"),
    ];
    for (line, id, reason) in cases {
        wire.send_line(line).await;
        assert_eq!(wire.receive().await, error(Some(&id), -32600, &format!("Invalid request: {reason}")));
    }
    wire.expect_no_other_frame().await;
}

/// TYP-02, TYP-05.
#[tokio::test(start_paused = true)]
async fn a_bad_id_is_refused_without_one_and_is_never_a_notification() {
    let intercepted = Arc::new(Mutex::new(0));
    let count = Arc::clone(&intercepted);
    let inbound = TestInbound::new().on_read(move |_| {
        *lock(&count) += 1;
        NotificationRoute::Forward
    });
    let mut wire = Wire::new(inbound).await;
    for id in ["null", "1.5", "true", "[]", "{}"] {
        wire.send_line(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"echo"}}"#)).await;
        let message = "Invalid request: the id is neither a string nor an integer";
        assert_eq!(wire.receive().await, error(None, -32600, message), "{id}");
    }
    wire.expect_no_other_frame().await;
    assert_eq!(*lock(&intercepted), 0);
}

/// DISP-22: and serving continues after each.
#[tokio::test(start_paused = true)]
async fn what_is_not_json_or_too_long_is_a_parse_error_without_an_id() {
    let mut wire = Wire::new(TestInbound::new()).await;
    let long = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(5000));
    for line in ["{", "nonsense", &long] {
        wire.send_line(line).await;
        assert_eq!(wire.receive().await, error(None, PARSE.0, PARSE.1));
        wire.expect_no_other_frame().await;
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":3,"method":"echo","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    wire.send_line(&deep).await;
    assert_eq!(wire.receive().await, error(Some(&json!(3)), -32600, "Invalid request: nested too deeply"));
}

/// Two peers could answer each other's errors forever; a valid frame resets the count.
#[tokio::test(start_paused = true)]
async fn after_eight_errors_without_an_id_malformed_input_is_ignored_until_there_is_a_frame() {
    let mut wire = Wire::new(TestInbound::new()).await;
    for _ in 0..20 {
        wire.send_line("junk").await;
        // An error without an id does not reset the count.
        wire.send_line(r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}"#).await;
    }
    for _ in 0..8 {
        assert_eq!(wire.receive().await, error(None, PARSE.0, PARSE.1));
    }
    // A readable id is always answered, even now, and is not a frame in between.
    wire.send_line(r#"{"jsonrpc":"2.0","id":5,"method":7}"#).await;
    assert_eq!(wire.receive().await["id"], json!(5));
    wire.expect_no_other_frame().await;
    wire.send_line("junk").await;
    assert_eq!(wire.receive().await, error(None, PARSE.0, PARSE.1));
}

/// DISP-12, P-CAN-7: nor is anything that looks like a response or a notification gone wrong.
#[tokio::test(start_paused = true)]
async fn responses_are_never_answered() {
    let mut wire = Wire::new(TestInbound::new()).await;
    for line in [
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}"#,
        r#"{"jsonrpc":"2.0","id":99,"error":"not an object"}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{},"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":5}"#,
        r#"{"jsonrpc":"2.0","method":"x","params":[]}"#,
    ] {
        wire.send_line(line).await;
    }
    wire.expect_no_other_frame().await;
}

/// DISP-23, overridden: the second request is refused, the first continues.
#[tokio::test(start_paused = true)]
async fn a_second_request_with_an_id_in_flight_is_refused() {
    let gate = Arc::new(tokio::sync::Notify::new());
    let opened = Arc::clone(&gate);
    let inbound = TestInbound::new().on("wait", move |_, _| {
        let gate = Arc::clone(&gate);
        async move {
            gate.notified().await;
            Ok(Reply::of(&json!("first")))
        }
    });
    let mut wire = Wire::new(inbound).await;
    wire.request(&json!(1), "wait").await;
    wire.request(&json!(1), "echo").await;
    assert_eq!(
        wire.receive().await,
        error(Some(&json!(1)), -32600, "Invalid request: id 1 is already in flight")
    );
    // Its twin of the other JSON type is another request.
    wire.request(&json!("1"), "echo").await;
    assert_eq!(wire.receive().await, result(&json!("1"), &json!({})));
    opened.notify_one();
    assert_eq!(wire.receive().await, result(&json!(1), &json!("first")));
    // Now it is free again.
    wire.request(&json!(1), "echo").await;
    assert_eq!(wire.receive().await, result(&json!(1), &json!({})));
}

/// DISP-22: with the text where there is one; and an observer that panics changes nothing.
#[tokio::test(start_paused = true)]
async fn an_observer_sees_what_could_not_be_read() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let options = DispatchOptions {
        observer: Some(Arc::new(move |unreadable| {
            lock(&sink).push((unreadable.text.map(ToOwned::to_owned), unreadable.reason.to_string()));
            panic!("secret: observer");
        })),
        ..DispatchOptions::default()
    };
    let mut wire = Wire::with(TestInbound::new(), options).await;
    let long = "x".repeat(5000);
    for line in ["{", "[]", &long, r#"{"jsonrpc":"2.0","result":1}"#] {
        wire.send_line(line).await;
    }
    for code in [-32700, -32600, -32700] {
        assert_eq!(wire.receive().await["error"]["code"], json!(code));
    }
    wire.expect_no_other_frame().await;
    let texts: Vec<_> = lock(&seen).iter().map(|(text, _)| text.clone()).collect();
    let readable = r#"{"jsonrpc":"2.0","result":1}"#;
    assert_eq!(texts, [Some("{".into()), Some("[]".into()), None, Some(readable.into())]);
    assert_eq!(lock(&seen)[3].1, "a result without a readable id");
}

/// Section on batches: refused unless the revision has them.
#[tokio::test(start_paused = true)]
async fn a_batch_is_refused_if_the_revision_has_none() {
    let mut wire = Wire::new(TestInbound::new()).await;
    wire.send_line(r#"[{"jsonrpc":"2.0","id":1,"method":"echo"}]"#).await;
    let message = "Invalid request: batches are not part of this protocol revision";
    assert_eq!(wire.receive().await, error(None, -32600, message));
    wire.expect_no_other_frame().await;
}

#[tokio::test(start_paused = true)]
async fn a_batch_is_split_if_the_revision_has_them() {
    let inbound = TestInbound::new().batches(Batches::Accepted).schedule("first", Schedule::Inline);
    let mut wire = Wire::new(inbound).await;
    wire.send_line(concat!(
        r#"[{"jsonrpc":"2.0","id":1,"method":"echo"},{"jsonrpc":"2.0","method":"note"},5,"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"first"},[],{"jsonrpc":"2.0","id":3,"method":4},"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"echo"}]"#
    ))
    .await;
    let mut heard: Vec<Value> = Vec::new();
    for _ in 0..6 {
        heard.push(wire.receive().await);
    }
    for expected in [
        result(&json!(1), &json!({})),
        error(None, -32600, "Invalid request: a message is an object"),
        error(Some(&json!(2)), -32600, "Invalid request: not allowed in a batch"),
        error(None, -32600, "Invalid request: a batch does not hold batches"),
        error(Some(&json!(3)), -32600, "Invalid request: the method is not a string"),
        result(&json!(4), &json!({})),
    ] {
        assert!(heard.contains(&expected), "{expected} in {heard:?}");
    }
    wire.send_line("[]").await;
    assert_eq!(
        wire.receive().await,
        error(None, -32600, "Invalid request: a batch holds at least one message")
    );
    wire.expect_no_other_frame().await;
}

/// Messages of a batch do not wait for each other, even if nothing else arrives.
#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_does_not_delay_the_rest_of_its_batch() {
    let inbound = TestInbound::new()
        .batches(Batches::Accepted)
        .on("wait", |_, _| async { std::future::pending().await });
    let mut wire = Wire::new(inbound).await;
    let wait = |id: u32| json!({"jsonrpc": "2.0", "id": id, "method": "wait"});
    let echo = json!({"jsonrpc": "2.0", "id": 9, "method": "echo"});
    wire.send_line(&json!([wait(1), wait(2), wait(3), wait(4), echo]).to_string()).await;
    let heard = tokio::time::timeout(Duration::from_secs(1), wire.receive()).await;
    assert_eq!(heard.expect("an answer")["id"], 9);
}

/// The result of a handler may contain line breaks; a frame is one line.
#[tokio::test(start_paused = true)]
async fn a_result_with_line_breaks_is_one_line() {
    let inbound =
        TestInbound::new().on("pretty", |_, _| async { Ok(Reply::Text("{\n  \"a\": 1\n}".into())) });
    let mut wire = Wire::new(inbound).await;
    wire.request(&json!(1), "pretty").await;
    assert_eq!(wire.receive().await, result(&json!(1), &json!({"a": 1})));
    wire.expect_no_other_frame().await;
}

/// DISP-21: a request that is pipelined behind an inline method runs after it.
#[tokio::test(start_paused = true)]
async fn nothing_is_read_while_an_inline_method_runs() {
    let done = Arc::new(Mutex::new(false));
    let (set, look) = (Arc::clone(&done), Arc::clone(&done));
    let inbound = TestInbound::new()
        .schedule("initialize", Schedule::Inline)
        .on("initialize", move |_, _| {
            let set = Arc::clone(&set);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                *lock(&set) = true;
                Ok(Reply::of(&json!({})))
            }
        })
        .on("look", move |_, _| {
            let seen = *lock(&look);
            async move { Ok(Reply::of(&json!(seen))) }
        });
    let mut wire = Wire::new(inbound).await;
    wire.request(&json!(1), "initialize").await;
    wire.request(&json!(2), "look").await;
    assert_eq!(wire.receive().await["id"], json!(1));
    assert_eq!(wire.receive().await, result(&json!(2), &json!(true)));
}
