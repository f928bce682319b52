//! Sentinels: they know which server is the primary one, and are asked again after every failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, ConnectionAddr, ConnectionInfo, ErrorKind, RedisError, RedisResult};
use tokio::time::{Instant, timeout};

/// Time for the answer of one sentinel.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Interval of asking the sentinels.
const INTERVAL: Duration = Duration::from_millis(250);

/// The primary server of a name, as its sentinels report it.
#[derive(Clone)]
pub(crate) struct Sentinels {
    clients: Arc<[Client]>,
    name: Arc<str>,
    primary: ConnectionInfo,
}

impl Sentinels {
    pub(crate) fn new(clients: Vec<Client>, name: String, primary: ConnectionInfo) -> Self {
        Self { clients: clients.into(), name: name.into(), primary }
    }

    /// Returns a client for the primary server.
    pub(crate) async fn client(&self) -> RedisResult<Client> {
        let mut failure = RedisError::from((ErrorKind::Io, "no sentinel answers"));
        for sentinel in &*self.clients {
            match timeout(TIMEOUT, self.ask(sentinel)).await {
                Ok(Ok((host, port))) => {
                    let info = self.primary.clone().set_addr(ConnectionAddr::Tcp(host, port));
                    return Client::open(info);
                }
                Ok(Err(error)) => failure = error,
                Err(_) => {}
            }
        }
        Err(failure)
    }

    async fn ask(&self, sentinel: &Client) -> RedisResult<(String, u16)> {
        let mut connection = sentinel.get_multiplexed_async_connection().await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg("get-master-addr-by-name").arg(&*self.name);
        let address: Option<(String, u16)> = command.query_async(&mut connection).await?;
        address.ok_or_else(|| RedisError::from((ErrorKind::Io, "the sentinels know no server of this name")))
    }
}

/// A connection to the primary server, which is replaced when another one becomes it.
#[derive(Clone)]
pub(crate) struct Primary {
    sentinels: Sentinels,
    config: ConnectionManagerConfig,
    current: Arc<Mutex<Current>>,
}

struct Current {
    manager: ConnectionManager,
    address: ConnectionAddr,
    asked: Instant,
}

impl Primary {
    pub(crate) async fn open(sentinels: Sentinels, config: ConnectionManagerConfig) -> RedisResult<Self> {
        let client = sentinels.client().await?;
        let current = Arc::new(Mutex::new(Current::open(&client, config.clone()).await?));
        Ok(Self { sentinels, config, current })
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn manager(&self) -> ConnectionManager {
        self.current().manager.clone()
    }

    /// Connects to another primary server, if there is one. The sentinels are asked once per interval.
    pub(crate) async fn refresh(&self) {
        {
            let mut current = self.current();
            if current.asked.elapsed() < INTERVAL {
                return;
            }
            current.asked = Instant::now();
        }
        let Ok(client) = self.sentinels.client().await else { return };
        if *client.get_connection_info().addr() == self.current().address {
            return;
        }
        match timeout(TIMEOUT, Current::open(&client, self.config.clone())).await {
            Ok(Ok(next)) => {
                tracing::warn!("the store has another primary server");
                *self.current() = next;
            }
            Ok(Err(error)) => tracing::debug!(%error, "the primary server cannot be reached"),
            Err(_) => tracing::debug!("the primary server does not answer"),
        }
    }
}

impl Current {
    async fn open(client: &Client, config: ConnectionManagerConfig) -> RedisResult<Self> {
        let manager = client.get_connection_manager_with_config(config).await?;
        let address = client.get_connection_info().addr().clone();
        Ok(Self { manager, address, asked: Instant::now() })
    }
}
