//! Nodes that end while clients are served (SCL-44).

use std::sync::Arc;
use std::time::Duration;

use duplexer_tests::scale::DRAIN;
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::client::{Client, Random, Stream, request, text_of};
use super::nodes::Cluster;
use super::{Size, call_at, paused, seeds, story};

/// A node that shuts down lets its readers go; they follow at another node while the handler finishes.
#[test]
fn a_call_at_a_node_that_shuts_down_is_followed_elsewhere() {
    paused(async {
        let (cluster, mut random) = (Cluster::start(3), Random::new(4));
        let client = Client::open(&cluster.nodes, "ada", &mut random).await.unwrap();
        let mut stream = call_at(&client, 0, 7, "count", json!({"n": 20, "ms": 100, "tag": "a"})).await;
        assert_eq!(stream.next().await.unwrap()["params"]["message"], "a:1");
        let follow = async {
            for step in 2..=20 {
                assert_eq!(stream.next().await.unwrap()["params"]["message"], format!("a:{step}"));
            }
            assert_eq!(text_of(&stream.next().await.unwrap()), Some("a:20"));
        };
        let begun = Instant::now();
        let refused = async {
            sleep(Duration::from_millis(50)).await;
            let echo = request(8, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
            assert_eq!(client.post(0, &echo).await.status, 503, "no new requests");
            assert_eq!(client.post(1, &echo).await.status, 200, "the session lives on");
        };
        tokio::join!(cluster.stop(0), follow, refused);
        assert!(begun.elapsed() < DRAIN, "the node ends with its last call: {:?}", begun.elapsed());
        assert_eq!(*cluster.lines.lock().unwrap(), ["count a"]);
    });
}

/// A call that is longer than the drain ends with a stored error, and the node is gone in time.
#[test]
fn a_call_that_outlives_the_drain_ends_with_an_error() {
    paused(async {
        let (cluster, mut random) = (Cluster::start(2), Random::new(4));
        let client = Client::open(&cluster.nodes, "ada", &mut random).await.unwrap();
        let mut stream = call_at(&client, 0, 7, "count", json!({"n": 1000, "ms": 100, "tag": "a"})).await;
        let begun = Instant::now();
        let ((), last) = tokio::join!(cluster.stop(0), last_message(&mut stream));
        assert!(last["error"]["code"].is_number(), "{last}");
        assert!(begun.elapsed() <= DRAIN + Duration::from_secs(2), "{:?}", begun.elapsed());
    });
}

async fn last_message(stream: &mut Stream) -> serde_json::Value {
    loop {
        let message = stream.next().await.unwrap();
        if message.get("method").is_none() {
            return message;
        }
    }
}

/// A rolling restart is seen as reconnections only: no failed request, no lost session, no hole.
#[test]
fn a_rolling_restart_of_all_nodes_is_not_noticed_by_clients() {
    for seed in seeds(8) {
        paused(async {
            let cluster = Arc::new(Cluster::start(3));
            let restarts = async {
                for node in 0..3 {
                    sleep(Duration::from_millis(150)).await;
                    cluster.stop(node).await;
                    cluster.restart(node);
                }
            };
            let size = Size { clients: 3, actions: 8, pace: 60 };
            let (mut report, ()) = tokio::join!(story(&cluster.nodes, seed, size), restarts);
            report.check_lines(&cluster.lines.lock().unwrap());
            report.assert_none(seed);
        });
    }
}
