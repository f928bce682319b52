//! SCL-69, SCL-80: sentinels name the primary server, and another one after a failover.

use std::time::Duration;

use duplexer_core::error::StoreError;
use duplexer_http::{Admission, Admitted, SessionRecord};
use duplexer_redis::Shared;
use duplexer_server::ConnectionSnapshot;

use super::store::Store;

#[tokio::test]
async fn a_session_survives_a_failover() {
    let Some(mut primary) = Store::start("sentinels").await else { return };
    let port = primary.port.to_string();
    let options = ["--replicaof", "127.0.0.1", &port, "--repl-diskless-sync-delay", "0"];
    let Some(replica) = Store::start_with("sentinels", &options).await else { return };
    let mut commands = primary.commands().await;
    let Some(sentinel) = Store::start_sentinel("sentinels", &primary).await else { return };
    let url = format!("redis-sentinel://127.0.0.1:{}/main", sentinel.port);
    let shared = Shared::connect(url).await.unwrap();
    let stores = shared.stores();
    let record = SessionRecord::new(ConnectionSnapshot::new("2025-11-25".to_owned()), None);
    stores.sessions.create("s", &record).await.unwrap();
    // The sentinel learns of the replica from the primary server, at intervals.
    let mut known = sentinel.commands().await;
    loop {
        let replicas: redis::Value =
            redis::cmd("SENTINEL").arg("replicas").arg("main").query_async(&mut known).await.unwrap();
        let copies: u64 = redis::cmd("WAIT").arg(1).arg(100).query_async(&mut commands).await.unwrap();
        if copies == 1 && matches!(&replicas, redis::Value::Array(replicas) if !replicas.is_empty()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    primary.kill();
    let admitted = loop {
        match stores.sessions.admit("s", Admission::new(None, None)).await {
            Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(100)).await,
            outcome => break outcome.unwrap(),
        }
    };
    assert!(matches!(admitted, Admitted::Record(..)), "{admitted:?}");
    let mut commands = replica.commands().await;
    let role: Vec<redis::Value> = redis::cmd("ROLE").query_async(&mut commands).await.unwrap();
    assert_eq!(role[0], redis::Value::BulkString(b"master".to_vec()));
    // A change of the new primary server is stored.
    let changed = stores.sessions.update("s", &[duplexer_http::Change::Initialized]).await.unwrap();
    assert!(changed.is_some());
}

#[tokio::test]
async fn a_name_that_the_sentinels_do_not_know_is_refused() {
    let Some(primary) = Store::start("unknown names").await else { return };
    let Some(sentinel) = Store::start_sentinel("unknown names", &primary).await else { return };
    let error =
        Shared::connect(format!("redis-sentinel://127.0.0.1:{}/other", sentinel.port)).await.unwrap_err();
    let text = duplexer_core::error::Chain(&error).to_string();
    assert!(text.contains("the sentinels know no server of this name"), "{text}");
}
