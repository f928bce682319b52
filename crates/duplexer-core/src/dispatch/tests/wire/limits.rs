//! The bounds of one connection: running and queued requests, and back-pressure.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{Wire, error, result};
use crate::dispatch::tests::{EventFields, Reply, TestInbound};
use crate::dispatch::{
    DispatchLimits, DispatchOptions, NotificationRoute, Outbound, OutboundRequest, Schedule, lock,
};

fn limits(limits: DispatchLimits) -> DispatchOptions {
    DispatchOptions { limits, ..DispatchOptions::default() }
}

/// Each call of `wait` needs a permit to end.
fn gated(gate: &Arc<Semaphore>) -> TestInbound {
    let gate = Arc::clone(gate);
    TestInbound::new().on("wait", move |_, _| {
        let gate = Arc::clone(&gate);
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(Reply::of(&json!("waited")))
        }
    })
}

/// DISP-20, overridden: beyond the limit requests are queued in the order of arrival, and can be cancelled there.
#[tokio::test(start_paused = true)]
async fn requests_beyond_the_running_ones_wait_in_order() {
    let gate = Arc::new(Semaphore::new(0));
    let mut wire =
        Wire::with(gated(&gate), limits(DispatchLimits { running: 1, ..DispatchLimits::default() })).await;
    for id in 1..=4 {
        wire.request(&json!(id), "wait").await;
    }
    wire.cancel(&json!(2)).await;
    // The id of a queued request is in flight.
    wire.request(&json!(3), "wait").await;
    assert_eq!(wire.receive().await["error"]["code"], json!(-32600));
    gate.add_permits(3);
    for id in [1, 3, 4] {
        assert_eq!(wire.receive().await, result(&json!(id), &json!("waited")));
    }
    wire.expect_no_other_frame().await;
}

/// When the queue is full, reading stops, and so do the peer's writes, until there is capacity.
#[tokio::test(start_paused = true)]
async fn a_full_queue_stops_the_reading_and_an_ended_request_resumes_it() {
    let gate = Arc::new(Semaphore::new(0));
    let bounds = DispatchLimits { running: 1, queued: 2, ..DispatchLimits::default() };
    let mut wire = Wire::holding(gated(&gate), limits(bounds), 200).await;
    let flood = async {
        for id in 1..=50 {
            wire.request(&json!(id), "wait").await;
        }
    };
    // No task is runnable, so time advances only because all tasks wait.
    assert!(tokio::time::timeout(Duration::from_secs(5), flood).await.is_err());
    assert!(
        tokio::time::timeout(Duration::from_secs(5), wire.receive()).await.is_err(),
        "nothing is refused"
    );
    gate.add_permits(1000);
    assert_eq!(wire.receive().await, result(&json!(1), &json!("waited")));
}

/// The queue is bounded by bytes as well as by count.
#[tokio::test(start_paused = true)]
async fn a_queue_is_full_when_its_bytes_are() {
    let gate = Arc::new(Semaphore::new(0));
    let bounds = DispatchLimits { running: 1, queued_bytes: 100, ..DispatchLimits::default() };
    let mut wire = Wire::holding(gated(&gate), limits(bounds), 200).await;
    let flood = async {
        for id in 1..=50 {
            wire.request(&json!(id), "wait").await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(5), flood).await.is_err());
}

/// A handler sends the peer a request while the queue is full: the response is read, new requests are refused meanwhile, and
/// afterwards there is back-pressure again instead of refusals.
#[tokio::test(start_paused = true)]
async fn while_a_call_of_ours_is_outstanding_reading_continues_and_new_requests_are_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let start = Arc::new(Semaphore::new(0));
    let begin = Arc::clone(&start);
    let inbound = gated(&gate).on("ask", move |cx, _| {
        let begin = Arc::clone(&begin);
        async move {
            begin.acquire().await.unwrap().forget();
            let answer = cx.channel.request(OutboundRequest::new("name")).await?;
            Ok(Reply::Text(answer.to_string()))
        }
    });
    let mut wire =
        Wire::with(inbound, limits(DispatchLimits { running: 2, queued: 1, ..DispatchLimits::default() }))
            .await;
    wire.request(&json!(1), "ask").await;
    for id in 2..=3 {
        wire.request(&json!(id), "wait").await;
    }
    // Full. The call starts only now, while the reader waits for capacity.
    tokio::time::sleep(Duration::from_secs(1)).await;
    start.add_permits(1);
    let asked = wire.receive().await;
    assert_eq!(asked["method"], json!("name"));
    wire.request(&json!(4), "wait").await;
    assert_eq!(wire.receive().await, error(Some(&json!(4)), -32603, "Too many requests in flight"));
    wire.send_line(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": "me"}).to_string()).await;
    assert_eq!(wire.receive().await, result(&json!(1), &json!("me")));
    // The capacity of 1 went to 3: one request can be queued, and beyond it no request is refused any more.
    for id in 5..=9 {
        wire.request(&json!(id), "wait").await;
    }
    gate.add_permits(1000);
    let mut heard: Vec<i64> = Vec::new();
    for _ in 0..7 {
        let answer: Value = wire.receive().await;
        assert_eq!(answer["result"], json!("waited"), "{answer}");
        heard.push(answer["id"].as_i64().unwrap());
    }
    heard.sort_unstable();
    assert_eq!(heard, [2, 3, 5, 6, 7, 8, 9]);
}

/// A call that ends without a response leaves the reader reading; the next request is admitted, not refused.
#[tokio::test(start_paused = true)]
async fn a_request_that_arrives_after_our_call_was_dropped_is_not_refused() {
    let gate = Arc::new(Semaphore::new(0));
    let mut wire = Wire::with(
        gated(&gate),
        limits(DispatchLimits { running: 1, queued: 1, ..DispatchLimits::default() }),
    )
    .await;
    let peer = wire.peer.clone();
    let mut calls = tokio::task::JoinSet::new();
    calls.spawn(async move { peer.request(OutboundRequest::new("ask")).await });
    assert_eq!(wire.receive().await["method"], json!("ask"));
    for id in 1..=2 {
        wire.request(&json!(id), "wait").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    calls.shutdown().await;
    assert_eq!(wire.receive().await["method"], json!("notifications/cancelled"));
    for id in 3..=5 {
        wire.request(&json!(id), "wait").await;
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    gate.add_permits(5);
    for id in 1..=5 {
        assert_eq!(wire.receive().await, result(&json!(id), &json!("waited")));
    }
}

/// A request with params that make its frame `bytes` long, which is what it counts for in the queue.
fn waiting(id: i64, bytes: usize) -> String {
    let frame =
        |padding: &str| json!({"id": id, "jsonrpc": "2.0", "method": "wait", "params": {"p": padding}});
    let least = frame("").to_string().len();
    frame(&"x".repeat(bytes - least)).to_string()
}

/// A request that was read because of a call of ours that has ended meanwhile is admitted to a full queue, but not to one of
/// twice the bytes.
#[tokio::test(start_paused = true)]
async fn a_request_that_was_read_early_is_refused_at_twice_the_bytes() {
    for (first, is_admitted) in [(120, true), (199, true), (200, false), (250, false)] {
        let gate = Arc::new(Semaphore::new(0));
        let bounds = DispatchLimits { running: 1, queued_bytes: 100, ..DispatchLimits::default() };
        let mut wire = Wire::with(gated(&gate), limits(bounds)).await;
        let peer = wire.peer.clone();
        let mut calls = tokio::task::JoinSet::new();
        calls.spawn(async move { peer.request(OutboundRequest::new("ask")).await });
        assert_eq!(wire.receive().await["method"], json!("ask"));
        wire.request(&json!(1), "wait").await;
        wire.send_line(&waiting(2, first)).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        calls.shutdown().await;
        assert_eq!(wire.receive().await["method"], json!("notifications/cancelled"));
        wire.request(&json!(3), "wait").await;
        if !is_admitted {
            let refused = error(Some(&json!(3)), -32603, "Too many requests in flight");
            assert_eq!(wire.receive().await, refused, "{first} bytes");
        }
        gate.add_permits(3);
        for id in if is_admitted { 1..=3 } else { 1..=2 } {
            assert_eq!(wire.receive().await, result(&json!(id), &json!("waited")), "{first} bytes");
        }
    }
}

/// A request that leaves the queue frees its own bytes there, no more and no fewer.
#[tokio::test(start_paused = true)]
async fn the_bytes_of_a_queue_are_those_of_its_requests() {
    let gate = Arc::new(Semaphore::new(0));
    let read = Arc::new(Semaphore::new(0));
    let noted = Arc::clone(&read);
    let inbound = gated(&gate).on_read(move |_| {
        noted.add_permits(1);
        NotificationRoute::Consume
    });
    let bounds = DispatchLimits { running: 1, queued_bytes: 150, ..DispatchLimits::default() };
    let mut wire = Wire::with(inbound, limits(bounds)).await;
    for id in 1..=4 {
        wire.send_line(&waiting(id, 80)).await;
    }
    wire.send_line(r#"{"jsonrpc":"2.0","method":"note"}"#).await;
    // First 2 and 3 are queued, then 3 and 4, then 4 alone, which is less than the limit.
    for (id, is_read) in [(1, 0), (2, 1)] {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(read.available_permits(), 0, "{id} runs");
        gate.add_permits(1);
        assert_eq!(wire.receive().await, result(&json!(id), &json!("waited")));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(read.available_permits(), is_read, "{id} has ended");
    }
}

/// Long-lived requests do not count as running and have a bound of their own.
#[tokio::test(start_paused = true)]
async fn long_lived_requests_have_a_limit_of_their_own() {
    let inbound = TestInbound::new()
        .schedule("listen", Schedule::LongLived)
        .on("listen", |_, _| std::future::pending());
    let mut wire = Wire::with(
        inbound,
        limits(DispatchLimits { running: 1, long_lived: 2, ..DispatchLimits::default() }),
    )
    .await;
    for id in 1..=3 {
        wire.request(&json!(id), "listen").await;
    }
    assert_eq!(wire.receive().await, error(Some(&json!(3)), -32603, "Too many requests in flight"));
    wire.expect_no_other_frame().await;
    wire.cancel(&json!(1)).await;
    wire.expect_no_other_frame().await;
    wire.request(&json!(4), "listen").await;
    wire.expect_no_other_frame().await;
}

/// A queue of size zero neither refuses nor deadlocks requests that can run.
#[tokio::test(start_paused = true)]
async fn without_a_queue_requests_that_can_run_are_admitted() {
    let mut wire = Wire::with(
        TestInbound::new(),
        limits(DispatchLimits { running: 1, queued: 0, ..DispatchLimits::default() }),
    )
    .await;
    for _ in 0..10 {
        wire.send_line("{").await;
        assert_eq!(wire.receive().await["error"]["code"], json!(-32700));
        wire.expect_no_other_frame().await;
    }
}

/// DISP-29: more notifications than can be handled at a time are dropped, and the capacity of ended ones is freed.
#[tokio::test(start_paused = true)]
async fn notifications_have_a_bound() {
    let gate = Arc::new(Semaphore::new(0));
    let handled = Arc::new(Semaphore::new(0));
    let (open, done) = (Arc::clone(&gate), Arc::clone(&handled));
    let inbound = TestInbound::new().on_notification(move |_, _| {
        let (open, done) = (Arc::clone(&open), Arc::clone(&done));
        async move {
            open.acquire().await.unwrap().forget();
            done.add_permits(1);
        }
    });
    let mut wire =
        Wire::with(inbound, limits(DispatchLimits { notifications: 2, ..DispatchLimits::default() })).await;
    for _ in 0..5 {
        wire.send_line(r#"{"jsonrpc":"2.0","method":"note"}"#).await;
    }
    wire.expect_no_other_frame().await;
    gate.add_permits(10);
    handled.acquire_many(2).await.unwrap().forget();
    wire.send_line(r#"{"jsonrpc":"2.0","method":"note"}"#).await;
    handled.acquire().await.unwrap().forget();
    tokio::task::yield_now().await;
    assert_eq!(handled.available_permits(), 0);
}

/// DISP-29: dropped notifications are logged, and the more there are, the more rarely.
#[tokio::test(start_paused = true)]
async fn dropped_notifications_are_logged_at_powers_of_two() {
    let dropped = Arc::new(Mutex::new(Vec::new()));
    let counts = Arc::clone(&dropped);
    let _listening = tracing::subscriber::set_default(EventFields(move |name: &str, value: &dyn Debug| {
        if name == "dropped" {
            lock(&counts).push(format!("{value:?}"));
        }
    }));
    let inbound = TestInbound::new().on_notification(|_, _| std::future::pending());
    let mut wire =
        Wire::with(inbound, limits(DispatchLimits { notifications: 2, ..DispatchLimits::default() })).await;
    for _ in 0..2 + 9 {
        wire.send_line(r#"{"jsonrpc":"2.0","method":"note"}"#).await;
    }
    wire.expect_no_other_frame().await;
    assert_eq!(*lock(&dropped), ["1", "2", "4", "8"]);
}
