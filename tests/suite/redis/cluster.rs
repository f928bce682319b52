//! SCL-98: the laws on a cluster of three shards.

use std::time::Duration;

use duplexer::testing::store_laws::LAWS;
use duplexer_redis::Shared;

use super::laws::{EXPIRY, OnStore};
use super::store::{Store, free_port};

/// Last slot of a cluster.
const LAST_SLOT: u16 = 16_383;

/// Three servers that share all slots.
struct Cluster(Vec<Store>);

impl Cluster {
    async fn start(test: &str) -> Option<Self> {
        let mut servers = Vec::new();
        for _ in 0..3 {
            let bus_port = free_port().to_string();
            let options =
                ["--cluster-enabled", "yes", "--cluster-port", &bus_port, "--cluster-node-timeout", "5000"];
            servers.push((Store::start_with(test, &options).await?, bus_port));
        }
        let (first, first_bus) = (servers[0].0.port, servers[0].1.clone());
        for (index, (server, _)) in (0_u16..).zip(&servers) {
            let mut commands = server.commands().await;
            let from = index * (LAST_SLOT / 3 + 1);
            let to = (from + LAST_SLOT / 3).min(LAST_SLOT);
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("ADDSLOTSRANGE").arg(from).arg(to);
            let () = slots.query_async(&mut commands).await.unwrap();
            let mut epoch = redis::cmd("CLUSTER");
            epoch.arg("SET-CONFIG-EPOCH").arg(index + 1);
            let () = epoch.query_async(&mut commands).await.unwrap();
            if index > 0 {
                let mut meet = redis::cmd("CLUSTER");
                meet.arg("MEET").arg("127.0.0.1").arg(first).arg(&first_bus);
                let () = meet.query_async(&mut commands).await.unwrap();
            }
        }
        let cluster = Self(servers.into_iter().map(|(server, _)| server).collect());
        cluster.ready().await;
        Some(cluster)
    }

    /// Waits until every server knows the others.
    async fn ready(&self) {
        for server in &self.0 {
            let mut commands = server.commands().await;
            loop {
                let info: String =
                    redis::cmd("CLUSTER").arg("INFO").query_async(&mut commands).await.unwrap();
                if info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3") {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    fn url(&self) -> String {
        let hosts: Vec<String> = self.0.iter().map(|server| format!("127.0.0.1:{}", server.port)).collect();
        format!("redis://{}", hosts.join(","))
    }
}

/// SCL-20, SCL-98: all keys of an operation are in one slot.
#[tokio::test]
async fn a_cluster_of_three_shards_obeys_the_laws() {
    let Some(cluster) = Cluster::start("laws on a cluster").await else { return };
    let stores = OnStore::new(cluster.url(), Duration::from_secs(60));
    for law in LAWS.iter().filter(|law| !EXPIRY.contains(&law.name())) {
        law.check(&stores).await.unwrap();
    }
    let mut used = 0;
    for server in &cluster.0 {
        let mut commands = server.commands().await;
        let keys: u64 = redis::cmd("DBSIZE").query_async(&mut commands).await.unwrap();
        used += u64::from(keys > 0);
    }
    assert_eq!(used, 3, "every shard is used");
}

#[tokio::test]
async fn one_server_of_a_cluster_is_refused() {
    let Some(cluster) = Cluster::start("one server of a cluster").await else { return };
    let port = cluster.0[0].port;
    let error = Shared::connect(format!("redis://127.0.0.1:{port}")).await.unwrap_err().to_string();
    let expected = format!(
        "the store at 127.0.0.1:{port} is a server of a cluster: name several of its hosts in the URL, separated by commas"
    );
    assert_eq!(error, expected);
}
