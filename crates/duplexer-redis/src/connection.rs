//! The connection for commands: one, shared by all tasks, that reconnects by itself.

use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::StoreError;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{Client, Cmd, FromRedisValue, RedisResult, ScriptInvocation};
use tokio::time::timeout;

use crate::error::store_error;
use crate::stats::Counters;

/// Longest pause between two attempts to connect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Runs commands, each within the response timeout.
#[derive(Clone)]
pub(crate) struct Connection {
    manager: ConnectionManager,
    response_timeout: Duration,
    counters: Arc<Counters>,
}

impl Connection {
    pub(crate) async fn open(
        client: &Client,
        response_timeout: Duration,
        counters: Arc<Counters>,
    ) -> RedisResult<Self> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(response_timeout))
            .set_connection_timeout(Some(response_timeout))
            .set_min_delay(Duration::from_millis(50))
            .set_max_delay(MAX_RECONNECT_DELAY)
            .set_number_of_retries(2);
        let manager = client.get_connection_manager_with_config(config).await?;
        Ok(Self { manager, response_timeout, counters })
    }

    /// Runs one command.
    pub(crate) async fn query<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, StoreError> {
        let mut manager = self.manager.clone();
        self.within(command.query_async(&mut manager)).await
    }

    /// Runs a script by its digest, and by its text where the store does not know it.
    pub(crate) async fn run<T: FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, StoreError> {
        let mut manager = self.manager.clone();
        self.within(script.invoke_async(&mut manager)).await
    }

    async fn within<T>(&self, exchange: impl Future<Output = RedisResult<T>>) -> Result<T, StoreError> {
        self.counters.trips.increment();
        let outcome = match timeout(self.response_timeout, exchange).await {
            Ok(answered) => answered.map_err(store_error),
            Err(elapsed) => Err(StoreError::Unavailable(elapsed.into())),
        };
        if outcome.is_err() {
            self.counters.failures.increment();
        }
        outcome
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}
