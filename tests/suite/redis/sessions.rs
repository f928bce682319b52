//! Sessions: admission, changes, deletion.

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{
    Admission, Admitted, Batch, Change, Created, EventKind, NewRequest, Numbering, Placement, PrincipalKey,
    Revision, SessionRecord, SharedStores, StoredEvent, StreamId, StreamKey,
};
use duplexer_server::{ConnectionSnapshot, Principal};
use duplexer_types::jsonrpc::RequestId;
use duplexer_types::logging::LoggingLevel;

use super::store::Store;

fn record(principal: Option<PrincipalKey>) -> SessionRecord {
    let mut connection = ConnectionSnapshot::new("2025-11-25".to_owned());
    connection.subscriptions = vec!["a://1".to_owned()];
    SessionRecord::new(connection, principal)
}

fn alice() -> PrincipalKey {
    PrincipalKey::of(&Principal::new("alice"))
}

async fn admit(stores: &SharedStores, id: u64, run: u64) -> Admitted {
    let request = RequestId::from(i64::try_from(id).unwrap());
    let new = NewRequest { id: &request, run: RunId(run), stream: Some(StreamId(u128::from(id))) };
    stores.sessions.admit("s", Admission::new(None, None).request(new)).await.unwrap()
}

/// SCL-33: an id that exists is never overwritten, and a repeated creation succeeds.
#[tokio::test]
async fn a_session_is_created_once() {
    let Some(store) = Store::start("creation").await else { return };
    let stores = store.node().await.stores();
    assert_eq!(stores.sessions.create("s", &record(None)).await.unwrap(), Created::New);
    assert_eq!(stores.sessions.create("s", &record(None)).await.unwrap(), Created::New);
    assert_eq!(stores.sessions.create("s", &record(Some(alice()))).await.unwrap(), Created::Exists);
}

/// SCL-11, SCL-30: to another principal a session does not exist.
#[tokio::test]
async fn a_stranger_changes_nothing() {
    let Some(store) = Store::start("strangers").await else { return };
    let stores = store.node().await.stores();
    let (alice, bob) = (alice(), PrincipalKey::of(&Principal::new("bob")));
    stores.sessions.create("s", &record(Some(alice.clone()))).await.unwrap();
    for stranger in [None, Some(&bob)] {
        let admitted = stores.sessions.admit("s", Admission::new(stranger, None)).await.unwrap();
        assert_eq!(admitted, Admitted::Unknown);
    }
    let Admitted::Record(found, revision) =
        stores.sessions.admit("s", Admission::new(Some(&alice), None)).await.unwrap()
    else {
        panic!("the owner is admitted")
    };
    assert_eq!((*found, revision), (record(Some(alice.clone())), Revision(1)));
    let known = Admission::new(Some(&alice), Some(revision));
    assert_eq!(stores.sessions.admit("s", known).await.unwrap(), Admitted::Current);
}

/// SCL-31: a request id is in flight once in the whole deployment. A request of a dead node blocks no other.
#[tokio::test]
async fn a_request_is_in_flight_once() {
    let Some(store) = Store::start("requests in flight").await else { return };
    let (first, second) = (store.node().await, store.node().await);
    let (one, two) = (first.stores(), second.stores());
    one.sessions.create("s", &record(None)).await.unwrap();
    let (a, b) = (first.run().0, second.run().0);
    assert!(matches!(admit(&one, 1, a).await, Admitted::Record(..)));
    assert!(matches!(admit(&one, 1, a).await, Admitted::Record(..)), "a repetition");
    assert_eq!(admit(&two, 1, b).await, Admitted::InFlight);
    let located = two.sessions.locate("s", &RequestId::from(1_i64)).await.unwrap();
    assert_eq!(located, Some(Placement { run: RunId(a), stream: Some(StreamId(1)) }));
    let placement = Placement { run: RunId(b), stream: Some(StreamId(1)) };
    two.sessions.release("s", &RequestId::from(1_i64), placement).await.unwrap();
    assert_eq!(admit(&two, 1, b).await, Admitted::InFlight, "a run releases only its own requests");
    one.nodes.leave().await.unwrap();
    assert!(matches!(admit(&two, 1, b).await, Admitted::Record(..)), "the other run is gone");
}

/// SCL-32: changes are written field by field, and only to a session that exists.
#[tokio::test]
async fn two_nodes_change_different_fields() {
    let Some(store) = Store::start("changes").await else { return };
    let (one, two) = (store.node().await.stores(), store.node().await.stores());
    assert_eq!(one.sessions.update("s", &[Change::Initialized]).await.unwrap(), None);
    one.sessions.create("s", &record(None)).await.unwrap();
    let level = [Change::LogLevel(LoggingLevel::Error), Change::Unsubscribed("a://1".into())];
    assert_eq!(one.sessions.update("s", &level).await.unwrap(), Some(Revision(2)));
    let ready = [Change::Initialized, Change::Subscribed("b://2".into())];
    assert_eq!(two.sessions.update("s", &ready).await.unwrap(), Some(Revision(3)));
    assert_eq!(two.sessions.update("s", &ready).await.unwrap(), Some(Revision(3)), "a repetition");
    let Admitted::Record(found, _) = one.sessions.admit("s", Admission::new(None, None)).await.unwrap()
    else {
        panic!("admitted")
    };
    let connection = &found.connection;
    assert!(connection.initialized);
    assert_eq!(
        (connection.log_level, &*connection.subscriptions),
        (LoggingLevel::Error, &["b://2".to_owned()][..])
    );
}

/// SCL-27, SCL-28: the oldest streams make room, also for many of the same second, whatever their ids are.
#[tokio::test]
async fn the_oldest_streams_make_room() {
    const CALLS: u64 = 300;
    let Some(store) = Store::start("oldest streams").await else { return };
    let node = store.node().await;
    let (stores, run) = (node.stores(), node.run());
    stores.sessions.create("s", &record(None)).await.unwrap();
    let key = |id: u64| StreamKey::new("s".into(), StreamId(u128::from(id)));
    // Later streams have smaller ids.
    for id in (1..=CALLS).rev() {
        admit(&stores, id, run.0).await;
        let last = [StoredEvent::new("z".into(), EventKind::Final)];
        stores.events.append(&key(id), Batch::new(run, Numbering::From(1), &last)).await.unwrap();
    }
    let mut kept = Vec::new();
    for id in (1..=CALLS).rev() {
        kept.push(stores.events.read(&key(id), 0, 1).await.unwrap().is_some());
    }
    let gone = kept.iter().take_while(|kept| !**kept).count();
    assert!((44..60).contains(&gone), "{gone} streams are gone");
    assert!(kept[gone + 4..].iter().all(|kept| *kept), "{kept:?}");
}

/// SCL-09: a deleted session stays unknown, and nothing brings it back.
#[tokio::test]
async fn a_deleted_session_does_not_return() {
    let Some(store) = Store::start("deletion").await else { return };
    let (first, second) = (store.node().await, store.node().await);
    let (one, two) = (first.stores(), second.stores());
    one.sessions.create("s", &record(None)).await.unwrap();
    admit(&one, 1, first.run().0).await;
    let placed = two.sessions.delete("s").await.unwrap();
    assert_eq!(placed, [Placement { run: first.run(), stream: Some(StreamId(1)) }]);
    assert_eq!(admit(&one, 2, first.run().0).await, Admitted::Unknown);
    assert_eq!(one.sessions.update("s", &[Change::Initialized]).await.unwrap(), None);
    assert_eq!(one.sessions.create("s", &record(None)).await.unwrap(), Created::Exists);
    one.sessions.touch(&["s".into()]).await.unwrap();
    let mut commands = store.commands().await;
    let left: Vec<String> =
        redis::cmd("KEYS").arg("dpx1:test:{*}:[hfmoe]*").query_async(&mut commands).await.unwrap();
    assert_eq!(left, Vec::<String>::new());
}

/// SCL-15: everything in the store expires.
#[tokio::test]
async fn every_key_has_an_expiry() {
    let Some(store) = Store::start("expiry").await else { return };
    let node = store.node().await;
    let stores = node.stores();
    stores.sessions.create("s", &record(None)).await.unwrap();
    admit(&stores, 1, node.run().0).await;
    stores.sessions.touch(&["s".into()]).await.unwrap();
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut commands).await.unwrap();
    assert!(keys.len() >= 5, "{keys:?}");
    for key in keys {
        let expiry: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut commands).await.unwrap();
        assert!(expiry > 0, "{key} has no expiry");
    }
}

/// SCL-23, SCL-24: a record of a later layout is not understood, not changed, and not deleted.
#[tokio::test]
async fn a_record_of_a_later_layout_is_unreadable() {
    let Some(store) = Store::start("layouts").await else { return };
    let stores = store.node().await.stores();
    stores.sessions.create("s", &record(None)).await.unwrap();
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:h").query_async(&mut commands).await.unwrap();
    let () = redis::cmd("HSET").arg(&keys[0]).arg("v").arg("2").query_async(&mut commands).await.unwrap();
    let refused = stores.sessions.admit("s", Admission::new(None, None)).await;
    assert!(matches!(refused, Err(StoreError::Unreadable(_))), "{refused:?}");
    let refused = stores.sessions.update("s", &[Change::Initialized]).await;
    assert!(matches!(refused, Err(StoreError::Unreadable(_))), "{refused:?}");
}

/// SCL-23, SCL-24: a field of a later version survives the changes of this one.
#[tokio::test]
async fn unknown_fields_are_kept() {
    let Some(store) = Store::start("unknown fields").await else { return };
    let stores = store.node().await.stores();
    stores.sessions.create("s", &record(None)).await.unwrap();
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*:h").query_async(&mut commands).await.unwrap();
    let () = redis::cmd("HSET").arg(&keys[0]).arg("later").arg("x").query_async(&mut commands).await.unwrap();
    stores.sessions.update("s", &[Change::LogLevel(LoggingLevel::Error)]).await.unwrap();
    assert!(matches!(
        stores.sessions.admit("s", Admission::new(None, None)).await.unwrap(),
        Admitted::Record(..)
    ));
    let kept: String =
        redis::cmd("HGET").arg(&keys[0]).arg("later").query_async(&mut commands).await.unwrap();
    assert_eq!(kept, "x");
}

/// SCL-89: neither session ids nor principals appear in the store.
#[tokio::test]
async fn secrets_are_not_stored() {
    let Some(store) = Store::start("secrets").await else { return };
    let stores = store.node().await.stores();
    let principal = PrincipalKey::of(&Principal::new("a-secret-principal"));
    stores.sessions.create("a-secret-session", &record(Some(principal))).await.unwrap();
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut commands).await.unwrap();
    for key in keys {
        let value: Vec<u8> = redis::cmd("DUMP").arg(&key).query_async(&mut commands).await.unwrap();
        assert!(!key.contains("secret") && !String::from_utf8_lossy(&value).contains("secret"), "{key}");
    }
}
