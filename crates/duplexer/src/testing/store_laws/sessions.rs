//! Laws of sessions and of their requests in flight.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::fresh::{Scene, event, id, is_admitted, principal, record, store};
use super::{Outcome, Reason, StoresUnderTest, ensure, ensure_eq};
use crate::http::{
    Admission, Admitted, Appended, Attach, Attached, Batch, Change, Created, EventKind, NewRequest,
    Numbering, Placement, StreamId, Takeover,
};
use crate::types::jsonrpc::RequestId;
use crate::types::logging::LoggingLevel;

/// SCL-33: `create` never overwrites. A repetition with the same record counts as the first attempt.
pub(super) async fn a_session_is_created_once(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let (mine, other) = (record(None)?, record(Some(principal("other")))?);
    let repeated = scene.b.shared.sessions.create(&scene.session, &mine).await?;
    ensure_eq!(repeated, Created::New, "a repeated creation");
    let second = scene.b.shared.sessions.create(&scene.session, &other).await?;
    ensure_eq!(second, Created::Exists, "a creation under an id that exists");
    let kept = scene.record(&scene.b).await?.map(|(record, _)| record);
    ensure_eq!(kept, Some(mine), "the record after a second creation");
    Ok(())
}

pub(super) async fn an_unknown_session_admits_nothing(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let (node, session) = (&scene.a.shared, &*scene.session);
    let stream = StreamId(7);
    let admitted = scene.admit(&scene.a, None, &id(1), Some(stream)).await?;
    ensure_eq!(admitted, Admitted::Unknown, "a message to an unknown session");
    let updated = node.sessions.update(session, &[Change::Subscribed("file:///a".to_owned())]).await?;
    ensure_eq!(updated, None, "a change of an unknown session");
    ensure_eq!(node.sessions.locate(session, &id(1)).await?, None, "a request of an unknown session");
    let placement = Placement { run: node.nodes.run(), stream: Some(stream) };
    node.sessions.release(session, &id(1), placement).await?;
    node.sessions.touch(&[Arc::clone(&scene.session)]).await?;
    ensure_eq!(node.sessions.delete(session).await?, Vec::new(), "the requests of an unknown session");
    ensure_eq!(scene.record(&scene.b).await?, None, "the session after all these operations");
    let read = node.events.read(&scene.key(stream), 0, 10).await?;
    ensure_eq!(read, None, "the stream of a request that was not admitted");
    Ok(())
}

/// SCL-11, SCL-30: a stranger gets `Unknown`, and the owner's request runs on.
pub(super) async fn a_message_of_another_principal_changes_nothing(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::new(stores).await?;
    let (owner, stranger) = (principal("owner"), principal("stranger"));
    scene.a.shared.sessions.create(&scene.session, &record(Some(owner.clone()))?).await?;
    let stream = StreamId(8);
    let admitted = scene.admit(&scene.a, Some(&owner), &id(1), Some(stream)).await?;
    ensure!(is_admitted(&admitted), "the owner's request must be admitted: {admitted:?}");
    for other in [Some(&stranger), None] {
        for request in [id(1), id(2)] {
            let admitted = scene.admit(&scene.b, other, &request, Some(StreamId(9))).await?;
            ensure_eq!(admitted, Admitted::Unknown, "a request of {other:?}");
        }
        let admitted = scene.b.shared.sessions.admit(&scene.session, Admission::new(other, None)).await?;
        ensure_eq!(admitted, Admitted::Unknown, "a notification of {other:?}");
    }
    let placement = Placement { run: scene.a.shared.nodes.run(), stream: Some(stream) };
    let located = scene.b.shared.sessions.locate(&scene.session, &id(1)).await?;
    ensure_eq!(located, Some(placement), "the owner's request after a stranger's message");
    let of_stranger = scene.b.shared.sessions.locate(&scene.session, &id(2)).await?;
    ensure_eq!(of_stranger, None, "the request of a stranger");
    let read = scene.b.shared.events.read(&scene.key(StreamId(9)), 0, 10).await?;
    ensure_eq!(read, None, "the stream of a stranger's request");
    Ok(())
}

/// SCL-31: also where many nodes admit at the same time. A repetition of the run that won counts as the first attempt.
pub(super) async fn a_request_is_in_flight_once_in_all_nodes(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Arc::new(Scene::with_session(stores).await?);
    let mut attempts = JoinSet::new();
    for number in 0..8_u128 {
        let scene = Arc::clone(&scene);
        attempts.spawn(async move {
            let node = if number % 2 == 0 { &scene.a } else { &scene.b };
            let stream = Some(StreamId(100 + number));
            Ok::<_, Reason>((number, scene.admit(node, None, &id(1), stream).await?))
        });
    }
    let mut winners = Vec::new();
    while let Some(attempt) = attempts.join_next().await {
        let (number, admitted) = attempt.map_err(|error| Reason(format!("an attempt: {error}")))??;
        if is_admitted(&admitted) {
            winners.push(number);
        } else {
            ensure_eq!(admitted, Admitted::InFlight, "a request whose id is in flight");
        }
    }
    ensure_eq!(winners.len(), 1, "the number of runs that admitted a request");
    let winner = winners.first().copied().unwrap_or_default();
    let (own, other) = if winner % 2 == 0 { (&scene.a, &scene.b) } else { (&scene.b, &scene.a) };
    let again = scene.admit(own, None, &id(1), Some(StreamId(100 + winner))).await?;
    ensure!(is_admitted(&again), "a repeated admission: {again:?}");
    let text = scene.admit(other, None, &RequestId::from("1"), None).await?;
    ensure!(is_admitted(&text), "the text \"1\" is another id than the number 1: {text:?}");
    let placed = |run| Placement { run, stream: Some(StreamId(100 + winner)) };
    let (run, other_run) = (own.shared.nodes.run(), other.shared.nodes.run());
    for placement in [placed(other_run), Placement { stream: None, ..placed(run) }] {
        other.shared.sessions.release(&scene.session, &id(1), placement).await?;
    }
    let located = other.shared.sessions.locate(&scene.session, &id(1)).await?;
    ensure_eq!(
        located.map(|it| it.run),
        Some(run),
        "a request that another run, or another admission, released"
    );
    for _ in 0..2 {
        own.shared.sessions.release(&scene.session, &id(1), placed(run)).await?;
    }
    ensure_eq!(other.shared.sessions.locate(&scene.session, &id(1)).await?, None, "a released request");
    let next = scene.admit(other, None, &id(1), Some(StreamId(200))).await?;
    ensure!(is_admitted(&next), "an id that was released can be used again: {next:?}");
    Ok(())
}

/// SCL-27.
pub(super) async fn the_requests_in_flight_of_a_session_are_bounded(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let limit = i64::try_from(stores.limits().in_flight).unwrap_or(i64::MAX);
    for number in 0..limit {
        let node = if number % 2 == 0 { &scene.a } else { &scene.b };
        let admitted = scene.admit(node, None, &id(number), None).await?;
        ensure!(is_admitted(&admitted), "request {number} of {limit}: {admitted:?}");
    }
    let above = scene.admit(&scene.a, None, &id(limit), None).await?;
    ensure_eq!(above, Admitted::TooMany, "a request above the limit");
    let repeated = scene.admit(&scene.a, None, &id(0), None).await?;
    ensure!(is_admitted(&repeated), "a repetition at the limit: {repeated:?}");
    let placement = Placement { run: scene.a.shared.nodes.run(), stream: None };
    scene.a.shared.sessions.release(&scene.session, &id(0), placement).await?;
    let admitted = scene.admit(&scene.b, None, &id(limit), None).await?;
    ensure!(is_admitted(&admitted), "a request after another was released: {admitted:?}");
    Ok(())
}

pub(super) async fn a_node_gets_the_record_when_another_has_changed_it(
    stores: &dyn StoresUnderTest,
) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let Some((_, known)) = scene.record(&scene.a).await? else {
        return Err(Reason("a session that was created is unknown".to_owned()));
    };
    let admission = || Admission::new(None, Some(known));
    let current = scene.a.shared.sessions.admit(&scene.session, admission()).await?;
    ensure_eq!(current, Admitted::Current, "a message at a node that knows the record");
    let changes = [Change::LogLevel(LoggingLevel::Error)];
    let revision = scene.b.shared.sessions.update(&scene.session, &changes).await?;
    ensure!(
        revision.is_some_and(|revision| revision > known),
        "a change must raise the revision: {revision:?}"
    );
    let stale = scene.a.shared.sessions.admit(&scene.session, admission()).await?;
    let Admitted::Record(record, newer) = stale else {
        return Err(Reason(format!("a node with an old record must get the new one, not {stale:?}")));
    };
    ensure_eq!(record.connection.log_level, LoggingLevel::Error, "the level in the new record");
    ensure_eq!(Some(newer), revision, "the revision of the new record");
    Ok(())
}

/// SCL-32: two nodes that change different things at once lose neither.
pub(super) async fn concurrent_changes_are_all_kept(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Arc::new(Scene::with_session(stores).await?);
    let uri = |number: usize| format!("file:///{number:02}");
    let mut updates = JoinSet::new();
    for number in 0..16 {
        let scene = Arc::clone(&scene);
        let change = Change::Subscribed(uri(number));
        updates.spawn(async move {
            let node = if number % 2 == 0 { &scene.a } else { &scene.b };
            node.shared.sessions.update(&scene.session, &[change]).await
        });
    }
    let level = [Change::LogLevel(LoggingLevel::Alert)];
    scene.b.shared.sessions.update(&scene.session, &level).await?;
    while let Some(update) = updates.join_next().await {
        let revision = update.map_err(|error| Reason(format!("an update: {error}")))??;
        ensure!(revision.is_some(), "a change of a session that exists must be written");
    }
    let removed = [Change::Unsubscribed(uri(0)), Change::Unsubscribed("file:///never".to_owned())];
    scene.a.shared.sessions.update(&scene.session, &removed).await?;
    let record = scene.record(&scene.b).await?.map(|(record, _)| record.connection);
    let subscriptions: Vec<_> = (1..16).map(uri).collect();
    ensure_eq!(
        record.map(|connection| (connection.log_level, connection.subscriptions)),
        Some((LoggingLevel::Alert, subscriptions)),
        "the session after concurrent changes"
    );
    Ok(())
}

pub(super) async fn a_repeated_change_makes_no_difference(stores: &dyn StoresUnderTest) -> Outcome {
    let scene = Scene::with_session(stores).await?;
    let changes = [Change::Subscribed("file:///a".to_owned()), Change::Initialized];
    scene.a.shared.sessions.update(&scene.session, &changes).await?;
    let first = scene.record(&scene.a).await?;
    scene.b.shared.sessions.update(&scene.session, &changes).await?;
    let second = scene.record(&scene.a).await?;
    let record = |it: Option<(_, _)>| it.map(|(record, _)| record);
    ensure_eq!(record(second), record(first), "the session after a repeated change");
    Ok(())
}

/// SCL-09: nothing that runs late brings a session back. A repeated deletion returns the same requests.
pub(super) async fn a_deleted_session_stays_deleted(stores: &dyn StoresUnderTest) -> Outcome {
    let (scene, key) = Scene::with_stream(stores).await?;
    store(&scene.a, &key, 1, &[event(EventKind::Notification, "1")]).await?;
    let run = scene.a.shared.nodes.run();
    let placement = Placement { run, stream: Some(key.stream) };
    for attempt in ["the first deletion", "a repeated deletion"] {
        let placements = scene.b.shared.sessions.delete(&scene.session).await?;
        ensure_eq!(placements, vec![placement], "the requests that {attempt} returns");
    }
    for node in [&scene.a, &scene.b] {
        ensure_eq!(scene.record(node).await?, None, "a deleted session");
        let admitted = scene.admit(node, None, &id(2), Some(StreamId(5))).await?;
        ensure_eq!(admitted, Admitted::Unknown, "a request to a deleted session");
        let updated = node.shared.sessions.update(&scene.session, &[Change::Initialized]).await?;
        ensure_eq!(updated, None, "a change of a deleted session");
        node.shared.sessions.touch(&[Arc::clone(&scene.session)]).await?;
        let late = [event(EventKind::Final, "late")];
        let batch = Batch::new(run, Numbering::From(2), &late);
        let appended = node.shared.events.append(&key, batch).await?;
        ensure!(
            matches!(appended, Appended::Unknown | Appended::Closed),
            "a late event must not be stored: {appended:?}"
        );
        let opened = node.shared.events.append(&key, Batch::open(run, &id(3))).await?;
        ensure!(
            matches!(opened, Appended::Unknown | Appended::Closed),
            "a stream of a deleted session must not be opened: {opened:?}"
        );
        let attach = Attach::anew(run, Takeover::Always);
        let standalone = scene.key(StreamId::STANDALONE);
        let attached = node.shared.events.attach(&standalone, attach).await?;
        ensure_eq!(attached, Attached::Unknown, "a reader of a deleted session");
        ensure_eq!(node.shared.events.read(&key, 0, 10).await?, None, "a stream of a deleted session");
    }
    let created = scene.a.shared.sessions.create(&scene.session, &record(None)?).await?;
    ensure_eq!(created, Created::Exists, "a creation under the id of a deleted session");
    ensure_eq!(scene.record(&scene.a).await?, None, "a deleted session after late operations");
    let admission = Admission::new(None, None);
    let request = NewRequest { id: &id(4), run, stream: None };
    let admitted = scene.b.shared.sessions.admit(&scene.session, admission.request(request)).await?;
    ensure_eq!(admitted, Admitted::Unknown, "a request to a deleted session");
    Ok(())
}
