//! Tests of the event store in memory.

use std::time::Duration;

use bytes::Bytes;
use duplexer_core::run::RunId;
use duplexer_server::subscriptions::Position;
use duplexer_types::jsonrpc::RequestId;

use crate::session::memory_events::EVENT_OVERHEAD;
use crate::session::*;

const A: RunId = RunId(1);
const B: RunId = RunId(2);

fn key(session: &str, stream: u128) -> StreamKey {
    StreamKey::new(session.into(), StreamId(stream))
}

fn events(kind: EventKind, texts: &[&'static str]) -> Vec<StoredEvent> {
    texts.iter().map(|text| StoredEvent::new(Bytes::from_static(text.as_bytes()), kind)).collect()
}

fn notes(texts: &[&'static str]) -> Vec<StoredEvent> {
    events(EventKind::Notification, texts)
}

async fn open(store: &MemoryEventStore, key: &StreamKey) {
    let opened = store.append(key, Batch::open(A, &RequestId::from(1_i64))).await.unwrap();
    assert_eq!(opened, Appended::UpTo { last: 0, reader: Some(A) });
}

async fn append(store: &MemoryEventStore, key: &StreamKey, from: u64, events: &[StoredEvent]) -> Appended {
    store.append(key, Batch::new(A, Numbering::From(from), events)).await.unwrap()
}

fn up_to(last: u64) -> Appended {
    Appended::UpTo { last, reader: Some(A) }
}

async fn texts(store: &MemoryEventStore, key: &StreamKey, after: u64) -> Option<(u64, Vec<String>, bool)> {
    let page = store.read(key, after, 256).await.unwrap()?;
    let texts = page.events.iter().map(|event| String::from_utf8(event.data.to_vec()).unwrap()).collect();
    Some((page.first, texts, page.ended))
}

/// HTTPL-18, P-LEG-16, SCL-34: only later events, only of this stream, only in this session; a batch that is repeated is
/// stored once.
#[tokio::test]
async fn events_are_kept_by_session_and_stream() {
    let (store, one) = (MemoryEventStore::new(), key("a", 1));
    assert_eq!(append(&store, &one, 1, &notes(&["x"])).await, Appended::Unknown);
    open(&store, &one).await;
    open(&store, &one).await;
    for _ in 0..2 {
        assert_eq!(append(&store, &one, 1, &notes(&["1", "2"])).await, up_to(2));
    }
    assert_eq!(append(&store, &one, 2, &notes(&["2", "3"])).await, up_to(3), "only what is new is added");
    assert_eq!(texts(&store, &one, 1).await, Some((2, vec!["2".into(), "3".into()], false)));
    assert_eq!(texts(&store, &one, 9).await, Some((10, vec![], false)));
    assert_eq!(texts(&store, &key("b", 1), 0).await, None);
    store.forget("a").await.unwrap();
    assert_eq!(texts(&store, &one, 0).await, None);
    let request = RequestId::from(1_i64);
    assert_eq!(store.append(&one, Batch::open(A, &request)).await.unwrap(), Appended::Closed);
    let standalone = key("a", 0);
    let attached = store.attach(&standalone, Attach::anew(A, Takeover::Never)).await.unwrap();
    assert_eq!(attached, Attached::Unknown, "nothing brings a session back that has ended");
}

/// SCL-05, SCL-35: a stream has one last message. Afterwards nothing is accepted.
#[tokio::test]
async fn a_stream_ends_once() {
    let (store, one, two) = (MemoryEventStore::new(), key("a", 1), key("a", 2));
    for key in [&one, &two] {
        open(&store, key).await;
        append(&store, key, 1, &notes(&["1"])).await;
    }
    let last = events(EventKind::Final, &["end"]);
    assert_eq!(append(&store, &one, 2, &last).await, up_to(2));
    assert_eq!(append(&store, &one, 2, &last).await, up_to(2), "a repetition is confirmed");
    assert_eq!(append(&store, &one, 3, &notes(&["late"])).await, Appended::Closed);
    let gone = Bytes::from_static(b"lost");
    assert_eq!(store.conclude(&one, A, &gone).await.unwrap(), Concluded::Already);
    assert_eq!(store.conclude(&two, B, &gone).await.unwrap(), Concluded::Already, "another writer");
    assert_eq!(store.conclude(&two, A, &gone).await.unwrap(), Concluded::Ended);
    assert_eq!(store.conclude(&two, A, &gone).await.unwrap(), Concluded::Already);
    for from in [2, 3] {
        assert_eq!(append(&store, &two, from, &last).await, Appended::Closed);
    }
    assert_eq!(
        append(&store, &two, 1, &notes(&["1"])).await,
        up_to(1),
        "what was stored before is confirmed"
    );
    assert_eq!(texts(&store, &two, 0).await, Some((1, vec!["1".into(), "lost".into()], true)));
    assert_eq!(store.conclude(&key("a", 3), A, &gone).await.unwrap(), Concluded::Unknown);
}

/// SCL-37: the store numbers the events of several writers; a batch that is repeated is noticed by its token.
#[tokio::test]
async fn a_stream_with_several_writers_is_numbered_by_the_store() {
    let (store, key) = (MemoryEventStore::new(), key("a", 0));
    let batch = |writer, token, events| Batch::new(writer, Numbering::Next { token, position: None }, events);
    let (one, two) = (notes(&["1"]), notes(&["2", "3"]));
    assert_eq!(store.append(&key, batch(A, 7, &one)).await.unwrap(), Appended::Unknown);
    let attached = store.attach(&key, Attach::anew(B, Takeover::Never)).await.unwrap();
    assert_eq!(attached, Attached::Reader { number: 1, after: 0, position: None });
    let stored = |last| Appended::UpTo { last, reader: Some(B) };
    assert_eq!(store.append(&key, batch(A, 7, &one)).await.unwrap(), stored(1));
    assert_eq!(store.append(&key, batch(B, 8, &two)).await.unwrap(), stored(3));
    assert_eq!(store.append(&key, batch(A, 7, &one)).await.unwrap(), stored(1));
    assert_eq!(texts(&store, &key, 0).await.unwrap().1, ["1", "2", "3"]);
}

/// SCL-10: changes that two nodes read from the bus are written once, by their position, which the next reader learns.
#[tokio::test]
async fn changes_are_written_once() {
    let (store, key) = (MemoryEventStore::new(), key("a", 0));
    store.attach(&key, Attach::anew(A, Takeover::Never)).await.unwrap();
    let event = notes(&["changed"]);
    for (token, position, last) in [(1, 5, 1), (2, 5, 1), (3, 4, 1), (4, 6, 2)] {
        let numbering = Numbering::Next { token, position: Some(Position(position)) };
        let appended = store.append(&key, Batch::new(A, numbering, &event)).await.unwrap();
        assert_eq!(appended, up_to(last), "{position}");
    }
    let attached = store.attach(&key, Attach::after(B, 2)).await.unwrap();
    assert_eq!(attached, Attached::Reader { number: 2, after: 2, position: Some(Position(6)) });
}

/// SCL-39: one reader per stream. A client with an event id takes over; one without does not, and continues where the last
/// reader left.
#[tokio::test]
async fn a_stream_has_one_reader() {
    let (store, key) = (MemoryEventStore::new(), key("a", 0));
    let anew = |run| store.attach(&key, Attach::anew(run, Takeover::Never));
    assert_eq!(anew(A).await.unwrap(), Attached::Reader { number: 1, after: 0, position: None });
    assert_eq!(anew(B).await.unwrap(), Attached::Held(A));
    store
        .append(&key, Batch::new(A, Numbering::Next { token: 1, position: None }, &notes(&["1", "2"])))
        .await
        .unwrap();
    let woken = store.watch(&key);
    let taken = store.attach(&key, Attach::after(B, 1)).await.unwrap();
    assert_eq!(taken, Attached::Reader { number: 2, after: 1, position: None });
    woken.await;
    let page = store.read(&key, 1, 0).await.unwrap().unwrap();
    assert_eq!(page.reader, Some(StreamReader { run: B, number: 2 }));
    store.detach(&key, 1, 2).await.unwrap();
    assert_eq!(anew(A).await.unwrap(), Attached::Held(B), "a reader that was replaced detaches no other");
    let gone = store.attach(&key, Attach::anew(A, Takeover::Of(B))).await.unwrap();
    assert_eq!(gone, Attached::Reader { number: 3, after: 2, position: None });
    store.detach(&key, 3, 1).await.unwrap();
    assert_eq!(anew(A).await.unwrap(), Attached::Reader { number: 4, after: 1, position: None });
}

/// SCL-14, SCL-46: if the client has seen more than the store has, no number is given to two events.
#[tokio::test]
async fn numbers_continue_after_what_a_client_has_seen() {
    let (store, one, standalone) = (MemoryEventStore::new(), key("a", 1), key("a", 0));
    open(&store, &one).await;
    append(&store, &one, 1, &notes(&["1"])).await;
    assert_eq!(append(&store, &one, 5, &notes(&["5"])).await, up_to(5), "the writer's own number counts");
    assert_eq!(texts(&store, &one, 0).await.unwrap(), (5, vec!["5".into()], false));
    let attached = store.attach(&standalone, Attach::after(A, 9)).await.unwrap();
    assert_eq!(attached, Attached::Reader { number: 1, after: 9, position: None });
    let next = Batch::new(A, Numbering::Next { token: 1, position: None }, &[]);
    let event = notes(&["x"]);
    let appended = store.append(&standalone, Batch { events: &event, ..next }).await.unwrap();
    assert_eq!(appended, up_to(10));
    for absurd in [u64::MAX, 1 << 40] {
        let attached = store.attach(&standalone, Attach::after(A, absurd)).await.unwrap();
        assert_eq!(attached, Attached::Unknown);
    }
}

/// SCL-27, SCL-28: the oldest events are evicted first, but not a request without an answer, and not the last message.
#[tokio::test]
async fn a_stream_is_bounded() {
    let limits = EventLimits { stream_events: 3, ..EventLimits::default() };
    let (store, key) = (MemoryEventStore::with_limits(limits), key("a", 1));
    open(&store, &key).await;
    append(&store, &key, 1, &notes(&["1", "2", "3"])).await;
    append(&store, &key, 4, &notes(&["4"])).await;
    assert_eq!(texts(&store, &key, 0).await.unwrap().0, 2);
    let question = events(EventKind::Request, &["5"]);
    append(&store, &key, 5, &question).await;
    let waiting = |from, events| Batch::new(A, Numbering::From(from), events).unanswered(Some(5));
    let more = notes(&["6", "7"]);
    assert_eq!(store.append(&key, waiting(6, &more)).await.unwrap(), up_to(7));
    let note = notes(&["8"]);
    assert_eq!(store.append(&key, waiting(8, &note)).await.unwrap(), Appended::Full);
    assert_eq!(texts(&store, &key, 0).await.unwrap().1, ["5", "6", "7"], "nothing was evicted for it");
    let last = events(EventKind::Final, &["end"]);
    assert_eq!(store.append(&key, waiting(8, &last)).await.unwrap(), up_to(8));
    assert_eq!(texts(&store, &key, 0).await.unwrap().1, ["5", "6", "7", "end"]);
}

/// SCL-27: of a session, and of the store, the oldest streams that have ended are evicted.
#[tokio::test]
async fn streams_that_have_ended_are_evicted_first() {
    let size = 10 + EVENT_OVERHEAD;
    let limits = EventLimits { session_bytes: 3 * size, total_bytes: 5 * size, ..EventLimits::default() };
    let store = MemoryEventStore::with_limits(limits);
    let last = events(EventKind::Final, &["0123456789"]);
    let end = async |session: &str, stream| {
        open(&store, &key(session, stream)).await;
        append(&store, &key(session, stream), 1, &last).await;
    };
    open(&store, &key("quiet", 9)).await;
    append(&store, &key("quiet", 9), 1, &notes(&["0123456789"])).await;
    for stream in 1..=4 {
        end("loud", stream).await;
    }
    assert_eq!(texts(&store, &key("loud", 1), 0).await, None);
    assert!(texts(&store, &key("loud", 2), 0).await.is_some());
    for session in ["x", "y", "z"] {
        end(session, 1).await;
    }
    assert_eq!(texts(&store, &key("loud", 3), 0).await, None);
    assert!(texts(&store, &key("quiet", 9), 0).await.is_some(), "a stream in use stays");
    assert_eq!(store.bytes(), 5 * size);
}

/// SCL-15: a stream that has ended expires; soon, if its last event was received.
#[tokio::test(start_paused = true)]
async fn streams_expire_after_their_end() {
    let store = MemoryEventStore::new();
    let last = events(EventKind::Final, &["end"]);
    for stream in [1, 2] {
        open(&store, &key("a", stream)).await;
        append(&store, &key("a", stream), 1, &last).await;
    }
    store.detach(&key("a", 1), 1, 1).await.unwrap();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(texts(&store, &key("a", 1), 0).await, None);
    assert!(texts(&store, &key("a", 2), 0).await.is_some());
    tokio::time::advance(Duration::from_secs(240)).await;
    assert_eq!(texts(&store, &key("a", 2), 0).await, None);
    open(&store, &key("b", 1)).await;
    assert_eq!(store.bytes(), 0, "what has expired is freed");
}
