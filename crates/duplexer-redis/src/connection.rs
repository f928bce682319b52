//! The connection for commands: one, shared by all tasks, that reconnects by itself. Of a cluster it is one for each server.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::StoreError;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
#[cfg(feature = "cluster")]
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, FromRedisValue, RedisResult};
use tokio::time::{Instant, timeout};

use crate::address::{Address, Cluster};
use crate::error::store_error;
use crate::scripts::ScriptCall;
use crate::sentinel::{Primary, Sentinels};
use crate::stats::Counters;

/// Longest pause between two attempts to connect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Name of a single command in metrics. A script has the name of its file.
const COMMAND: &str = "command";

/// Runs commands, each within the response timeout.
#[derive(Clone)]
pub(crate) struct Connection {
    servers: Servers,
    response_timeout: Duration,
    counters: Arc<Counters>,
}

#[derive(Clone)]
enum Servers {
    One(ConnectionManager),
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection),
    Primary(Box<Primary>),
}

impl Servers {
    async fn open(address: &Address, limit: Duration) -> RedisResult<Self> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(limit))
            .set_connection_timeout(Some(limit))
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(MAX_RECONNECT_DELAY)
            .set_number_of_retries(2);
        match address {
            Address::Server(client) => {
                Ok(Self::One(client.get_connection_manager_with_config(config).await?))
            }
            Address::Cluster(cluster) => Self::open_cluster(cluster, limit).await,
            Address::Sentinel { sentinels, name, primary } => {
                let sentinels = Sentinels::new(sentinels.clone(), name.clone(), primary.clone());
                Ok(Self::Primary(Box::new(Primary::open(sentinels, config).await?)))
            }
        }
    }

    #[cfg(feature = "cluster")]
    async fn open_cluster(cluster: &Cluster, limit: Duration) -> RedisResult<Self> {
        let nodes = cluster.clients.iter().map(|client| client.get_connection_info().clone());
        let builder = redis::cluster::ClusterClientBuilder::new(nodes)
            .connection_timeout(limit)
            .response_timeout(limit)
            .retries(2);
        // Certificates turn TLS on, whatever the URL says.
        #[cfg(feature = "rustls")]
        let builder = if cluster.uses_tls() { builder.certs(cluster.tls.certificates()) } else { builder };
        Ok(Self::Cluster(builder.build()?.get_async_connection().await?))
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_async, reason = "connects with the feature `cluster`")]
    async fn open_cluster(_: &Cluster, _: Duration) -> RedisResult<Self> {
        Err((redis::ErrorKind::InvalidClientConfig, "the feature `cluster` is not enabled").into())
    }
}

impl Connection {
    pub(crate) async fn open(
        address: &Address,
        response_timeout: Duration,
        counters: Arc<Counters>,
    ) -> RedisResult<Self> {
        let servers = Servers::open(address, response_timeout).await?;
        Ok(Self { servers, response_timeout, counters })
    }

    /// Runs one command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        match &self.servers {
            Servers::One(manager) => self.within(COMMAND, command.query_async(&mut manager.clone())).await,
            #[cfg(feature = "cluster")]
            Servers::Cluster(cluster) => {
                self.within(COMMAND, command.query_async(&mut cluster.clone())).await
            }
            Servers::Primary(primary) => {
                self.within(COMMAND, command.query_async(&mut primary.manager())).await
            }
        }
    }

    /// Runs a script by its digest, and by its text where the store does not know it.
    pub(crate) async fn run<T: FromRedisValue>(&self, script: &ScriptCall<'_>) -> Result<T, StoreError> {
        let name = script.name;
        match &self.servers {
            Servers::One(manager) => self.within(name, script.invoke_async(&mut manager.clone())).await,
            #[cfg(feature = "cluster")]
            Servers::Cluster(cluster) => self.within(name, script.invoke_async(&mut cluster.clone())).await,
            Servers::Primary(primary) => self.within(name, script.invoke_async(&mut primary.manager())).await,
        }
    }

    async fn within<T>(
        &self,
        operation: &'static str,
        exchange: impl Future<Output = RedisResult<T>>,
    ) -> Result<T, StoreError> {
        self.counters.trips.increment();
        let start = Instant::now();
        let outcome = match timeout(self.response_timeout, exchange).await {
            Ok(answered) => answered.map_err(store_error),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        };
        if outcome.is_err() {
            self.counters.failures.increment();
        }
        self.counters.operations.record(operation, outcome.is_ok(), start.elapsed());
        if let (Err(StoreError::Unavailable(_)), Servers::Primary(primary)) = (&outcome, &self.servers) {
            primary.refresh().await;
        }
        outcome
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}
