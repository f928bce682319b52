//! Laws of streams: how events are numbered, kept and read.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::timeout;

use super::fresh::{Scene, append, event, holds, id, notes, page, random, store, texts};
use super::{NodeStores, Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::http::{
    Appended, Attach, Attached, Batch, EventKind, Numbering, StoredEvent, StreamId, StreamKey, Takeover,
};
use crate::server::subscriptions::Position;

/// SCL-04.
pub(super) async fn events_are_read_in_order_and_in_pages(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let all: Vec<String> = (1..=10).map(|number| number.to_string()).collect();
    ensure_eq!(store(&scene.a, &key, 1, &notes(all[..4].to_vec())).await?, 4, "the last number");
    ensure_eq!(store(&scene.a, &key, 5, &notes(all[4..].to_vec())).await?, 10, "the last number");
    let (mut read, mut after) = (Vec::new(), 0);
    for _ in 0..4 {
        let page = page(&scene.b, &key, after, 3).await?;
        ensure_eq!(page.first, after + 1, "the number of the first event of a page");
        ensure!(page.events.len() <= 3, "a page has more events than requested: {}", page.events.len());
        ensure!(!page.ended, "a stream without a last event has ended");
        ensure_eq!(page.writer, Some(scene.a.shared.nodes.run()), "the writer of the stream");
        ensure_eq!(page.request.clone(), Some(id(1)), "the request of the stream");
        after += page.events.len() as u64;
        read.extend(texts(&page));
    }
    ensure_eq!(read, all, "the events of all pages");
    let beyond = page(&scene.b, &key, 10, 3).await?;
    ensure_eq!((beyond.events.len(), beyond.ended), (0, false), "the page after the last event");
    Ok(())
}

/// SCL-34: whole, in part, and at another node.
pub(super) async fn a_repeated_batch_is_stored_once(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let run = scene.a.shared.nodes.run();
    let opened = scene.a.shared.events.append(&key, Batch::open(run, &id(1))).await?;
    ensure!(matches!(opened, Appended::UpTo { last: 0, .. }), "a stream that is opened again: {opened:?}");
    for _ in 0..2 {
        ensure_eq!(store(&scene.a, &key, 1, &notes(["1", "2"])).await?, 2, "the last number of a batch");
    }
    let longer = store(&scene.a, &key, 1, &notes(["1", "2", "3"])).await?;
    ensure_eq!(longer, 3, "the last number of a batch whose beginning is stored");
    let repeated = append(&scene.b, &key, run, 2, &notes(["2"])).await?;
    ensure!(matches!(repeated, Appended::UpTo { last: 2, .. }), "a repeated batch: {repeated:?}");
    holds(&scene.b, &key, 0, &["1", "2", "3"]).await
}

pub(super) async fn a_stream_has_one_writer(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &notes(["1"])).await?;
    let other = scene.b.shared.nodes.run();
    for from in [1, 2] {
        let appended = append(&scene.b, &key, other, from, &notes(["x"])).await?;
        ensure_eq!(appended, Appended::Closed, "event {from} of another run");
    }
    let opened = scene.b.shared.events.append(&key, Batch::open(other, &id(1))).await?;
    ensure_eq!(opened, Appended::Closed, "a stream that another run opens");
    let unknown =
        append(&scene.a, &scene.key(StreamId(77)), scene.a.shared.nodes.run(), 1, &notes(["x"])).await?;
    ensure_eq!(unknown, Appended::Unknown, "an event of a stream that was not opened");
    holds(&scene.b, &key, 0, &["1"]).await
}

/// SCL-11: who knows the id of a stream, but not of its session, reads nothing.
pub(super) async fn a_stream_belongs_to_its_session(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &notes(["1"])).await?;
    let other = Scene::with_session(stores).await?;
    let foreign = StreamKey::new(Arc::clone(&other.session), key.stream);
    let events = &other.a.shared.events;
    ensure_eq!(events.read(&foreign, 0, 10).await?, None, "the stream of another session");
    let attached = events.attach(&foreign, Attach::after(other.a.shared.nodes.run(), 0)).await?;
    ensure_eq!(attached, Attached::Unknown, "a reader of another session's stream");
    other.a.shared.events.forget(&other.session).await?;
    holds(&scene.a, &key, 0, &["1"]).await
}

/// SCL-37: the store numbers the events, and notices a repeated batch by its token.
pub(super) async fn several_writers_share_one_numbering(stores: &dyn StoresUnderTest) -> Outcome {
    const BATCHES: usize = 12;
    let scene = Arc::new(Scene::with_session(stores).await?);
    let key = scene.key(StreamId::STANDALONE);
    let attach = Attach::anew(scene.a.shared.nodes.run(), Takeover::Never);
    let attached = scene.a.shared.events.attach(&key, attach).await?;
    ensure_eq!(attached, Attached::Reader { number: 1, after: 0, position: None }, "the first reader");
    let mut writers = JoinSet::new();
    for number in 0..BATCHES {
        let (scene, key) = (Arc::clone(&scene), key.clone());
        writers.spawn(async move {
            let node = if number % 2 == 0 { &scene.a } else { &scene.b };
            let events = notes([format!("{number}a"), format!("{number}b")]);
            let token = u128::from(random());
            let mut numbers = Vec::new();
            for _ in 0..2 {
                numbers.push(next(node, &key, token, &events).await?);
            }
            Ok::<_, Reason>((number, numbers))
        });
    }
    let mut last_numbers = vec![0; BATCHES];
    while let Some(writer) = writers.join_next().await {
        let (number, numbers) = writer.map_err(|error| Reason(format!("a writer: {error}")))??;
        ensure_eq!(numbers.first(), numbers.last(), "the number of a repeated batch");
        last_numbers[number] = numbers.first().copied().unwrap_or_default();
    }
    let page = page(&scene.b, &key, 0, 100).await?;
    let texts = texts(&page);
    ensure_eq!(texts.len(), 2 * BATCHES, "the number of stored events");
    for (number, last) in last_numbers.into_iter().enumerate() {
        let at = usize::try_from(last).unwrap_or_default();
        let batch = at.checked_sub(2).and_then(|from| texts.get(from..at)).unwrap_or_default();
        ensure_eq!(batch, [format!("{number}a"), format!("{number}b")], "the batch up to number {last}");
    }
    Ok(())
}

/// Appends events that the store numbers, and returns the number of the last one.
async fn next(
    node: &NodeStores,
    key: &StreamKey,
    token: u128,
    events: &[StoredEvent],
) -> Result<u64, Reason> {
    let batch = Batch::new(node.shared.nodes.run(), Numbering::Next { token, position: None }, events);
    match node.shared.events.append(key, batch).await? {
        Appended::UpTo { last, .. } => Ok(last),
        other => Err(Reason(format!("a batch must be stored, and is not: {other:?}"))),
    }
}

/// Fills a stream with notifications beyond its limit, and returns the number of the last one.
async fn overfill(
    stores: &dyn StoresUnderTest,
    scene: &Scene,
    key: &StreamKey,
    from: u64,
) -> Result<u64, Reason> {
    let mut last = from - 1;
    while last < (stores.limits().stream_events + 64) as u64 {
        let events = notes((last + 1..=last + 32).map(|number| number.to_string()));
        last = store(&scene.a, key, last + 1, &events).await?;
    }
    Ok(last)
}

/// SCL-27, SCL-28: at the limit the oldest events go first.
pub(super) async fn a_stream_is_bounded_and_shows_its_hole(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let last = overfill(stores, &scene, &key, 1).await?;
    let page = page(&scene.b, &key, 0, usize::MAX).await?;
    ensure!(page.events.len() <= stores.limits().stream_events, "{} events are kept", page.events.len());
    ensure!(page.first > 1, "a page after evicted events must begin with the first that is kept");
    let expected: Vec<String> = (page.first..=last).map(|number| number.to_string()).collect();
    ensure_eq!(texts(&page), expected, "the events that are kept");
    Ok(())
}

/// SCL-28: at a question without an answer, new notifications are refused instead; the last message is stored.
pub(super) async fn an_unanswered_event_is_never_evicted(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let run = scene.a.shared.nodes.run();
    store(&scene.a, &key, 1, &[event(EventKind::Request, "question")]).await?;
    let mut last = 1;
    let refused = loop {
        let events = notes([(last + 1).to_string()]);
        let batch = Batch::new(run, Numbering::From(last + 1), &events).unanswered(Some(1));
        match scene.a.shared.events.append(&key, batch).await? {
            Appended::UpTo { .. } => last += 1,
            other => break other,
        }
        ensure!(last <= stores.limits().stream_events as u64, "a stream exceeds its limit: {last} events");
    };
    ensure_eq!(refused, Appended::Full, "a notification where the oldest event must stay");
    let end = [event(EventKind::Final, "end")];
    let batch = Batch::new(run, Numbering::From(last + 1), &end).unanswered(Some(1));
    let appended = scene.a.shared.events.append(&key, batch).await?;
    ensure!(matches!(appended, Appended::UpTo { .. }), "the last message must be stored: {appended:?}");
    let first = page(&scene.b, &key, 0, 1).await?;
    ensure_eq!((first.first, texts(&first)), (1, vec!["question".to_owned()]), "the first event");
    Ok(())
}

/// SCL-14, SCL-46: where the store has lost events, numbers go on after those that the writer or a client has used.
pub(super) async fn a_lost_end_leaves_a_hole_and_no_number_is_used_twice(
    stores: &dyn StoresUnderTest,
) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &notes(["1", "2"])).await?;
    ensure_eq!(store(&scene.a, &key, 5, &notes(["5", "6"])).await?, 6, "the writer's own number");
    let after_hole = page(&scene.b, &key, 2, 10).await?;
    ensure_eq!(
        (after_hole.first, texts(&after_hole)),
        (5, vec!["5".into(), "6".into()]),
        "the page after a hole"
    );
    let standalone = scene.key(StreamId::STANDALONE);
    let attach = Attach::after(scene.b.shared.nodes.run(), 7);
    let attached = scene.b.shared.events.attach(&standalone, attach).await?;
    ensure!(
        matches!(attached, Attached::Reader { after: 7, .. }),
        "a client that has seen more than the store has must be served: {attached:?}"
    );
    let number = next(&scene.a, &standalone, u128::from(random()), &notes(["8"])).await?;
    ensure_eq!(number, 8, "the number after those that a client has seen");
    holds(&scene.b, &standalone, 7, &["8"]).await
}

/// SCL-38: a wake-up may be lost in a fault, but not in health.
pub(super) async fn a_watcher_is_woken_by_another_node(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let delay = stores.limits().delay;
    let attach = Attach::after(scene.b.shared.nodes.run(), 0);
    scene.b.shared.events.attach(&key, attach).await?;
    let woken = scene.b.shared.events.watch(&key);
    store(&scene.a, &key, 1, &notes(["1"])).await?;
    ensure!(timeout(delay, woken).await.is_ok(), "an event of another node must wake the reader");
    let woken = scene.b.shared.events.watch(&key);
    let attach = Attach::after(scene.a.shared.nodes.run(), 1);
    scene.a.shared.events.attach(&key, attach).await?;
    ensure!(timeout(delay, woken).await.is_ok(), "a reader that is replaced must be woken");
    let attach = Attach::after(scene.b.shared.nodes.run(), 1);
    scene.b.shared.events.attach(&key, attach).await?;
    let woken = scene.b.shared.events.watch(&key);
    store(&scene.a, &key, 2, &[event(EventKind::Final, "end")]).await?;
    ensure!(timeout(delay, woken).await.is_ok(), "the end of a stream must wake its reader");
    Ok(())
}

/// SCL-10: changes that two nodes read from the bus are written once. Their position is what the next reader continues
/// after.
pub(super) async fn changes_are_written_once_by_their_position(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let key = scene.key(StreamId::STANDALONE);
    let (a, b) = (scene.a.shared.nodes.run(), scene.b.shared.nodes.run());
    scene.a.shared.events.attach(&key, Attach::anew(a, Takeover::Never)).await?;
    for (node, position, text) in [
        (&scene.a, 5, "5"),
        (&scene.b, 5, "5 again"),
        (&scene.b, 4, "4"),
        (&scene.b, 7, "7"),
        (&scene.a, 6, "6"),
    ] {
        let numbering = Numbering::Next { token: u128::from(random()), position: Some(Position(position)) };
        let events = notes([text]);
        let batch = Batch::new(node.shared.nodes.run(), numbering, &events);
        let appended = node.shared.events.append(&key, batch).await?;
        ensure!(matches!(appended, Appended::UpTo { .. }), "the change at {position}: {appended:?}");
    }
    next(&scene.a, &key, u128::from(random()), &notes(["no change"])).await?;
    let attached = scene.b.shared.events.attach(&key, Attach::after(b, 0)).await?;
    let Attached::Reader { position, .. } = attached else {
        return Err(Reason(format!("a reader must be attached, and is not: {attached:?}")));
    };
    ensure_eq!(position, Some(Position(7)), "the position that a reader continues after");
    holds(&scene.b, &key, 0, &["5", "7", "no change"]).await
}
