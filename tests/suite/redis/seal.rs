//! SCL-86: with a seal, who can write to the store can neither read nor invent anything.

use std::time::Duration;

use bytes::Bytes;
use duplexer::testing::store_laws::LAWS;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{
    Admission, Batch, Change, EventKind, NodeMessage, Numbering, SessionDigest, SessionRecord, StoredEvent,
    StreamId, StreamKey,
};
use duplexer_redis::Shared;
use duplexer_server::ConnectionSnapshot;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::RequestId;

use super::laws::{EXPIRY, OnStore};
use super::store::Store;

const OLD: [u8; 32] = [6; 32];
const NEW: [u8; 32] = [7; 32];

#[tokio::test]
async fn a_sealed_store_obeys_the_laws() {
    let Some(store) = Store::start("sealed laws").await else { return };
    let stores = OnStore::new(store.url(), Duration::from_secs(60)).sealed(NEW);
    for law in LAWS.iter().filter(|law| !EXPIRY.contains(&law.name())) {
        law.check(&stores).await.unwrap();
    }
}

fn key(stream: u128) -> StreamKey {
    StreamKey::new("s".into(), StreamId(stream))
}

/// Stores a session with a subscription, two streams with an event each, and a message for the node itself.
async fn fill(shared: &Shared) {
    let stores = shared.stores();
    let mut connection = ConnectionSnapshot::new("2025-11-25".to_owned());
    connection.initialize = Some(Json::parse(r#"{"clientInfo":"hunter2"}"#).unwrap());
    stores.sessions.create("s", &SessionRecord::new(connection, None)).await.unwrap();
    stores.sessions.update("s", &[Change::Subscribed("note://hunter2".to_owned())]).await.unwrap();
    for stream in [8, 9] {
        let event = [StoredEvent::new(Bytes::from(format!("hunter2 {stream}")), EventKind::Notification)];
        stores.events.append(&key(stream), Batch::open(RunId(1), &RequestId::from("r"))).await.unwrap();
        stores.events.append(&key(stream), Batch::new(RunId(1), Numbering::From(1), &event)).await.unwrap();
    }
    let message = NodeMessage::Response { session: SessionDigest::of("s"), message: "\"hunter2\"".into() };
    stores.nodes.send(shared.run(), &message).await.unwrap();
}

async fn is_readable(shared: &Shared) -> (bool, bool) {
    let stores = shared.stores();
    let session = stores.sessions.admit("s", Admission::new(None, None)).await;
    let events = stores.events.read(&key(9), 0, 10).await;
    for error in [session.as_ref().err(), events.as_ref().err()].into_iter().flatten() {
        assert!(matches!(error, StoreError::Unreadable(_)), "{error:?}");
    }
    (session.is_ok(), events.is_ok())
}

#[tokio::test]
async fn nothing_is_stored_in_the_clear() {
    let Some(store) = Store::start("sealed content").await else { return };
    let shared = store.connect().seal([NEW]).await.unwrap();
    fill(&shared).await;
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut commands).await.unwrap();
    assert!(keys.len() >= 8, "{keys:?}");
    for key in &keys {
        let value: Vec<u8> = redis::cmd("DUMP").arg(key).query_async(&mut commands).await.unwrap();
        assert!(!value.windows(7).any(|window| window == b"hunter2"), "{key}");
    }
    assert_eq!(is_readable(&shared).await, (true, true));
}

#[tokio::test]
async fn what_was_changed_or_moved_in_the_store_is_refused() {
    let Some(store) = Store::start("changed content").await else { return };
    let shared = store.connect().seal([NEW]).await.unwrap();
    fill(&shared).await;
    let mut commands = store.commands().await;
    let digest = SessionDigest::of("s");
    let list = |stream: u128| format!("dpx1:test:{{{digest}}}:e:{}", StreamId(stream));
    let event: Vec<u8> = redis::cmd("LINDEX").arg(list(8)).arg(0).query_async(&mut commands).await.unwrap();
    let own: Vec<u8> = redis::cmd("LINDEX").arg(list(9)).arg(0).query_async(&mut commands).await.unwrap();
    let mut set = async |event: &[u8]| {
        let () = redis::cmd("LSET").arg(list(9)).arg(0).arg(event).query_async(&mut commands).await.unwrap();
        is_readable(&shared).await
    };
    assert_eq!(set(&event).await, (true, false), "the event of another stream");
    assert_eq!(set(b"n{}").await, (true, false), "an event that was never sealed");
    let mut changed = own.clone();
    *changed.last_mut().unwrap() ^= 1;
    assert_eq!(set(&changed).await, (true, false), "an event with another bit");
    let mut kind = own.clone();
    kind[0] = b'f';
    assert_eq!(set(&kind).await, (true, false), "an event of another kind");
    assert_eq!(set(&own).await, (true, true));
    let record = format!("dpx1:test:{{{digest}}}:h");
    let mut commands = store.commands().await;
    let ready: Vec<u8> = redis::cmd("HGET").arg(&record).arg("ver").query_async(&mut commands).await.unwrap();
    let () =
        redis::cmd("HSET").arg(&record).arg("ready").arg(ready).query_async(&mut commands).await.unwrap();
    assert_eq!(is_readable(&shared).await, (false, true), "a field in place of another");
}

/// The first secret seals, all of them open.
#[tokio::test]
async fn the_secrets_of_a_seal_are_rotated() {
    let Some(store) = Store::start("rotated secrets").await else { return };
    let before = store.connect().seal([OLD]).await.unwrap();
    fill(&before).await;
    for (secrets, readable) in
        [(vec![OLD, NEW], (true, true)), (vec![NEW, OLD], (true, true)), (vec![NEW], (false, false))]
    {
        let node = store.connect().seal(secrets).await.unwrap();
        assert_eq!(is_readable(&node).await, readable);
    }
    let open = store.node().await;
    assert!(!is_readable(&open).await.0, "a node without the secrets");
}
