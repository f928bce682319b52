//! Thousands of cancelled calls: none is answered, and everything that their handlers held is dropped.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use serde_json::json;
use tokio::sync::{Notify, Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::matrix::Link;
use crate::wire::{TEST_TIMEOUT, Wire};
use crate::{ENVELOPE, HANDSHAKE};

const CALLS: usize = 10_000;
/// Number of concurrent calls; more would only be queued.
const TOGETHER: usize = 1000;

/// Number of handlers that have started, and of those that are not dropped yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Count {
    begun: usize,
    alive: usize,
}

/// A value that a handler holds while it waits.
struct Held(watch::Sender<Count>);

impl Held {
    fn new(count: watch::Sender<Count>) -> Self {
        count.send_modify(|count| {
            count.begun += 1;
            count.alive += 1;
        });
        Self(count)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.send_modify(|count| count.alive -= 1);
    }
}

/// Waits for one of the events that a handler can await, in turn. None of them ever occurs.
async fn wait(turn: usize) {
    match turn % 6 {
        0 => pending().await,
        1 => tokio::time::sleep(Duration::from_secs(86_400)).await,
        2 => Notify::new().notified().await,
        3 => drop(Semaphore::new(0).acquire().await),
        4 => {
            let (_kept, mut nothing) = mpsc::channel::<()>(1);
            nothing.recv().await;
        }
        _ => {
            let mut tasks = JoinSet::new();
            tasks.spawn(pending::<()>());
            tasks.join_next().await;
        }
    }
}

fn server(count: watch::Sender<Count>) -> Server {
    let waits = move |cx: Context| {
        let count = count.clone();
        async move {
            let held = Arc::new(Held::new(count));
            let turn = held.0.borrow().begun;
            wait(turn).await;
            drop((cx, held));
            Content::text("never sent")
        }
    };
    let calm = || async { Content::text("calm") };
    let tools = Server::builder("storm", "0").tool(Tool::new("wait", waits)).tool(Tool::new("calm", calm));
    tools.build().unwrap()
}

async fn until(counted: &mut watch::Receiver<Count>, reached: impl FnMut(&Count) -> bool) {
    let waiting = timeout(TEST_TIMEOUT, counted.wait_for(reached)).await;
    waiting.expect("the count is reached").unwrap();
}

/// P-CAN-1, section 3.1, cancel storm: ten thousand cancelled calls leave no response and no handler behind, whatever
/// the handler awaits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_of_cancels_leaves_nothing_behind() {
    for (link, revision) in [(Link::Memory, HANDSHAKE), (Link::Pipe, ENVELOPE)] {
        let (count, mut counted) = watch::channel(Count::default());
        let mut wire = Wire::connect(link, server(count)).await;
        wire.open(revision).await;
        for round in 1..=CALLS / TOGETHER {
            let mut ids = Vec::new();
            for _ in 0..TOGETHER {
                ids.push(wire.request("tools/call", json!({ "name": "wait" })).await);
            }
            until(&mut counted, |count| count.begun == round * TOGETHER).await;
            assert_eq!(counted.borrow().alive, TOGETHER);
            for id in ids {
                wire.notify("notifications/cancelled", json!({ "requestId": id })).await;
            }
            until(&mut counted, |count| count.alive == 0).await;
        }
        assert_eq!(wire.tool_text("calm", json!({})).await, "calm");
        assert_eq!(*counted.borrow(), Count { begun: CALLS, alive: 0 });
        let (rest, ended) = wire.finish().await;
        assert!(rest.is_empty() && ended.is_orderly(), "{link:?} {revision}: {rest:?}");
    }
}
