//! The end of the input, of the run, and of the peer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Wire, error, result};
use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{
    CancelMode, Dispatch, DispatchLimits, DispatchOptions, FailureMode, JsonRpcDispatcher, Outbound,
    OutboundRequest, RunError, Schedule,
};
use crate::error::{CallError, McpError};
use crate::transport::memory;

fn by_id(mut heard: Vec<Value>) -> Vec<Value> {
    heard.sort_by_key(|frame| frame["id"].as_i64());
    heard
}

/// Answers after so many seconds.
fn slow() -> TestInbound {
    TestInbound::new().on("slow", |_, call| async move {
        let seconds: Value = serde_json::from_str(call.params().unwrap()).unwrap();
        tokio::time::sleep(Duration::from_secs(seconds["s"].as_u64().unwrap())).await;
        Ok(Reply::of(&json!("done")))
    })
}

async fn ask_slow(wire: &mut Wire, id: i64, seconds: u64) {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "slow", "params": {"s": seconds}});
    wire.send_line(&call.to_string()).await;
}

/// DISP-34, overridden: accepted requests have ten seconds to end, then they are aborted and answered.
#[tokio::test(start_paused = true)]
async fn at_the_end_of_the_input_accepted_requests_are_finished_and_the_rest_fails() {
    let mut wire = Wire::new(slow()).await;
    for (id, seconds) in [(1, 0), (2, 2), (3, 60), (4, 60)] {
        ask_slow(&mut wire, id, seconds).await;
    }
    wire.cancel(&json!(4)).await;
    wire.end_input();
    let start = Instant::now();
    let (heard, ended) = wire.rest().await;
    ended.unwrap();
    assert_eq!(
        by_id(heard),
        [
            result(&json!(1), &json!("done")),
            result(&json!(2), &json!("done")),
            error(Some(&json!(3)), -32000, "Connection closed"),
        ]
    );
    assert_eq!(start.elapsed(), Duration::from_secs(10));
}

/// Workers that were added for handlers that waited stay for the next ones. They end with the connection.
#[tokio::test(start_paused = true)]
async fn workers_without_work_serve_the_next_requests_and_do_not_delay_the_end() {
    let mut wire = Wire::new(slow()).await;
    for burst in 0..2 {
        // More than are kept.
        for id in 0..100 {
            ask_slow(&mut wire, burst * 100 + id, 1).await;
        }
        let start = Instant::now();
        for _ in 0..100 {
            assert_eq!(wire.receive().await["result"], "done");
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1), "they waited side by side");
    }
    wire.end_input();
    let start = Instant::now();
    let (heard, ended) = wire.rest().await;
    ended.unwrap();
    assert_eq!((heard, start.elapsed()), (Vec::new(), Duration::ZERO));
}

/// DISP-35: and a second request to stop ends the drain.
#[tokio::test(start_paused = true)]
async fn stopping_is_like_the_end_of_the_input_and_stopping_twice_ends_the_drain() {
    let mut wire = Wire::new(slow()).await;
    ask_slow(&mut wire, 1, 1).await;
    ask_slow(&mut wire, 2, 60).await;
    wire.expect_no_other_frame().await;
    let start = Instant::now();
    let peer = wire.peer.clone();
    peer.stop();
    let (heard, ended) = {
        let stopping = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            peer.stop();
        };
        tokio::join!(wire.rest(), stopping).0
    };
    ended.unwrap();
    let cut = error(Some(&json!(2)), -32000, "Connection closed");
    assert_eq!(by_id(heard), [result(&json!(1), &json!("done")), cut]);
    assert_eq!(start.elapsed(), Duration::from_secs(2));
}

/// Long-lived requests see that the connection closes, and their result is sent at once.
#[tokio::test(start_paused = true)]
async fn long_lived_requests_end_when_the_connection_closes() {
    let inbound =
        TestInbound::new().schedule("listen", Schedule::LongLived).on("listen", |cx, _| async move {
            cx.channel.closing().cancelled().await;
            Ok(Reply::of(&json!("concluded")))
        });
    let mut wire = Wire::new(inbound).await;
    wire.request(&json!(1), "listen").await;
    wire.expect_no_other_frame().await;
    wire.end_input();
    let start = Instant::now();
    let (heard, ended) = wire.rest().await;
    ended.unwrap();
    assert_eq!(heard, [result(&json!(1), &json!("concluded"))]);
    assert_eq!(start.elapsed(), Duration::ZERO);
}

/// A handler whose cancellation was only signalled is interrupted at the end all the same.
#[tokio::test(start_paused = true)]
async fn a_handler_that_ignores_its_cancellation_does_not_outlive_the_run() {
    let gone = Arc::new(Notify::new());
    let guard = Arc::clone(&gone);
    let inbound = TestInbound::new().on("deaf", move |_, _| {
        let guard = NotifyOnDrop(Arc::clone(&guard));
        async move {
            let _guard = guard;
            std::future::pending().await
        }
    });
    let options = DispatchOptions { cancel: CancelMode::Signal, ..DispatchOptions::default() };
    let mut wire = Wire::with(inbound, options).await;
    wire.request(&json!(1), "deaf").await;
    wire.expect_no_other_frame().await;
    wire.cancel(&json!(1)).await;
    wire.expect_no_other_frame().await;
    wire.end_input();
    let (heard, ended) = wire.rest().await;
    ended.unwrap();
    assert_eq!(heard, [] as [Value; 0]);
    tokio::time::timeout(Duration::ZERO, gone.notified()).await.unwrap();
}

struct NotifyOnDrop(Arc<Notify>);

impl Drop for NotifyOnDrop {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

/// DISP-32: the response is sent, other accepted requests are finished, then the run fails.
#[tokio::test(start_paused = true)]
async fn in_the_test_mode_a_failure_ends_the_run_after_its_answer() {
    let inbound = slow()
        .on("fails", |_, _| async { Err(McpError::internal("why")) })
        .on("refuses", |_, _| async { Err(McpError::InvalidParams("meant".into())) });
    let options = DispatchOptions { failures: FailureMode::Raise, ..DispatchOptions::default() };
    let mut wire = Wire::with(inbound, options).await;
    wire.request(&json!(1), "refuses").await;
    assert_eq!(wire.receive().await["error"]["code"], json!(-32602));
    ask_slow(&mut wire, 2, 1).await;
    wire.request(&json!(3), "fails").await;
    let (heard, ended) = wire.rest().await;
    let failed = error(Some(&json!(3)), -32603, "Internal server error");
    assert_eq!(by_id(heard), [result(&json!(2), &json!("done")), failed]);
    let Err(RunError::Handler(McpError::Internal(cause))) = ended else { panic!("{ended:?}") };
    assert_eq!(cause.to_string(), "why");
}

/// DISP-06.
#[tokio::test(start_paused = true)]
async fn before_the_run_a_call_fails_and_a_notification_is_queued() {
    let (ours, theirs) = memory::pair();
    let (dispatcher, peer) = JsonRpcDispatcher::new(ours);
    assert!(matches!(peer.request(OutboundRequest::new("x")).await, Err(CallError::NotRunning)));
    peer.notify("early", None).await;
    let heard = Arc::new(Notify::new());
    let seen = Arc::clone(&heard);
    let listening = TestInbound::new().on_notification(move |_, call| {
        assert_eq!(call.method(), "early");
        seen.notify_one();
        async {}
    });
    let (other, _peer) = JsonRpcDispatcher::new(theirs);
    let mut runs = tokio::task::JoinSet::new();
    runs.spawn(other.run(Arc::new(listening)));
    runs.spawn(dispatcher.run(Arc::new(TestInbound::new())));
    heard.notified().await;
}

/// DISP-11, DISP-37: responses to a peer that no longer reads are dropped, and calls to it fail.
#[tokio::test(start_paused = true)]
async fn a_peer_that_no_longer_reads_is_not_an_error() {
    let mut wire = Wire::new(TestInbound::new()).await;
    let peer = wire.peer.clone();
    let (_, output) = tokio::io::duplex(1);
    wire.output = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(output));
    wire.request(&json!(1), "echo").await;
    assert!(matches!(peer.request(OutboundRequest::new("x")).await, Err(CallError::Closed)));
    peer.notify("note", None).await;
    wire.end_input();
    wire.run.join_next().await.unwrap().unwrap().unwrap();
}

/// The peer sees the end of the stream with the end of the run, even while a `Peer` still exists.
#[tokio::test(start_paused = true)]
async fn the_direction_to_the_peer_ends_with_the_run() {
    for dropped in [false, true] {
        let mut wire = Wire::new(TestInbound::new()).await;
        let peer = wire.peer.clone();
        if dropped {
            wire.run.abort_all();
        } else {
            wire.end_input();
        }
        assert_eq!(wire.output.next_line().await.unwrap(), None);
        assert!(matches!(peer.request(OutboundRequest::new("x")).await, Err(CallError::Closed)));
    }
}

/// The end is bounded even if the peer does not read what is left for it.
#[tokio::test(start_paused = true)]
async fn a_peer_that_does_not_read_cannot_keep_the_run_alive() {
    let options = DispatchOptions {
        limits: DispatchLimits { drain: Duration::from_secs(1), ..DispatchLimits::default() },
        ..DispatchOptions::default()
    };
    let inbound = TestInbound::new().on("big", |_, _| async { Ok(Reply::of(&json!("x".repeat(400_000)))) });
    let mut wire = Wire::holding(inbound, options, 1024).await;
    for id in 0..10 {
        wire.request(&json!(id), "big").await;
    }
    wire.end_input();
    let start = Instant::now();
    wire.run.join_next().await.unwrap().unwrap().unwrap();
    assert!(start.elapsed() <= Duration::from_secs(3), "{:?}", start.elapsed());
}
