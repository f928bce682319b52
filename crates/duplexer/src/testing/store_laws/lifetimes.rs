//! Laws of time: what expires, and what renews it. The store alone decides when a session has ended (SCL-21).

use std::sync::Arc;

use tokio::time::sleep;

use super::fresh::{Scene, event, principal, record, store};
use super::{Outcome, StoresUnderTest, ensure, ensure_eq};
use crate::http::{Admission, Admitted, Change, EventKind};

pub(super) async fn an_unused_session_expires(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    sleep(stores.limits().idle / 2).await;
    ensure!(scene.record(&scene.b).await?.is_some(), "a session must live for its idle time");
    sleep(stores.limits().idle * 11 / 10).await;
    ensure_eq!(scene.record(&scene.a).await?, None, "a session that was not used for its idle time");
    Ok(())
}

/// SCL-11, SCL-21: messages, changes and `touch` renew a session. The message of a stranger does not.
pub(super) async fn use_renews_a_session_and_a_stranger_does_not(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let (owner, stranger) = (principal("owner"), principal("stranger"));
    scene.a.shared.sessions.create(&scene.session, &record(Some(owner.clone()))?).await?;
    let step = stores.limits().idle * 6 / 10;
    let lives = async |after: &str| {
        let admission = Admission::new(Some(&owner), None);
        let admitted = scene.b.shared.sessions.admit(&scene.session, admission).await?;
        ensure!(admitted != Admitted::Unknown, "{after} must renew the session");
        Ok(())
    };
    sleep(step).await;
    lives("the creation").await?;
    sleep(step).await;
    scene.a.shared.sessions.touch(&[Arc::clone(&scene.session)]).await?;
    sleep(step).await;
    lives("`touch`").await?;
    sleep(step).await;
    scene.b.shared.sessions.update(&scene.session, &[Change::Initialized]).await?;
    sleep(step).await;
    lives("a change").await?;
    sleep(step).await;
    let admission = Admission::new(Some(&stranger), None);
    scene.b.shared.sessions.admit(&scene.session, admission).await?;
    sleep(step).await;
    let admitted = scene.a.shared.sessions.admit(&scene.session, Admission::new(Some(&owner), None)).await?;
    ensure_eq!(admitted, Admitted::Unknown, "a session that only a stranger has used");
    Ok(())
}

/// SCL-15: everything in the store has an end.
pub(super) async fn an_expired_session_takes_its_streams_with_it(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &[event(EventKind::Notification, "1")]).await?;
    sleep(stores.limits().idle * 11 / 10).await;
    ensure_eq!(scene.record(&scene.b).await?, None, "a session that was not used for its idle time");
    let read = scene.b.shared.events.read(&key, 0, 10).await?;
    ensure_eq!(read, None, "the stream of an expired session");
    Ok(())
}
