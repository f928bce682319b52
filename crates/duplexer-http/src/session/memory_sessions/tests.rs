//! Tests of the session store in memory.

use super::super::{EventStore as _, NewRequest, PrincipalKey, StreamId};
use super::*;
use duplexer_core::run::RunId;
use duplexer_server::Principal;
use duplexer_types::logging::LoggingLevel;

const IDLE: Duration = Duration::from_secs(600);
const A: RunId = RunId(1);
const B: RunId = RunId(2);

fn store() -> Arc<MemorySessionStore> {
    MemorySessionStore::new(IDLE, Arc::new(MemoryEventStore::new()))
}

fn record(initialized: bool) -> SessionRecord {
    let connection = serde_json::json!({"version": "2025-11-25", "initialize": null,
        "initialized": initialized, "log_level": "info", "subscriptions": []});
    let principal = PrincipalKey::of(&Principal::new("ada"));
    SessionRecord::new(serde_json::from_value(connection).unwrap(), Some(principal))
}

fn ada() -> Option<PrincipalKey> {
    record(true).principal
}

async fn admit(
    store: &MemorySessionStore,
    known: Option<Revision>,
    request: Option<(i64, RunId)>,
) -> Admitted {
    let principal = ada();
    let id = request.map(|(id, run)| (RequestId::from(id), run));
    let mut admission = Admission::new(principal.as_ref(), known);
    if let Some((id, run)) = &id {
        admission = admission.request(NewRequest { id, run: *run, stream: None });
    }
    store.admit("s", admission).await.unwrap()
}

/// SCL-33: an id that exists is never overwritten; repeating the same creation is no conflict.
#[tokio::test(start_paused = true)]
async fn a_session_is_created_once() {
    let store = store();
    assert_eq!(store.create("s", &record(true)).await.unwrap(), Created::New);
    assert_eq!(store.create("s", &record(true)).await.unwrap(), Created::New);
    assert_eq!(store.create("s", &record(false)).await.unwrap(), Created::Exists);
    assert!(matches!(admit(&store, None, None).await, Admitted::Record(kept, _) if *kept == record(true)));
}

/// SCL-11, SCL-30: a message of another principal changes nothing, not even the expiry.
#[tokio::test(start_paused = true)]
async fn a_stranger_changes_nothing() {
    let store = store();
    store.create("s", &record(true)).await.unwrap();
    tokio::time::advance(Duration::from_secs(599)).await;
    let (stranger, id) = (PrincipalKey::of(&Principal::new("bob")), RequestId::from(1_i64));
    for principal in [None, Some(&stranger)] {
        let request = NewRequest { id: &id, run: A, stream: Some(StreamId(7)) };
        let admission = Admission::new(principal, None).request(request);
        assert_eq!(store.admit("s", admission).await.unwrap(), Admitted::Unknown);
    }
    assert_eq!(store.locate("s", &id).await.unwrap(), None);
    assert_eq!(store.events.read(&StreamKey::new("s".into(), StreamId(7)), 0, 1).await.unwrap(), None);
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(admit(&store, None, None).await, Admitted::Unknown, "the session has expired");
}

/// SCL-31: a request id is in flight once, whichever run admits it; the same admission can be repeated.
#[tokio::test(start_paused = true)]
async fn a_request_is_in_flight_once() {
    let store = store();
    store.create("s", &record(true)).await.unwrap();
    let known = Some(Revision(1));
    assert_eq!(admit(&store, known, Some((1, A))).await, Admitted::Current);
    assert_eq!(admit(&store, known, Some((1, A))).await, Admitted::Current);
    assert_eq!(admit(&store, known, Some((1, B))).await, Admitted::InFlight);
    let id = RequestId::from(1_i64);
    assert_eq!(store.locate("s", &id).await.unwrap(), Some(Placement { run: A, stream: None }));
    let placed = |run| Placement { run, stream: None };
    store.release("s", &id, placed(B)).await.unwrap();
    assert_eq!(admit(&store, known, Some((1, B))).await, Admitted::InFlight, "another run releases nothing");
    store.release("s", &id, Placement { run: A, stream: Some(StreamId(9)) }).await.unwrap();
    assert_eq!(admit(&store, known, Some((1, B))).await, Admitted::InFlight, "neither does another stream");
    store.release("s", &id, placed(A)).await.unwrap();
    assert_eq!(admit(&store, known, Some((1, B))).await, Admitted::Current);
}

/// SCL-27: a session has a limited number of requests in flight.
#[tokio::test(start_paused = true)]
async fn requests_in_flight_are_limited() {
    let store = store();
    store.create("s", &record(true)).await.unwrap();
    for id in 0..256 {
        assert_eq!(admit(&store, Some(Revision(1)), Some((id, A))).await, Admitted::Current);
    }
    assert_eq!(admit(&store, Some(Revision(1)), Some((256, A))).await, Admitted::TooMany);
    assert_eq!(admit(&store, Some(Revision(1)), None).await, Admitted::Current);
}

/// SCL-32: changes of two nodes to different fields are both kept, and only written to a session that exists.
#[tokio::test(start_paused = true)]
async fn changes_are_applied_field_by_field() {
    let store = store();
    let level = [Change::LogLevel(LoggingLevel::Error)];
    assert_eq!(store.update("s", &level).await.unwrap(), None);
    store.create("s", &record(true)).await.unwrap();
    assert_eq!(store.update("s", &[Change::Subscribed("x:1".into())]).await.unwrap(), Some(Revision(2)));
    assert_eq!(store.update("s", &level).await.unwrap(), Some(Revision(3)));
    assert_eq!(store.update("s", &level).await.unwrap(), Some(Revision(3)), "a repetition changes nothing");
    let Admitted::Record(kept, Revision(3)) = admit(&store, Some(Revision(1)), None).await else { panic!() };
    assert_eq!(kept.connection.subscriptions, ["x:1"]);
    assert_eq!(kept.connection.log_level, LoggingLevel::Error);
}

/// SCL-09: a deleted session stays unknown, and a late write does not restore it.
#[tokio::test(start_paused = true)]
async fn a_deleted_session_stays_deleted() {
    let store = store();
    store.create("s", &record(true)).await.unwrap();
    admit(&store, None, Some((1, A))).await;
    let placed = [Placement { run: A, stream: None }];
    assert_eq!(store.delete("s").await.unwrap(), placed);
    assert_eq!(store.delete("s").await.unwrap(), placed, "a repetition returns the same");
    assert_eq!(admit(&store, None, None).await, Admitted::Unknown);
    assert_eq!(store.update("s", &[Change::Initialized]).await.unwrap(), None);
    assert_eq!(store.create("s", &record(true)).await.unwrap(), Created::Exists);
    tokio::time::advance(Duration::from_secs(601)).await;
    assert_eq!(store.create("s", &record(true)).await.unwrap(), Created::New);
}

/// SCL-21: admitted messages and `touch` renew a session. One that was not confirmed expires early.
#[tokio::test(start_paused = true)]
async fn a_used_session_does_not_expire() {
    let store = store();
    store.create("s", &record(true)).await.unwrap();
    store.create("half", &record(false)).await.unwrap();
    for _ in 0..3 {
        tokio::time::advance(IDLE / 2).await;
        store.touch(&["s".into(), "unknown".into()]).await.unwrap();
        tokio::time::advance(IDLE / 2).await;
        assert_ne!(admit(&store, None, None).await, Admitted::Unknown);
    }
    assert_eq!(store.update("half", &[Change::Initialized]).await.unwrap(), None);
    tokio::time::advance(IDLE).await;
    assert_eq!(admit(&store, None, None).await, Admitted::Unknown);
}
