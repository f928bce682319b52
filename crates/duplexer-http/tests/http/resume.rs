//! Resumed streams.

use std::future::{pending, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer_core::error::StoreError;
use duplexer_http::MemoryEventStore;
use serde_json::json;
use tokio::sync::Semaphore;

use crate::support::{
    Client, Events, Hooked, Operation, Post, SentEvent, Site, Wire, ask, call_in, mounted, open, progress_in,
};

async fn site() -> Site {
    Site::with(|builder| builder.event_store(MemoryEventStore::new())).await
}

async fn resume(client: &Client<'_>, last: &str) -> Wire {
    let mut wire = client.site.connect().await;
    wire.send(&client.get().header("Last-Event-ID", last).bytes(client.site.address)).await;
    let head = wire.head().await.unwrap();
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    wire
}

async fn rest(wire: &mut Wire) -> Vec<SentEvent> {
    let mut events = Vec::new();
    while let Some(event) = wire.event().await {
        events.push(event);
    }
    events
}

/// HTTPL-19, P-LEG-17: the first event has an id and a retry time; every other event has an id of its own.
#[tokio::test]
async fn a_stream_begins_with_where_to_come_back_to() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell").await;
    let opening = stream.event().await.unwrap();
    assert_eq!((opening.data.as_str(), opening.retry.as_deref()), ("", Some("1000")));
    let events = rest(&mut stream).await;
    let ids: Vec<_> = events.iter().map(|event| event.id.clone().unwrap()).collect();
    assert_eq!(ids.len(), 4);
    let prefix = opening.id.unwrap().split_once('-').unwrap().0.to_owned();
    assert_eq!(prefix.len(), 32, "128 bits");
    for (index, id) in ids.iter().enumerate() {
        assert_eq!(*id, format!("{prefix}-{}", index + 1));
    }
    let quick = client.call(2, "echo").await;
    assert!(quick.text().contains("retry: 1000"), "an answer that comes at once is a stream too");
    let mut listening = client.listen().await;
    assert_eq!(listening.event().await.unwrap().retry.as_deref(), Some("1000"));
}

/// HTTPL-19, protocol.md 2.4: clients of older revisions could misread an event without data as a message.
#[tokio::test]
async fn older_revisions_have_no_opening_event() {
    let site = site().await;
    for version in ["2025-03-26", "2025-06-18"] {
        let client = Client::open_at(&site, version).await;
        let mut stream = client.stream(1, "tell").await;
        let events = rest(&mut stream).await;
        assert_eq!((events.len(), events[0].retry.clone()), (4, None), "{version}");
        let again = rest(&mut resume(&client, events[1].id.as_deref().unwrap()).await).await;
        assert_eq!(again, events[2..], "but it can be taken up all the same");
    }
}

/// HTTPL-10, HTTPL-20, P-LEG-16, P-CAN-6: a client that lost the connection gets the remaining events, once, and then
/// the response.
#[tokio::test]
async fn a_lost_stream_is_taken_up_where_it_broke() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell then wait").await;
    stream.event().await.unwrap();
    let seen = stream.event().await.unwrap();
    assert_eq!(seen.json()["params"]["progress"], json!(1));
    drop(stream);
    let mut again = resume(&client, seen.id.as_deref().unwrap()).await;
    let opening = again.event().await.unwrap();
    assert_eq!((opening.id, opening.data.as_str()), (seen.id, ""));
    site.stage.go.notify_one();
    let events = rest(&mut again).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!(events[0].json()["params"]["progress"], json!(2));
    assert_eq!(events[1].json()["result"]["content"][0]["text"], "done");
}

/// HTTPL-20: a stream that ended without a reader can be replayed any number of times.
#[tokio::test]
async fn an_answer_waits_for_its_client() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell then wait").await;
    let opening = stream.event().await.unwrap();
    drop(stream);
    site.stage.go.notify_one();
    site.stage.until(&site.stage.ended, 1).await;
    for _ in 0..2 {
        let mut again = resume(&client, opening.id.as_deref().unwrap()).await;
        let events: Vec<_> =
            rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
        let progress: Vec<_> =
            events.iter().map(|event| event.json()["params"]["progress"].clone()).collect();
        assert_eq!(progress, [json!(1), json!(2), json!(null)]);
        assert_eq!(events[2].json()["id"], 1);
    }
}

/// HTTPL-21, P-LEG-17: a handler closes the stream, and the client gets the response when it resumes.
#[tokio::test]
async fn a_handler_lets_its_client_go() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "let go").await;
    let mut events = rest(&mut stream).await;
    let last = events.pop().unwrap();
    site.stage.until(&site.stage.sent, 1).await;
    let mut again = resume(&client, last.id.as_deref().unwrap()).await;
    site.stage.go.notify_one();
    let events: Vec<_> = rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
    assert_eq!(events.last().unwrap().json()["result"]["content"][0]["text"], "Closing");
}

/// HTTPL-21, hardening, other defects 3: a closed stream ends after the events so far, also those that the store has not
/// confirmed; later ones wait for the client that resumes it.
#[tokio::test]
async fn a_closed_stream_ends_after_the_events_on_their_way_to_the_store() {
    let gate = Arc::new(Semaphore::new(1));
    let held = Arc::clone(&gate);
    let store = Hooked::new(move |operation| {
        let gate = Arc::clone(&held);
        Box::pin(async move {
            if operation == Operation::Append {
                gate.acquire().await.unwrap().forget();
            }
            Ok(())
        })
    });
    let site = Site::with(|builder| builder.event_store(store)).await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "let go").await;
    let opening = stream.event().await.unwrap();
    assert_eq!(opening.data, "");
    site.stage.until(&site.stage.sent, 1).await;
    site.stage.go.notify_one();
    site.stage.until(&site.stage.ended, 1).await;
    gate.add_permits(10);
    let events = rest(&mut stream).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0].json()["params"]["progress"], json!(1));
    let mut again = resume(&client, events[0].id.as_deref().unwrap()).await;
    let events: Vec<_> = rest(&mut again).await.into_iter().filter(|event| !event.data.is_empty()).collect();
    assert_eq!(events[0].json()["params"]["progress"], json!(2));
    assert_eq!(events[1].json()["result"]["content"][0]["text"], "Closing");
}

/// HTTPL-21: only where the client can resume.
#[tokio::test]
async fn a_client_that_cannot_come_back_is_not_let_go() {
    let (plain, kept) = (Site::new().await, site().await);
    for (site, version) in [(&plain, "2025-11-25"), (&kept, "2025-06-18")] {
        let client = Client::open_at(site, version).await;
        let mut stream = client.stream(1, "let go").await;
        site.stage.until(&site.stage.sent, 1).await;
        site.stage.go.notify_one();
        let events = rest(&mut stream).await;
        assert_eq!(events.last().unwrap().json()["result"]["content"][0]["text"], "NotSupported");
    }
}

/// HTTPL-17: messages outside a request are stored while there is no reader, for the client that resumes the stream only.
#[tokio::test]
async fn the_standalone_stream_is_taken_up_too() {
    let site = site().await;
    let client = Client::open(&site).await;
    let mut listening = client.listen().await;
    let opening = listening.event().await.unwrap().id.unwrap();
    drop(listening);
    client.call(1, "announce").await;
    let mut again = resume(&client, &opening).await;
    again.event().await.unwrap();
    let event = again.event().await.unwrap();
    assert_eq!(event.json()["method"], "notifications/tools/list_changed");
    client.call(2, "announce").await;
    assert_eq!(again.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
    // A client that resumes replaces a reader that still seems attached.
    let mut third = resume(&client, event.id.as_deref().unwrap()).await;
    third.event().await.unwrap();
    assert!(third.event().await.is_some());
    assert_eq!(again.event().await, None);
}

/// P-LEG-16, peers 23, GHSA-84j6-jc92-77jm: the events of another session, or of another stream, are not replayed.
#[tokio::test]
async fn foreign_event_ids_replay_nothing() {
    let site = site().await;
    let (one, two) = (Client::open(&site).await, Client::open(&site).await);
    let mut stream = one.stream(1, "tell").await;
    let ids: Vec<_> = rest(&mut stream).await.into_iter().filter_map(|event| event.id).collect();
    let unknown = format!("{:032x}-0", 7);
    for foreign in [ids[0].as_str(), &unknown, "", "x", "0", "-", "%00"] {
        let mut wire = resume(&two, foreign).await;
        assert_eq!(rest(&mut wire).await, [], "{foreign}");
    }
    let reply = site.post(&two.get().header("last-event-id", "a").header("last-event-id", "b")).await;
    assert_eq!(reply.status, 400);
}

/// Design item 10, robustness H97: without a store no stream can be resumed, and the error says so. A dead session is
/// 404.
#[tokio::test]
async fn without_a_store_nothing_is_taken_up() {
    let plain = Site::new().await;
    let client = Client::open(&plain).await;
    let reply = plain.post(&client.get().header("last-event-id", "x")).await;
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("keeps no events"), "{}", reply.text());
    let kept = site().await;
    let client = Client::open(&kept).await;
    kept.post(&client.delete()).await;
    assert_eq!(kept.post(&client.get().header("last-event-id", "x")).await.status, 404);
}

/// How a store fails.
#[derive(Clone, Copy)]
enum How {
    Fails,
    Unavailable,
    Hangs,
    Panics,
}

/// Returns a store of which some operations, from one on, fail.
fn bad_store(how: How, failing: std::ops::Range<usize>) -> Arc<Hooked> {
    let seen = AtomicUsize::new(0);
    Hooked::new(move |_| {
        if !failing.contains(&seen.fetch_add(1, Ordering::SeqCst)) {
            return Box::pin(ready(Ok(())));
        }
        match how {
            How::Fails => Box::pin(ready(Err(StoreError::Failed("no".into())))),
            How::Unavailable => Box::pin(ready(Err(StoreError::Unavailable("no".into())))),
            How::Hangs => Box::pin(pending()),
            How::Panics => panic!("a store that fails badly"),
        }
    })
}

/// HTTPL-19: a store that fails when a stream starts fails the request; nothing of it is left.
#[tokio::test]
async fn a_store_that_fails_costs_one_request() {
    for how in [How::Fails, How::Panics] {
        let store = bad_store(how, 0..usize::MAX);
        let site = Site::with(|builder| builder.event_store(store)).await;
        let client = Client::open(&site).await;
        for _ in 0..2 {
            let reply = client.call(1, "echo").await;
            assert_eq!((reply.status, reply.code()), (500, -32603));
        }
        assert_eq!(site.stage.started.load(Ordering::SeqCst), 0);
        assert_eq!(site.post(&client.get()).await.status, 500);
        assert_eq!(site.post(&client.delete()).await.status, 200);
    }
}

/// SCL-34, SCL-45: no event is shown before it is stored. If the store fails for longer than operations are tried, the
/// body ends, and the client that comes back misses nothing.
#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_some_time_loses_nothing() {
    for how in [How::Fails, How::Unavailable, How::Hangs, How::Panics] {
        // The stream is opened, and its first batch is written again and again.
        let (service, _) = mounted(|builder| builder.event_store(bad_store(how, 1..12)));
        let session = open(&service, None).await;
        let mut body = Events::of(ask(&service, &progress_in(&session, 1, "tell"), None).await);
        let priming = body.next().await.unwrap();
        let mut seen = Vec::new();
        let mut last = priming.id.unwrap();
        while let Some(event) = body.next().await {
            last.clone_from(event.id.as_ref().expect("every event has an id"));
            seen.push(event.json());
        }
        while seen.len() < 4 {
            let mut get = call_in(&session, 1, "tell").method("GET").header("last-event-id", &last);
            get.body.clear();
            let reply = ask(&service, &get, None).await;
            if reply.status() != 200 {
                assert!([500, 503].contains(&reply.status().as_u16()));
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            let mut body = Events::of(reply);
            while let Some(event) = body.next().await {
                last = event.id.clone().unwrap();
                seen.extend((!event.data.is_empty()).then(|| event.json()));
            }
        }
        let progress: Vec<_> = seen.iter().map(|event| event["params"]["progress"].clone()).collect();
        assert_eq!(progress, [json!(1), json!(2), json!(3), json!(null)]);
    }
}

/// SCL-63: no request waits longer than the patience for a store that hangs, and then not at all.
#[tokio::test(start_paused = true)]
async fn a_store_that_hangs_is_not_waited_for() {
    let (service, _) = mounted(|builder| builder.event_store(bad_store(How::Hangs, 0..usize::MAX)));
    let session = open(&service, None).await;
    let start = tokio::time::Instant::now();
    let reply = ask(&service, &call_in(&session, 1, "echo"), None).await;
    assert_eq!((reply.status().as_u16(), &reply.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    assert_eq!(start.elapsed().as_secs(), 5);
    let (start, mut calls) = (tokio::time::Instant::now(), tokio::task::JoinSet::new());
    for id in 2..100 {
        let (service, call) = (service.clone(), call_in(&session, id, "echo"));
        calls.spawn(async move { (ask(&service, &call, None).await.status().as_u16(), start.elapsed()) });
    }
    let calls = calls.join_all().await;
    assert!(calls.iter().all(|(status, _)| *status == 503));
    let waited = calls.iter().filter(|(_, elapsed)| !elapsed.is_zero()).count();
    assert!(waited <= 1, "one attempt per 250 ms: {waited}");
    let start = tokio::time::Instant::now();
    assert_eq!(ask(&service, &Post::tool("echo"), None).await.status(), 200);
    assert_eq!(start.elapsed().as_secs(), 0, "the envelope era needs no store");
}

/// SCL-36: many notifications cost few operations of the store.
#[tokio::test]
async fn notifications_are_stored_in_batches() {
    let appends = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&appends);
    let store = Hooked::new(move |operation| {
        counted.fetch_add(usize::from(operation == Operation::Append), Ordering::SeqCst);
        Box::pin(async {
            tokio::task::yield_now().await;
            Ok(())
        })
    });
    let (service, _) = mounted(|builder| builder.event_store(store));
    let session = open(&service, None).await;
    let mut body = Events::of(ask(&service, &progress_in(&session, 1, "tell much"), None).await);
    for step in 1..=1000 {
        assert_eq!(body.message().await.unwrap()["params"]["progress"], json!(step));
    }
    assert!(body.message().await.unwrap()["result"].is_object());
    assert!(appends.load(Ordering::SeqCst) <= 40, "{appends:?}");
}

/// SCL-40: a client that does not read holds up no handler. It gets the newest events later.
#[tokio::test]
async fn a_slow_reader_of_a_kept_stream_holds_up_no_handler() {
    let (service, stage) = mounted(|builder| builder.event_store(MemoryEventStore::new()));
    let session = open(&service, None).await;
    let body = ask(&service, &progress_in(&session, 1, "tell much"), None).await;
    stage.until(&stage.ended, 1).await;
    let mut body = Events::of(body);
    let mut steps = Vec::new();
    while let Some(message) = body.message().await {
        steps.extend(message["params"]["progress"].as_u64());
    }
    assert_eq!(steps.last(), Some(&1000));
    assert!(steps.len() >= 999 && steps.is_sorted(), "{}", steps.len());
}
