//! Laws of the end of a stream: one last event, of the writer or of a node that concludes the stream.

use std::sync::Arc;

use bytes::Bytes;
use tokio::task::JoinSet;

use super::fresh::{Scene, append, event, holds, id, is_admitted, notes, page, store, texts};
use super::{Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::http::{Appended, Concluded, EventKind, Placement, StreamId};

/// SCL-05, SCL-35.
pub(super) async fn a_stream_ends_once(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let run = scene.a.shared.nodes.run();
    store(&scene.a, &key, 1, &notes(["1"])).await?;
    let end = [event(EventKind::Final, "end")];
    for _ in 0..2 {
        ensure_eq!(store(&scene.a, &key, 2, &end).await?, 2, "the number of the last event, and repeated");
    }
    for kind in [EventKind::Notification, EventKind::Final] {
        let late = append(&scene.a, &key, run, 3, &[event(kind, "late")]).await?;
        ensure_eq!(late, Appended::Closed, "an event after the last one");
    }
    let concluded = scene.b.shared.events.conclude(&key, run, &Bytes::from_static(b"lost")).await?;
    ensure_eq!(concluded, Concluded::Already, "the conclusion of a stream that has ended");
    let first = page(&scene.b, &key, 0, 1).await?;
    ensure!(!first.ended, "a page with events after it is not the end");
    let rest = page(&scene.b, &key, 1, 10).await?;
    ensure_eq!((texts(&rest), rest.ended), (vec!["end".to_owned()], true), "the last page");
    let beyond = page(&scene.b, &key, 2, 10).await?;
    ensure!(beyond.ended && beyond.events.is_empty(), "the page after the last event is an end too");
    Ok(())
}

pub(super) async fn the_last_event_releases_its_request(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let located = scene.b.shared.sessions.locate(&scene.session, &id(1)).await?;
    ensure_eq!(located.map(|it| it.run), Some(scene.a.shared.nodes.run()), "a request in flight");
    store(&scene.a, &key, 1, &[event(EventKind::Final, "end")]).await?;
    let located = scene.b.shared.sessions.locate(&scene.session, &id(1)).await?;
    ensure_eq!(located, None, "a request whose stream has ended");
    // The id can be used again, at another node and at the same one, and a repetition of the last event of the earlier
    // request does not release the newer one.
    for (node, stream) in [(&scene.b, StreamId(55)), (&scene.a, StreamId(56))] {
        let again = scene.admit(node, None, &id(1), Some(stream)).await?;
        ensure!(is_admitted(&again), "the id of a request that has ended can be used again: {again:?}");
        store(&scene.a, &key, 1, &[event(EventKind::Final, "end")]).await?;
        let located = scene.a.shared.sessions.locate(&scene.session, &id(1)).await?;
        let placement = Placement { run: node.shared.nodes.run(), stream: Some(stream) };
        ensure_eq!(located, Some(placement), "the newer request");
        node.shared.sessions.release(&scene.session, &id(1), placement).await?;
    }
    Ok(())
}

/// SCL-05, SCL-41: once, whichever node tries; the dead run's later events are refused.
pub(super) async fn a_dead_writers_stream_is_concluded_once(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let scene = Arc::new(scene);
    let (run, other) = (scene.a.shared.nodes.run(), scene.b.shared.nodes.run());
    store(&scene.a, &key, 1, &notes(["1"])).await?;
    let lost = Bytes::from_static(b"lost");
    let wrong = scene.b.shared.events.conclude(&key, other, &lost).await?;
    ensure_eq!(wrong, Concluded::Already, "the conclusion for a run that is not the writer");
    let unknown = scene.b.shared.events.conclude(&scene.key(StreamId(66)), run, &lost).await?;
    ensure_eq!(unknown, Concluded::Unknown, "the conclusion of a stream that was not opened");
    let mut attempts = JoinSet::new();
    for number in 0..6 {
        let (scene, key, lost) = (Arc::clone(&scene), key.clone(), lost.clone());
        attempts.spawn(async move {
            let node = if number % 2 == 0 { &scene.a } else { &scene.b };
            node.shared.events.conclude(&key, run, &lost).await
        });
    }
    let mut ended = 0;
    while let Some(attempt) = attempts.join_next().await {
        let concluded = attempt.map_err(|error| Reason(format!("an attempt: {error}")))??;
        ended += usize::from(concluded == Concluded::Ended);
    }
    let is_lost = ended == 0 && stores.loses_answers();
    ensure!(ended == 1 || is_lost, "the number of conclusions that ended the stream is {ended}, and not 1");
    for from in [2, 3] {
        let late = append(&scene.a, &key, run, from, &[event(EventKind::Final, "late")]).await?;
        ensure_eq!(late, Appended::Closed, "event {from} of a run that was given up");
    }
    let located = scene.b.shared.sessions.locate(&scene.session, &id(1)).await?;
    ensure_eq!(located, None, "the request of a concluded stream");
    holds(&scene.b, &key, 0, &["1", "lost"]).await
}

/// SCL-28.
pub(super) async fn the_last_event_is_never_evicted(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let mut last = 0;
    while last < stores.limits().stream_events as u64 {
        let events = notes((last + 1..=last + 50).map(|number| number.to_string()));
        last = store(&scene.a, &key, last + 1, &events).await?;
    }
    last = store(&scene.a, &key, last + 1, &[event(EventKind::Final, "end")]).await?;
    let page = page(&scene.b, &key, last - 1, 10).await?;
    ensure_eq!(
        (page.first, texts(&page), page.ended),
        (last, vec!["end".to_owned()], true),
        "the last event"
    );
    Ok(())
}
