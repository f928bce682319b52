//! Notifications: never answered, never a failure.

use std::sync::{Arc, Mutex};

use duplexer_types::json::Json;
use serde_json::json;
use tokio::sync::mpsc;

use super::over_every_kind;
use crate::dispatch::tests::link::Kind;
use crate::dispatch::tests::{Reply, TestInbound};
use crate::dispatch::{NotificationRoute, lock};

over_every_kind!(
    a_notification_reaches_its_handler,
    every_notification_is_seen_in_wire_order_and_can_be_consumed,
    a_notification_handler_that_panics_does_no_harm,
    a_handler_notifies_its_caller_before_it_answers,
);

/// DISP-29, DIR-06: with its params, and without an id.
async fn a_notification_reaches_its_handler(kind: Kind) {
    let (seen, mut heard) = mpsc::channel(4);
    let inbound = TestInbound::new().on_notification(move |cx, call| {
        let seen = seen.clone();
        async move {
            assert_eq!(cx.id, None);
            seen.send((call.method().to_owned(), call.params().map(ToOwned::to_owned))).await.unwrap();
        }
    });
    let link = kind.link(TestInbound::new(), inbound).await;
    link.left.peer.notify("note", Some(&Json::from(json!({"a": 1})))).await;
    assert_eq!(heard.recv().await.unwrap(), ("note".into(), Some(r#"{"a":1}"#.into())));
    link.left.peer.notify("bare", None).await;
    assert_eq!(heard.recv().await.unwrap(), ("bare".into(), None));
}

/// DISP-28, DIR-06: one that panics does not consume it.
async fn every_notification_is_seen_in_wire_order_and_can_be_consumed(kind: Kind) {
    let order = Arc::new(Mutex::new(Vec::new()));
    let intercepted = Arc::clone(&order);
    let (seen, mut heard) = mpsc::channel(16);
    let inbound = TestInbound::new()
        .on_read(move |call| {
            lock(&intercepted).push(call.method().to_owned());
            assert_ne!(call.method(), "panic", "secret: on_notification_read");
            if call.method().starts_with("keep") {
                NotificationRoute::Consume
            } else {
                NotificationRoute::Forward
            }
        })
        .on_notification(move |_, call| {
            let seen = seen.clone();
            async move { seen.send(call.method().to_owned()).await.unwrap() }
        });
    let link = kind.link(TestInbound::new(), inbound).await;
    let all = ["keep-1", "panic", "keep-2", "pass", "keep-3"];
    for method in all {
        link.left.peer.notify(method, None).await;
    }
    let mut forwarded = [heard.recv().await.unwrap(), heard.recv().await.unwrap()];
    forwarded.sort();
    assert_eq!(forwarded, ["panic", "pass"]);
    link.left.call("echo", json!({})).await.unwrap();
    assert_eq!(*lock(&order), all);
    assert!(heard.try_recv().is_err());
}

async fn a_notification_handler_that_panics_does_no_harm(kind: Kind) {
    let inbound = TestInbound::new().on_notification(|_, _| async { panic!("secret") });
    let link = kind.link(TestInbound::new(), inbound).await;
    for _ in 0..3 {
        link.left.peer.notify("note", None).await;
        link.left.call("echo", json!({})).await.unwrap();
    }
}

/// Notifications that a handler sends arrive before its response.
async fn a_handler_notifies_its_caller_before_it_answers(kind: Kind) {
    let inbound = TestInbound::new().on("talk", |cx, _| async move {
        for n in 0..100 {
            cx.channel.notify("note", Some(&Json::from(json!({"n": n})))).await;
        }
        Ok(Reply::of(&json!({})))
    });
    let order = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&order);
    let listening = TestInbound::new().on_read(move |call| {
        lock(&heard).push(call.params().unwrap_or_default().to_owned());
        NotificationRoute::Consume
    });
    let link = kind.link(listening, inbound).await;
    link.left.call("talk", json!({})).await.unwrap();
    let expected: Vec<_> = (0..100).map(|n| json!({ "n": n }).to_string()).collect();
    assert_eq!(*lock(&order), expected);
}
