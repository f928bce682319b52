//! What nodes cost the store: exchanges, commands, connections and memory. Times are measured by
//! `cargo xtask cluster-test --costs`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use duplexer_core::run::RunId;
use duplexer_http::{
    Admission, Batch, EventKind, NewRequest, Numbering, PrincipalKey, SessionRecord, SharedStores,
    StoredEvent, StreamId, StreamKey,
};
use duplexer_server::subscriptions::{Event, SubscriptionBus as _};
use duplexer_server::{ConnectionSnapshot, Principal};
use duplexer_tests::scale::TOUCHED;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::RequestId;
use serde_json::json;
use tokio::time::Instant;

use super::served::{Counted, Served, between, commands};
use super::store::Store;
use crate::scale::client::{Random, text_of};
use crate::scale::{Size, story};

/// SCL-01, SCL-70: a call of the envelope era that neither publishes nor listens does not use the store.
#[tokio::test]
async fn an_echo_of_the_envelope_era_makes_no_trip() {
    let Some(store) = Store::start("trips of the envelope era").await else { return };
    let served = Served::quiet(&store, 1).await;
    let (client, mut random) = (served.client("ada").await, Random::new(2));
    served.settled().await;
    let before = served.trips();
    for _ in 0..20 {
        let params = json!({"name": "echo", "arguments": {"text": "x"}});
        let result = client.envelope(&mut random, "tools/call", params).await.unwrap();
        assert_eq!(result["content"][0]["text"], "x");
    }
    served.settled().await;
    assert_eq!(served.trips() - before, 0);
}

/// SCL-71: a call of a session waits for two exchanges, its admission and its last event, and makes one more. They take at
/// most 20 commands, those in scripts included.
#[tokio::test]
async fn an_echo_in_a_session_waits_for_two_trips() {
    // More than a session keeps streams, so that old ones make room.
    const CALLS: u64 = 300;
    let Some(store) = Store::start("trips of a session").await else { return };
    let served = Served::quiet(&store, 1).await;
    let (client, mut random) = (served.client("ada").await, Random::new(2));
    served.settled().await;
    let (trips, counted) = (served.trips(), commands(&store).await);
    for call in 0..CALLS {
        let mut stream = client.call(&mut random, "echo", "t", json!({"text": "x"})).await.unwrap();
        assert_eq!(text_of(&stream.next().await.unwrap()), Some("x"));
        // The connection is still open, so nothing was sent that no request awaits.
        assert_eq!(served.trips() - trips, 3 * call + 2);
        drop(stream);
        while served.trips() - trips < 3 * (call + 1) {
            tokio::task::yield_now().await;
        }
    }
    served.settled().await;
    assert_eq!(served.trips() - trips, 3 * CALLS);
    let counted = between(&counted, &commands(&store).await);
    assert!(counted <= 20 * CALLS, "{} commands per call", counted / CALLS);
}

/// SCL-36, SCL-73: notifications that are sent without a pause are stored in batches.
#[tokio::test]
async fn a_thousand_progress_events_make_at_most_forty_trips() {
    let Some(store) = Store::start("batches of events").await else { return };
    let served = Served::quiet(&store, 1).await;
    let (client, mut random) = (served.client("ada").await, Random::new(2));
    served.settled().await;
    let before = served.trips();
    let arguments = json!({"n": 1000, "ms": 0, "tag": "t"});
    let mut stream = client.call(&mut random, "count", "t", arguments).await.unwrap();
    for step in 1..=1000 {
        assert_eq!(stream.next().await.unwrap()["params"]["message"], format!("t:{step}"));
    }
    assert_eq!(text_of(&stream.next().await.unwrap()), Some("t:1000"));
    drop(stream);
    served.settled().await;
    let trips = served.trips() - before;
    assert!(trips <= 40, "{trips} trips");
}

/// SCL-75: an idle node runs at most 3 commands a second, and one script a second for a stream that a client reads. It has
/// one connection for commands and one for wake-ups.
#[tokio::test]
async fn an_idle_node_costs_a_few_commands() {
    const NODES: u32 = 2;
    let Some(store) = Store::start("idle nodes").await else { return };
    let served = Served::start(&store, 2).await;
    let client = served.client("ada").await;
    let mut reading = client.get(0, None).await.events();
    let mut followed = tokio::task::JoinSet::new();
    followed.spawn(async move { while reading.next().await.is_some() {} });
    let mut connection = store.commands().await;
    let before = commands(&store).await;
    let start = Instant::now();
    let calls = |counted: &Counted, name: &str| counted.get(name).copied().unwrap_or_default();
    // A node extends its lease every 2.5 s.
    let after = loop {
        let now = commands(&store).await;
        if calls(&now, "pexpire") >= calls(&before, "pexpire") + 4 {
            break now;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let seconds = start.elapsed().as_secs_f64();
    let in_scripts = ["evalsha", "hmget", "lrange"].map(|name| calls(&after, name) - calls(&before, name));
    // One command of each of four kinds more, at the edges.
    let limit = f64::from(NODES) * (3.0 * seconds + 4.0);
    let count = u32::try_from(between(&before, &after) - in_scripts.iter().sum::<u64>()).unwrap();
    assert!(f64::from(count) <= limit, "{count} commands in {seconds:.1} s");
    let looked = u32::try_from(in_scripts[0]).unwrap();
    assert!(f64::from(looked) <= seconds + 2.0, "{looked} scripts in {seconds:.1} s");
    let list: String = redis::cmd("CLIENT").arg("LIST").query_async(&mut connection).await.unwrap();
    let own = list.lines().filter(|line| line.contains("cmd=client|list")).count();
    // Connections of this test that were closed can still be listed.
    let idle = list.lines().filter(|line| line.contains("cmd=info")).count();
    assert_eq!(list.lines().count() - own - idle, 2 * NODES as usize, "{list}");
}

/// SCL-76: a change is one exchange of the node that publishes it and one of every other node, however many listen.
#[tokio::test]
async fn three_thousand_listeners_at_three_nodes_hear_one_change() {
    let Some(store) = Store::start("listeners").await else { return };
    let served = Served::quiet(&store, 3).await;
    let (client, mut random) = (served.client("ada").await, Random::new(2));
    let mut listeners = Vec::new();
    for number in 0..3000 {
        let listener = client.impersonated_by(&format!("listener-{}", number / 100));
        let filter = json!({"notifications": {"resourceSubscriptions": [TOUCHED]}});
        let reply = listener.send_envelope(&mut random, "subscriptions/listen", filter).await;
        assert_eq!(reply.status, 200);
        let mut events = reply.events();
        let acknowledged = events.next().await.unwrap().message.unwrap();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged");
        listeners.push(events);
    }
    served.settled().await;
    let before: Vec<u64> = served.shared.iter().map(|shared| shared.stats().trips).collect();
    served.shared[0].bus().publish(Event::resource_updated(TOUCHED)).await.unwrap();
    for events in &mut listeners {
        let heard = events.next().await.unwrap().message.unwrap();
        assert_eq!(heard["params"]["uri"], TOUCHED);
    }
    served.settled().await;
    let trips: Vec<u64> =
        served.shared.iter().zip(before).map(|(shared, before)| shared.stats().trips - before).collect();
    // The publisher reads the log after its own change, and once more when it is woken.
    assert!(trips[0] <= 3 && trips[1] == 1 && trips[2] == 1, "{trips:?}");
}

/// SCL-76: a script is loaded before its first call, which is one exchange. A store that has lost it is sent it again.
#[tokio::test]
async fn the_first_call_of_a_script_finds_it_loaded() {
    let Some(store) = Store::start("loaded scripts").await else { return };
    let shared = store.node().await;
    let bus = shared.bus();
    bus.publish(Event::resource_updated(TOUCHED)).await.unwrap();
    assert_eq!(commands(&store).await["evalsha"], 1);
    let mut connection = store.commands().await;
    let () = redis::cmd("SCRIPT").arg("FLUSH").query_async(&mut connection).await.unwrap();
    bus.publish(Event::resource_updated(TOUCHED)).await.unwrap();
    bus.publish(Event::resource_updated(TOUCHED)).await.unwrap();
    assert_eq!(commands(&store).await["evalsha"], 4, "one was refused");
}

async fn number(store: &Store, section: &str, field: &str) -> u64 {
    let mut connection = store.commands().await;
    let text: String = redis::cmd("INFO").arg(section).query_async(&mut connection).await.unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap();
    line.trim().parse().unwrap()
}

/// Operations that are ready at the same time are sent together, so that the store reads and writes once for many.
#[tokio::test]
async fn operations_at_the_same_time_share_an_exchange() {
    const CALLS: i64 = 60;
    let Some(store) = Store::start("shared exchanges").await else { return };
    let shared = store.node().await;
    shared.stores().sessions.create("s", &record()).await.unwrap();
    let before = number(&store, "stats", "total_reads_processed").await;
    let mut calls = tokio::task::JoinSet::new();
    for id in 0..CALLS {
        let (stores, run) = (shared.stores(), shared.run());
        calls.spawn(async move { call(&stores, "s", id, run).await });
    }
    calls.join_all().await;
    let reads = number(&store, "stats", "total_reads_processed").await - before;
    // Three operations each. Besides them the node reads its inbox and the log of changes.
    assert!(reads < 30, "{reads} reads");
}

async fn used_memory(store: &Store) -> u64 {
    number(store, "memory", "used_memory_dataset").await
}

fn record() -> SessionRecord {
    let mut connection = ConnectionSnapshot::new("2025-11-25".to_owned());
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{},"sampling":{}},"clientInfo":{"name":"a client","version":"1.0.0"}}"#;
    connection.initialize = Json::parse(params).ok();
    connection.initialized = true;
    SessionRecord::new(connection, Some(PrincipalKey::of(&Principal::new("ada"))))
}

/// A call from its admission to its last event, as a node stores it.
async fn call(stores: &SharedStores, session: &str, number: i64, run: RunId) {
    let (id, stream) = (RequestId::from(number), StreamId(u128::from(number.unsigned_abs()) << 64 | 7));
    let principal = PrincipalKey::of(&Principal::new("ada"));
    let request = NewRequest { id: &id, run, stream: Some(stream) };
    stores.sessions.admit(session, Admission::new(Some(&principal), None).request(request)).await.unwrap();
    let key = StreamKey::new(session.into(), stream);
    let answer =
        format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{"content":[{{"type":"text","text":"x"}}]}}}}"#);
    let last = [StoredEvent::new(Bytes::from(answer), EventKind::Final)];
    stores.events.append(&key, Batch::new(run, Numbering::From(1), &last)).await.unwrap();
    stores.events.detach(&key, 1, 1).await.unwrap();
}

/// SCL-26: memory of an idle session, of a finished call, and of an event.
#[tokio::test]
async fn sessions_and_calls_take_little_memory_of_the_store() {
    const SESSIONS: u64 = 500;
    let Some(store) = Store::start("memory of the store").await else { return };
    let shared = store.node().await;
    let (stores, run) = (shared.stores(), shared.run());
    // Scripts, buffers and tables exist before anything is measured.
    stores.sessions.create("warm", &record()).await.unwrap();
    call(&stores, "warm", 1, run).await;
    let empty = used_memory(&store).await;
    for number in 0..SESSIONS {
        stores.sessions.create(&format!("session-{number:032}"), &record()).await.unwrap();
    }
    let idle = used_memory(&store).await;
    let each = (idle - empty) / SESSIONS;
    assert!(each <= 1536, "{each} bytes for an idle session");
    for number in 0..SESSIONS {
        call(&stores, &format!("session-{:032}", number % 5), 1 + i64::try_from(number).unwrap(), run).await;
    }
    let called = used_memory(&store).await;
    let each = (called - idle) / SESSIONS;
    assert!(each <= 819, "{each} bytes for a finished call");
    let key = StreamKey::new("warm".into(), StreamId(99));
    stores.events.append(&key, Batch::open(run, &RequestId::from(99_i64))).await.unwrap();
    let message = Bytes::from(vec![b'x'; 100]);
    for batch in 0..15 {
        let events = vec![StoredEvent::new(message.clone(), EventKind::Notification); 64];
        let batch = Batch::new(run, Numbering::From(batch * 64 + 1), &events);
        stores.events.append(&key, batch).await.unwrap();
    }
    // Streams with one answer have no list.
    let mut connection = store.commands().await;
    let lists: Vec<String> = redis::cmd("KEYS").arg("*:e:*").query_async(&mut connection).await.unwrap();
    assert_eq!(lists.len(), 1, "{lists:?}");
    let mut usage = redis::cmd("MEMORY");
    usage.arg("USAGE").arg(&lists[0]).arg("SAMPLES").arg(0);
    let size: u64 = usage.query_async(&mut connection).await.unwrap();
    let each = size / (15 * 64);
    assert!(each <= 132, "{each} bytes for an event of 100");
}

/// SCL-20, SCL-22: no command walks over the keys or blocks the connection, and expiries are relative.
#[tokio::test]
async fn all_operations_use_bounded_commands() {
    let Some(store) = Store::start("bounded commands").await else { return };
    let served = Served::start(&store, 3).await;
    let mut report = story(&Arc::clone(&served.nodes), 77, Size { clients: 2, actions: 8, pace: 20 }).await;
    report.check_lines(&served.lines.lock().unwrap());
    report.assert_none(77);
    let counted = commands(&store).await;
    assert!(counted["evalsha"] > 50 && counted.contains_key("publish"), "{counted:?}");
    for name in counted.keys() {
        let walks = name.ends_with("scan") || name == "keys" || name.starts_with("flush");
        let blocks = ["bl", "bz", "wait", "xread"].iter().any(|start| name.starts_with(start));
        let is_absolute = name.ends_with("expireat");
        assert!(!walks && !blocks && !is_absolute, "{name}");
    }
}
