//! The connection for commands: one, shared by all tasks, that reconnects by itself. Of a cluster it is one for each server.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::StoreError;
use redis::aio::ConnectionManagerConfig;
#[cfg(feature = "cluster")]
use redis::cluster_async::ClusterConnection;
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, ServerErrorKind, Value};
use tokio::time::Instant;

use crate::address::{Address, Cluster};
use crate::error::store_error;
use crate::exchange::{Exchanges, Server};
use crate::scripts::{self, NamedScript, ScriptCall};
use crate::sentinel::{Primary, Sentinels};
use crate::stats::Counters;

/// Longest pause between two attempts to connect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Name of a single command in metrics. A script has the name of its file.
const COMMAND: &str = "command";

/// Runs commands, each within the response timeout.
pub(crate) struct Connection {
    servers: Servers,
    counters: Arc<Counters>,
}

enum Servers {
    One(Exchanges),
    /// The connection and its response timeout.
    #[cfg(feature = "cluster")]
    Cluster(ClusterConnection, Duration),
}

impl Servers {
    async fn open(address: &Address, limit: Duration) -> RedisResult<Self> {
        // An exchange has its own response timeout, which also covers a connection that is being opened.
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(None)
            .set_connection_timeout(Some(limit))
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(MAX_RECONNECT_DELAY)
            .set_number_of_retries(2);
        let server = match address {
            Address::Server(client) => Server::One(client.get_connection_manager_with_config(config).await?),
            Address::Cluster(cluster) => return Self::open_cluster(cluster, limit).await,
            Address::Sentinel { sentinels, name, primary } => {
                let sentinels = Sentinels::new(sentinels.clone(), name.clone(), primary.clone());
                Server::Primary(Box::new(Primary::open(sentinels, config).await?))
            }
        };
        Ok(Self::One(Exchanges::new(server, limit)))
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
        Ok(Self::Cluster(builder.build()?.get_async_connection().await?, limit))
    }

    #[cfg(not(feature = "cluster"))]
    #[expect(clippy::unused_async, reason = "connects with the feature `cluster`")]
    async fn open_cluster(_: &Cluster, _: Duration) -> RedisResult<Self> {
        Err((ErrorKind::InvalidClientConfig, "the feature `cluster` is not enabled").into())
    }

    async fn send(&self, command: &Cmd) -> RedisResult<Value> {
        match self {
            Self::One(exchanges) => exchanges.send(command.clone()).await,
            #[cfg(feature = "cluster")]
            Self::Cluster(cluster, limit) => {
                let mut cluster = cluster.clone();
                let answered = tokio::time::timeout(*limit, command.query_async(&mut cluster)).await;
                answered.unwrap_or_else(|_| Err(std::io::Error::from(std::io::ErrorKind::TimedOut).into()))
            }
        }
    }
}

impl Connection {
    pub(crate) async fn open(
        address: &Address,
        response_timeout: Duration,
        counters: Arc<Counters>,
    ) -> RedisResult<Self> {
        let servers = Servers::open(address, response_timeout).await?;
        Ok(Self { servers, counters })
    }

    /// Runs one command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        self.counted(COMMAND, self.servers.send(command)).await
    }

    /// Runs a script by its digest. A store that does not know it, because it was restarted, is sent its text first.
    pub(crate) async fn run<T: FromRedisValue>(&self, call: &ScriptCall) -> Result<T, StoreError> {
        let answer = async {
            match self.servers.send(&call.command).await {
                Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                    self.servers.send(&call.script.load()).await?;
                    self.servers.send(&call.command).await
                }
                answer => answer,
            }
        };
        self.counted(call.script.name, answer).await
    }

    /// Sends the texts of all scripts, so that their first calls find them.
    pub(crate) async fn load_scripts(&self) -> Result<(), StoreError> {
        let loading = async {
            match &self.servers {
                Servers::One(exchanges) => exchanges.send_all(scripts::all().map(NamedScript::load)).await,
                #[cfg(feature = "cluster")]
                Servers::Cluster(..) => {
                    for script in scripts::all() {
                        self.servers.send(&script.load()).await?;
                    }
                    Ok(Value::Nil)
                }
            }
        };
        self.counted::<Value>(COMMAND, loading).await.map(drop)
    }

    async fn counted<T: FromRedisValue>(
        &self,
        operation: &'static str,
        answer: impl Future<Output = RedisResult<Value>>,
    ) -> Result<T, StoreError> {
        self.counters.trips.increment();
        let start = Instant::now();
        let answer = answer.await.and_then(|value| Ok(T::from_redis_value(value)?));
        let outcome = answer.map_err(store_error);
        if outcome.is_err() {
            self.counters.failures.increment();
        }
        self.counters.operations.record(operation, outcome.is_ok(), start.elapsed());
        if let (Err(StoreError::Unavailable(_)), Some(primary)) = (&outcome, self.primary()) {
            primary.refresh().await;
        }
        outcome
    }

    fn primary(&self) -> Option<&Primary> {
        match &self.servers {
            Servers::One(exchanges) => exchanges.primary(),
            #[cfg(feature = "cluster")]
            Servers::Cluster(..) => None,
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}
