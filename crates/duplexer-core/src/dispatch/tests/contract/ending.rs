//! The end of a connection, seen from both ends.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Notify;

use super::over_every_kind;
use crate::dispatch::tests::TestInbound;
use crate::dispatch::tests::link::Kind;
use crate::error::CallError;

over_every_kind!(
    a_call_to_an_end_that_stops_fails_and_so_does_every_later_one,
    when_one_end_stops_both_runs_end_without_an_error,
    an_end_whose_run_is_dropped_is_closed_to_both,
);

fn stuck(started: &Arc<Notify>) -> TestInbound {
    let started = Arc::clone(started);
    TestInbound::new().on("stuck", move |_, _| {
        started.notify_one();
        std::future::pending()
    })
}

/// DISP-06, DISP-11, DISP-34, DIR-02: and notifications are dropped silently.
async fn a_call_to_an_end_that_stops_fails_and_so_does_every_later_one(kind: Kind) {
    let started = Arc::new(Notify::new());
    let mut link = kind.link(stuck(&started), TestInbound::new()).await;
    // The right end sends a request, then stops reading: its own call can no longer be answered.
    let (outcome, ()) = tokio::join!(link.right.call("stuck", json!({})), async {
        started.notified().await;
        link.right.stop();
    });
    assert!(matches!(outcome, Err(CallError::Closed)), "{outcome:?}");
    link.left.stop();
    while link.runs.join_next().await.is_some() {}
    for end in [&link.left, &link.right] {
        assert!(matches!(end.call("echo", json!({})).await, Err(CallError::Closed)));
        end.peer.notify("note", None).await;
    }
}

/// DISP-34, DISP-35.
async fn when_one_end_stops_both_runs_end_without_an_error(kind: Kind) {
    let mut link = kind.link(TestInbound::new(), TestInbound::new()).await;
    link.left.call("echo", json!({})).await.unwrap();
    link.right.stop();
    for _ in 0..2 {
        link.runs.join_next().await.unwrap().unwrap().unwrap();
    }
}

async fn an_end_whose_run_is_dropped_is_closed_to_both(kind: Kind) {
    let started = Arc::new(Notify::new());
    let mut link = kind.link(stuck(&started), stuck(&started)).await;
    let (one, two, ()) =
        tokio::join!(link.left.call("stuck", json!({})), link.right.call("stuck", json!({})), async {
            started.notified().await;
            link.runs.abort_all();
        });
    assert!(matches!((one, two), (Err(CallError::Closed), Err(CallError::Closed))));
    while link.runs.join_next().await.is_some() {}
    assert!(matches!(link.left.call("echo", json!({})).await, Err(CallError::Closed)));
}
