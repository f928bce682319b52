//! Events: numbering, pages, readers, the end of a stream, bounds.

use bytes::Bytes;
use duplexer_core::run::RunId;
use duplexer_http::{
    Appended, Attach, Attached, Batch, Concluded, EventKind, Numbering, SharedStores, StoredEvent, StreamId,
    StreamKey, Takeover,
};
use duplexer_types::jsonrpc::RequestId;

use super::store::Store;

const WRITER: RunId = RunId(7);

fn key() -> StreamKey {
    StreamKey::new("s".into(), StreamId(9))
}

fn notification(text: &str) -> StoredEvent {
    StoredEvent::new(Bytes::copy_from_slice(text.as_bytes()), EventKind::Notification)
}

async fn open(stores: &SharedStores) {
    stores.events.append(&key(), Batch::open(WRITER, &RequestId::from(1_i64))).await.unwrap();
}

async fn append(stores: &SharedStores, from: u64, events: &[StoredEvent]) -> Appended {
    stores.events.append(&key(), Batch::new(WRITER, Numbering::From(from), events)).await.unwrap()
}

fn up_to(last: u64) -> Appended {
    Appended::UpTo { last, reader: Some(WRITER) }
}

async fn read(stores: &SharedStores, after: u64) -> (u64, Vec<String>, bool) {
    let page = stores.events.read(&key(), after, 256).await.unwrap().unwrap();
    let text = |event: &StoredEvent| String::from_utf8(event.data.to_vec()).unwrap();
    (page.first, page.events.iter().map(text).collect(), page.ended)
}

/// SCL-34: a batch that was stored already is skipped, also in part, and also after the end.
#[tokio::test]
async fn a_repeated_batch_is_stored_once() {
    let Some(store) = Store::start("repeated batches").await else { return };
    let stores = store.node().await.stores();
    assert_eq!(append(&stores, 1, &[notification("a")]).await, Appended::Unknown);
    open(&stores).await;
    open(&stores).await;
    assert_eq!(append(&stores, 1, &[notification("a"), notification("b")]).await, up_to(2));
    assert_eq!(append(&stores, 1, &[notification("a"), notification("b")]).await, up_to(2));
    assert_eq!(append(&stores, 2, &[notification("b"), notification("c")]).await, up_to(3));
    let last = [StoredEvent::new("z".into(), EventKind::Final)];
    assert_eq!(append(&stores, 4, &last).await, up_to(4));
    assert_eq!(append(&stores, 4, &last).await, up_to(4));
    assert_eq!(append(&stores, 5, &[notification("late")]).await, Appended::Closed);
    assert_eq!(read(&stores, 0).await, (1, ["a", "b", "c", "z"].map(str::to_owned).to_vec(), true));
    assert_eq!(read(&stores, 3).await, (4, vec!["z".to_owned()], true));
}

/// SCL-46: where the store has lost events, the list continues at the number of the writer.
#[tokio::test]
async fn a_hole_is_not_filled_with_other_events() {
    let Some(store) = Store::start("holes").await else { return };
    let stores = store.node().await.stores();
    open(&stores).await;
    append(&stores, 1, &[notification("a")]).await;
    assert_eq!(append(&stores, 4, &[notification("d")]).await, up_to(4));
    assert_eq!(read(&stores, 0).await, (4, vec!["d".to_owned()], false));
}

/// SCL-05: a stream whose writer is gone ends once, and the writer is refused from then on.
#[tokio::test]
async fn a_stream_is_concluded_once() {
    let Some(store) = Store::start("conclusions").await else { return };
    let stores = store.node().await.stores();
    open(&stores).await;
    append(&stores, 1, &[notification("a")]).await;
    let lost = Bytes::from_static(b"lost");
    let conclude = async |writer| stores.events.conclude(&key(), writer, &lost).await.unwrap();
    assert_eq!(conclude(RunId(8)).await, Concluded::Already, "another writer");
    assert_eq!(conclude(WRITER).await, Concluded::Ended);
    assert_eq!(conclude(WRITER).await, Concluded::Already);
    assert_eq!(append(&stores, 2, &[notification("b")]).await, Appended::Closed);
    assert_eq!(read(&stores, 0).await, (1, vec!["a".to_owned(), "lost".to_owned()], true));
    let other = StreamKey::new("s".into(), StreamId(10));
    assert_eq!(stores.events.conclude(&other, WRITER, &lost).await.unwrap(), Concluded::Unknown);
}

/// SCL-39: a client with an event id replaces any reader; one without is refused while another reads.
#[tokio::test]
async fn a_stream_has_one_reader() {
    let Some(store) = Store::start("readers").await else { return };
    let stores = store.node().await.stores();
    open(&stores).await;
    append(&stores, 1, &[notification("a"), notification("b")]).await;
    let attach = async |attach| stores.events.attach(&key(), attach).await.unwrap();
    let (one, two) = (RunId(1), RunId(2));
    assert_eq!(attach(Attach::after(one, 1)).await, Attached::Reader { number: 2, after: 1, position: None });
    assert_eq!(attach(Attach::anew(two, Takeover::Never)).await, Attached::Held(one));
    assert_eq!(attach(Attach::anew(two, Takeover::Of(WRITER))).await, Attached::Held(one));
    stores.events.detach(&key(), 1, 2).await.unwrap();
    assert_eq!(
        attach(Attach::anew(two, Takeover::Never)).await,
        Attached::Held(one),
        "an earlier reader left"
    );
    stores.events.detach(&key(), 2, 1).await.unwrap();
    assert_eq!(
        attach(Attach::anew(two, Takeover::Never)).await,
        Attached::Reader { number: 3, after: 1, position: None }
    );
    assert_eq!(
        attach(Attach::after(one, 5)).await,
        Attached::Reader { number: 4, after: 5, position: None },
        "the store lost events"
    );
    assert_eq!(append(&stores, 3, &[notification("c")]).await, Appended::UpTo { last: 3, reader: Some(one) });
}

/// A change at one node wakes the reader at another.
#[tokio::test]
async fn a_reader_at_another_node_is_woken() {
    let Some(store) = Store::start("wake-ups").await else { return };
    let (first, second) = (store.node().await, store.node().await);
    let (one, two) = (first.stores(), second.stores());
    open(&one).await;
    two.events.attach(&key(), Attach::after(second.run(), 0)).await.unwrap();
    for number in 1..=3 {
        let woken = two.events.watch(&key());
        append(&one, number, &[notification("a")]).await;
        woken.await;
    }
}

/// SCL-27, SCL-28: the oldest events go first, and an unanswered question stays.
#[tokio::test]
async fn a_stream_is_bounded() {
    let Some(store) = Store::start("bounds").await else { return };
    let stores = store.node().await.stores();
    open(&stores).await;
    let page = vec![notification("n"); 50];
    for batch in 0..22 {
        append(&stores, 1 + batch * 50, &page).await;
    }
    assert_eq!(read(&stores, 0).await.0, 101);
    let question = |events| Batch::new(WRITER, Numbering::From(1101), events).unanswered(Some(101));
    let full = stores.events.append(&key(), question(&page)).await.unwrap();
    assert_eq!(full, Appended::Full);
    let last = [StoredEvent::new("z".into(), EventKind::Final)];
    assert_eq!(stores.events.append(&key(), question(&last)).await.unwrap(), up_to(1101));
    let large = vec![notification(&"x".repeat(600_000))];
    let other = StreamKey::new("s".into(), StreamId(11));
    stores.events.append(&other, Batch::open(WRITER, &RequestId::from(2_i64))).await.unwrap();
    for number in 1..=3 {
        stores.events.append(&other, Batch::new(WRITER, Numbering::From(number), &large)).await.unwrap();
    }
    assert_eq!(stores.events.read(&other, 0, 10).await.unwrap().unwrap().first, 3);
}

/// SCL-37: the store numbers the events of several writers, and recognises a repeated batch.
#[tokio::test]
async fn the_standalone_stream_has_several_writers() {
    let Some(store) = Store::start("several writers").await else { return };
    let stores = store.node().await.stores();
    let snapshot = duplexer_server::ConnectionSnapshot::new("2025-11-25".to_owned());
    let record = duplexer_http::SessionRecord::new(snapshot, None);
    stores.sessions.create("s", &record).await.unwrap();
    let key = StreamKey::new("s".into(), StreamId::STANDALONE);
    let attached = stores.events.attach(&key, Attach::anew(WRITER, Takeover::Never)).await.unwrap();
    assert_eq!(attached, Attached::Reader { number: 1, after: 0, position: None });
    let events = [notification("a")];
    let append = async |writer, token| {
        let batch = Batch::new(RunId(writer), Numbering::Next { token, position: None }, &events);
        stores.events.append(&key, batch).await.unwrap()
    };
    assert_eq!(append(1, 1).await, up_to(1));
    assert_eq!(append(2, 2).await, up_to(2));
    assert_eq!(append(1, 1).await, up_to(1), "a repetition");
    assert_eq!(stores.events.read(&key, 0, 10).await.unwrap().unwrap().events.len(), 2);
}

/// Streams of an ended session are removed.
#[tokio::test]
async fn streams_are_forgotten() {
    let Some(store) = Store::start("forgotten streams").await else { return };
    let stores = store.node().await.stores();
    open(&stores).await;
    append(&stores, 1, &[notification("a")]).await;
    stores.events.forget("s").await.unwrap();
    assert_eq!(stores.events.read(&key(), 0, 10).await.unwrap(), None);
}
