//! Tasks on a store: through a whole server, after the loss of a node, and records of another version.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_server::tasks::{Taker, TaskCreation, TaskId, TaskLimits, TaskRecord, TaskStore, UnixMillis};

use super::proxy::{Fault, Proxy};
use super::store::Store;

const RUN: RunId = RunId(7);

fn task(id: &str, lease: u64) -> Arc<TaskRecord> {
    let text = format!(
        r#"{{"id":"{id}","revision":0,"owner":null,
            "call":{{"tool":"t","arguments":{{}},"version":"2026-07-28","client_info":null,"capabilities":null,
                "progress_token":null}},
            "times":{{"created":1000,"updated":1000,"ended":null,"retention":600000}},
            "state":{{"message":null,"questions":[],"cancel_requested":false,"outcome":null}},
            "lease":{{"run":"{RUN}","epoch":1,"until":{},"attempt":1,"resumable":true,"handed_over":false}}}}"#,
        1000 + lease
    );
    Arc::new(serde_json::from_str(&text).unwrap())
}

async fn create(store: &dyn TaskStore, task: &Arc<TaskRecord>) {
    let created = store.create(Arc::clone(task), TaskLimits::default()).await.unwrap();
    assert_eq!(created, TaskCreation::Stored);
}

/// SCL-15, SCL-22: everything expires by the clock of the store, also after all nodes have ended.
#[tokio::test]
async fn every_key_of_tasks_has_an_expiry() {
    let Some(store) = Store::start("expiry of tasks").await else { return };
    let node = store.node().await;
    let tasks = node.tasks();
    create(&tasks, &task("a", 30_000)).await;
    let mut next = (*task("a", 30_000)).clone();
    next.revision = 1;
    next.lease.run = None;
    next.lease.handed_over = true;
    next.lease.until = UnixMillis(1000 + 7_200_000);
    let _ = tasks.put(Arc::new(next)).await.unwrap();
    create(&tasks, &task("b", 30_000)).await;
    let mut commands = store.commands().await;
    let keys: Vec<String> =
        redis::cmd("KEYS").arg("dpx1:test:{t}:*").query_async(&mut commands).await.unwrap();
    assert!(keys.len() >= 7, "{keys:?}");
    for key in keys {
        let expiry: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut commands).await.unwrap();
        // The last time that is known is in two hours, and a day is added.
        let expected = (24 + 2) * 3_600_000;
        assert!((expected - 60_000..=expected).contains(&expiry), "{key}: {expiry}");
    }
}

/// SCL-89: ids of tasks are secrets where they have no owner, so they are not names in the store.
#[tokio::test]
async fn ids_of_tasks_are_no_names_in_the_store() {
    let Some(store) = Store::start("names of tasks").await else { return };
    let node = store.connect().seal([[7; 32]]).await.unwrap();
    create(&node.tasks(), &task("a-secret-task", 30_000)).await;
    let mut commands = store.commands().await;
    let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut commands).await.unwrap();
    for key in keys {
        let value: Vec<u8> = redis::cmd("DUMP").arg(&key).query_async(&mut commands).await.unwrap();
        assert!(!key.contains("secret") && !String::from_utf8_lossy(&value).contains("secret"), "{key}");
    }
}

/// SCL-23: a task of a later layout is not understood, not changed and not deleted.
#[tokio::test]
async fn a_task_of_a_later_layout_is_unreadable() {
    let Some(store) = Store::start("layouts of tasks").await else { return };
    let node = store.node().await;
    let tasks = node.tasks();
    create(&tasks, &task("a", 0)).await;
    let mut commands = store.commands().await;
    for (key, text) in [("dpx1:test:{t}:d", "2 {}"), ("dpx1:test:{t}:m", "2 ?")] {
        let names: Vec<String> = redis::cmd("HKEYS").arg(key).query_async(&mut commands).await.unwrap();
        let () =
            redis::cmd("HSET").arg(key).arg(&names[0]).arg(text).query_async(&mut commands).await.unwrap();
    }
    let text = "the record has layout `2`, and this version reads layout `1`";
    let is_later = |error: StoreError| {
        assert!(matches!(&error, StoreError::Unreadable(cause) if cause.to_string() == text), "{error:?}");
    };
    is_later(tasks.get(&TaskId::from("a")).await.unwrap_err());
    let mut next = (*task("a", 0)).clone();
    next.revision = 1;
    is_later(tasks.put(Arc::new(next)).await.unwrap_err());
    let taker = Taker { run: RunId(8), until: UnixMillis(60_000) };
    assert!(tasks.take_over(taker, UnixMillis(1_000), 9).await.unwrap().is_empty());
    tasks.sweep(UnixMillis(1_000), 9).await.unwrap();
    let left: u64 = redis::cmd("HLEN").arg("dpx1:test:{t}:d").query_async(&mut commands).await.unwrap();
    assert_eq!(left, 1);
}

/// SCL-13: a take-over whose answer is lost is returned by the next call: the task would belong to a run that does not know it.
#[tokio::test]
async fn a_take_over_whose_answer_is_lost_is_returned_later() {
    let Some(store) = Store::start("lost take-overs").await else { return };
    let proxy = Proxy::start(store.port).await;
    let node = duplexer_redis::Shared::connect(proxy.url())
        .namespace("test")
        .response_timeout(Duration::from_millis(300))
        .patience(Duration::from_millis(1))
        .await
        .unwrap();
    let tasks = node.tasks();
    for id in 0..40 {
        create(&tasks, &task(&format!("t{id}"), 0)).await;
    }
    let taker = Taker { run: RunId(8), until: UnixMillis(60_000) };
    proxy.set(Fault::LoseAnswers);
    let (mut ids, mut calls) = (Vec::new(), 0);
    while ids.len() < 40 {
        calls += 1;
        assert!(calls < 1000, "{} of 40 are returned", ids.len());
        if let Ok(records) = tasks.take_over(taker, UnixMillis(1_000), 64).await {
            ids.extend(records.iter().map(|record| record.id.clone()));
        }
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 40, "each once");
    assert!(calls > 1 && node.stats().failures > 0, "the proxy has lost answers");
}
