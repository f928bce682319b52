//! Cancellation of requests, in both directions.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::{Wire, result};
use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{CallOptions, CancelMode, DispatchOptions, OnDrop, Outbound, OutboundRequest};
use crate::error::McpError;

/// Waits until it is cancelled, then does what the test requests.
fn looking(mode: &'static str, ended: mpsc::Sender<bool>) -> TestInbound {
    TestInbound::new().on("look", move |cx, _| {
        let ended = ended.clone();
        async move {
            cx.channel.cancellation().cancelled().await;
            ended.send(cx.channel.cancellation().is_cancelled()).await.unwrap();
            match mode {
                "returns" => Ok(Reply::of(&json!("too late"))),
                "fails" => Err(McpError::internal("too late")),
                _ => panic!("too late"),
            }
        }
    })
}

fn mode(cancel: CancelMode) -> DispatchOptions {
    DispatchOptions { cancel, ..DispatchOptions::default() }
}

/// DISP-24, DISP-25: whatever the handler returns.
#[tokio::test(start_paused = true)]
async fn a_request_whose_cancellation_is_only_signalled_is_never_answered() {
    for outcome in ["returns", "fails", "panics"] {
        let (ended, mut seen) = mpsc::channel(1);
        let mut wire = Wire::with(looking(outcome, ended), mode(CancelMode::Signal)).await;
        wire.request(&json!(1), "look").await;
        wire.expect_no_other_frame().await;
        wire.cancel(&json!(1)).await;
        assert_eq!(seen.recv().await, Some(true));
        wire.expect_no_other_frame().await;
        // The id is free while the old handler may still run.
        wire.request(&json!(1), "echo").await;
        assert_eq!(wire.receive().await, result(&json!(1), &json!({})));
    }
}

/// DISP-24, DISP-25.
#[tokio::test(start_paused = true)]
async fn an_interrupted_request_is_dropped_and_never_answered() {
    let dropped = Arc::new(Notify::new());
    let seen = Arc::clone(&dropped);
    let inbound = TestInbound::new().on("stuck", move |_, _| {
        let guard = NotifyOnDrop(Arc::clone(&seen));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let mut wire = Wire::with(inbound, mode(CancelMode::Interrupt)).await;
    wire.request(&json!("7"), "stuck").await;
    wire.expect_no_other_frame().await;
    // DISP-03: the peer may echo the id with the other JSON type.
    wire.cancel(&json!(7)).await;
    dropped.notified().await;
    wire.expect_no_other_frame().await;
}

/// A request that is cancelled while it is queued never starts.
#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_while_it_is_queued_never_starts() {
    for cancel in [CancelMode::Interrupt, CancelMode::Signal] {
        let (started, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (begun, end) = (Arc::clone(&started), Arc::clone(&done));
        let inbound = TestInbound::new()
            .on("start", move |_, _| {
                begun.notify_one();
                async { Ok(Reply::of(&json!({}))) }
            })
            .on("work", move |_, _| {
                let end = Arc::clone(&end);
                async move {
                    end.notified().await;
                    Ok(Reply::of(&json!({})))
                }
            });
        let mut options = mode(cancel);
        options.limits.running = 1;
        let mut wire = Wire::with(inbound, options).await;
        wire.request(&json!(1), "work").await;
        wire.request(&json!(2), "start").await;
        wire.cancel(&json!(2)).await;
        // Its response shows that everything before it has been read.
        wire.send_line("junk").await;
        assert_eq!(wire.receive().await["error"]["code"], -32700);
        done.notify_one();
        assert_eq!(wire.receive().await["id"], 1);
        wire.expect_no_other_frame().await;
        assert!(tokio::time::timeout(Duration::from_secs(1), started.notified()).await.is_err());
    }
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// DISP-03, overridden: 1 and "1" run together, and a cancel means the exact one.
#[tokio::test(start_paused = true)]
async fn a_cancel_prefers_the_exact_id_to_its_twin() {
    let inbound = TestInbound::new().on("look", |cx, _| async move {
        cx.channel.cancellation().cancelled().await;
        Ok(Reply::of(&json!("unheard")))
    });
    let mut wire = Wire::with(inbound, mode(CancelMode::Interrupt)).await;
    wire.request(&json!(1), "look").await;
    wire.request(&json!("1"), "look").await;
    wire.cancel(&json!("1")).await;
    // The string is free again, the number is not.
    wire.request(&json!("1"), "echo").await;
    assert_eq!(wire.receive().await, result(&json!("1"), &json!({})));
    wire.request(&json!(1), "echo").await;
    assert_eq!(wire.receive().await["error"]["code"], json!(-32600));
}

/// DISP-24, P-CAN-2: unknown, malformed and late cancels change nothing.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_names_no_request_is_ignored() {
    let mut wire = Wire::new(TestInbound::new()).await;
    for id in [json!(5), json!(true), json!(null), json!(1.5)] {
        wire.cancel(&id).await;
    }
    wire.send_line(r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#).await;
    wire.expect_no_other_frame().await;
    wire.cancel(&json!("fence")).await;
    wire.expect_no_other_frame().await;
}

/// DISP-27.
#[tokio::test(start_paused = true)]
async fn cancels_and_progress_still_reach_the_notification_handler() {
    let (seen, mut heard) = mpsc::channel(4);
    let inbound = TestInbound::new().on_notification(move |_, call| {
        let seen = seen.clone();
        async move { seen.send(call.method().to_owned()).await.unwrap() }
    });
    let mut wire = Wire::new(inbound).await;
    wire.cancel(&json!(1)).await;
    assert_eq!(heard.recv().await.as_deref(), Some("notifications/cancelled"));
    wire.send_line(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    )
    .await;
    assert_eq!(heard.recv().await.as_deref(), Some("notifications/progress"));
}

fn cancelled(id: &Value, reason: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": reason}})
}

/// DISP-07: the clock starts when the frame is written, and the late response is dropped.
#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_cancelled_at_the_peer() {
    let mut wire = Wire::new(TestInbound::new()).await;
    let peer = wire.peer.clone();
    let options = CallOptions::new().timeout(Duration::from_millis(1500));
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { peer.request(OutboundRequest::new("slow").options(options)).await });
    assert_eq!(wire.receive().await, json!({"jsonrpc": "2.0", "id": 1, "method": "slow"}));
    assert_eq!(wire.receive().await, cancelled(&json!(1), "timed out after 1.5s"));
    let outcome = calls.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(outcome.to_string(), "Request 'slow' timed out");
    wire.send_line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    wire.expect_no_other_frame().await;
}

/// DISP-07: the clock does not run before the frame is written.
#[tokio::test(start_paused = true)]
async fn a_timeout_counts_from_the_end_of_the_write() {
    let mut wire = Wire::holding(TestInbound::new(), DispatchOptions::default(), 64).await;
    let peer = wire.peer.clone();
    let mut calls = tokio::task::JoinSet::new();
    let long = json!({"text": "x".repeat(300)});
    let options = CallOptions::new().timeout(Duration::from_secs(1));
    let request = OutboundRequest::new("slow").params(long).options(options);
    calls.spawn(async move { peer.request(request).await });
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(wire.receive().await["method"], json!("slow"));
    wire.send_line(r#"{"jsonrpc":"2.0","id":1,"result":5}"#).await;
    assert_eq!(calls.join_next().await.unwrap().unwrap().unwrap(), "5");
}

/// DISP-09, DISP-10: unless the method must not be cancelled.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_dropped_is_cancelled_at_the_peer_unless_it_must_not_be() {
    let mut wire = Wire::new(TestInbound::new()).await;
    for on_drop in [OnDrop::CancelRemote, OnDrop::Detach] {
        let peer = wire.peer.clone();
        let mut calls = tokio::task::JoinSet::new();
        let options = CallOptions::new().on_drop(on_drop);
        calls.spawn(async move { peer.request(OutboundRequest::new("slow").options(options)).await });
        let asked = wire.receive().await;
        calls.shutdown().await;
        if on_drop == OnDrop::CancelRemote {
            assert_eq!(wire.receive().await, cancelled(&asked["id"], "caller cancelled"));
        }
        wire.expect_no_other_frame().await;
    }
}

/// DISP-09: a call that was answered, or never sent, is not cancelled.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_answered_or_never_sent_is_not_cancelled() {
    let mut wire = Wire::new(TestInbound::new()).await;
    let peer = wire.peer.clone();
    drop(peer.request(OutboundRequest::new("unpolled")));
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { peer.request(OutboundRequest::new("quick")).await });
    let asked = wire.receive().await;
    assert_eq!(asked["method"], json!("quick"));
    // DISP-03: a peer may echo the id as a string.
    wire.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"].to_string(), "error": {"code": 9, "message": "no", "data": [1]}}).to_string()).await;
    let refused = calls.join_next().await.unwrap().unwrap().unwrap_err().as_error_object().unwrap();
    assert_eq!((refused.code.0, &*refused.message, refused.data::<Vec<u8>>()), (9, "no", Some(vec![1])));
    wire.expect_no_other_frame().await;
}
