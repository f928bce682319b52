//! Laws of the reader of a stream: one at a time, and each continues after the last (SCL-39).

use super::fresh::{Scene, notes, page, store};
use super::{Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::http::{Attach, Attached, StreamId, StreamKey, Takeover};
use crate::testing::store_laws::NodeStores;

async fn attach(node: &NodeStores, key: &StreamKey, attach: Attach) -> Result<(u64, u64), Reason> {
    match node.shared.events.attach(key, attach).await? {
        Attached::Reader { number, after, .. } => Ok((number, after)),
        other => Err(Reason(format!("a reader must be attached, and is not: {other:?}"))),
    }
}

pub(super) async fn a_stream_has_one_reader(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let key = scene.key(StreamId::STANDALONE);
    let (a, b) = (scene.a.shared.nodes.run(), scene.b.shared.nodes.run());
    let (first, _) = attach(&scene.a, &key, Attach::anew(a, Takeover::Never)).await?;
    let held = scene.b.shared.events.attach(&key, Attach::anew(b, Takeover::Never)).await?;
    ensure_eq!(held, Attached::Held(a), "a second reader without an event id");
    let held = scene.b.shared.events.attach(&key, Attach::anew(b, Takeover::Of(b))).await?;
    ensure_eq!(held, Attached::Held(a), "a reader in place of a run that does not read");
    let (second, _) = attach(&scene.b, &key, Attach::anew(b, Takeover::Of(a))).await?;
    ensure!(second > first, "every reader has a greater number: {first}, {second}");
    let (third, _) = attach(&scene.a, &key, Attach::after(a, 0)).await?;
    ensure!(third > second, "every reader has a greater number: {second}, {third}");
    let reader = page(&scene.b, &key, 0, 10).await?.reader;
    ensure_eq!(reader.map(|reader| (reader.run, reader.number)), Some((a, third)), "the reader");
    Ok(())
}

pub(super) async fn a_reader_continues_where_the_last_one_left(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    let (a, b) = (scene.a.shared.nodes.run(), scene.b.shared.nodes.run());
    store(&scene.a, &key, 1, &notes(["1", "2", "3"])).await?;
    let reader = page(&scene.a, &key, 0, 10).await?.reader;
    ensure_eq!(
        reader.map(|reader| (reader.run, reader.number)),
        Some((a, 1)),
        "the run that admitted a request is its first reader"
    );
    scene.a.shared.events.detach(&key, 1, 2).await?;
    ensure_eq!(page(&scene.b, &key, 0, 10).await?.reader, None, "the reader after it has left");
    let anew = Attach::anew(b, Takeover::Never);
    let (number, after) = attach(&scene.b, &key, anew).await?;
    ensure_eq!(after, 2, "the last event that the reader before had received");
    let repeated = attach(&scene.b, &key, anew).await?;
    ensure_eq!(repeated, (number, after), "a repetition has the outcome of the first attempt");
    let (_, after) = attach(&scene.a, &key, Attach::after(a, 1)).await?;
    ensure_eq!(after, 1, "the last event that the client says it has received");
    Ok(())
}

pub(super) async fn a_replaced_reader_does_not_detach_its_successor(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &notes(["1", "2"])).await?;
    let b = scene.b.shared.nodes.run();
    let (second, _) = attach(&scene.b, &key, Attach::after(b, 0)).await?;
    scene.a.shared.events.detach(&key, 1, 1).await?;
    let reader = page(&scene.b, &key, 0, 10).await?.reader;
    ensure_eq!(reader.map(|reader| (reader.run, reader.number)), Some((b, second)), "the reader");
    for _ in 0..2 {
        scene.b.shared.events.detach(&key, second, 2).await?;
    }
    ensure_eq!(page(&scene.a, &key, 0, 10).await?.reader, None, "the reader after it has left");
    Ok(())
}
