//! The load of a measurement: some callers that each send one request after the other.

use std::sync::Arc;
use std::time::Duration;

use duplexer::Json;
use duplexer::client::Client;
use duplexer::types::json::JsonObject;
use duplexer::types::methods::{Method, Request as _};
use duplexer::types::version::Era;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::histogram::Histogram;
use crate::failure::{Exit, Failure};

/// What is requested.
#[derive(Clone, Debug)]
pub(super) enum Job {
    Tool { name: String, arguments: JsonObject },
    ListTools,
    Ping,
}

/// What a measurement has counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counted {
    pub(super) latencies: Histogram,
    pub(super) failed: u64,
    /// The first failure.
    pub(super) failure: Option<String>,
    /// Time that was measured.
    pub(super) time: Duration,
    /// CPU time of the server meanwhile, if it is known.
    pub(super) cpu: Option<Duration>,
}

impl Counted {
    pub(super) fn add(&mut self, other: Self) {
        self.latencies.merge(&other.latencies);
        self.failed += other.failed;
        self.failure = self.failure.take().or(other.failure);
        self.cpu = match (self.cpu, other.cpu) {
            // The first slice, and all of them so far, have to be known.
            (Some(one), Some(two)) => Some(one + two),
            (None, cpu) if self.time.is_zero() => cpu,
            _ => None,
        };
        self.time += other.time;
    }

    /// Returns answers per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    pub(super) fn rate(&self) -> f64 {
        self.latencies.total() as f64 / self.time.as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

impl Job {
    pub(super) fn describe(&self, era: Era) -> String {
        match (self, era) {
            (Self::Tool { name, .. }, _) => format!("{} {name}", Method::ToolsCall.name()),
            (Self::ListTools, _) => Method::ToolsList.name().to_owned(),
            (Self::Ping, Era::Handshake) => Method::Ping.name().to_owned(),
            (Self::Ping, Era::Envelope) => duplexer::types::methods::ServerDiscover::METHOD.name().to_owned(),
        }
    }

    /// Sends one request.
    pub(super) async fn send(&self, client: &Client) -> Result<(), Failure> {
        match self {
            Self::Tool { name, arguments } => {
                let result = client.call_tool(name, Json::from(arguments.clone())).await?;
                result.into_result().map_err(|failed| Failure::new(Exit::Tool, failed.to_string()))?;
            }
            Self::ListTools => drop(client.list_tools().uncached().raw().await?),
            Self::Ping if client.era() == Era::Handshake => drop(client.ping().raw().await?),
            Self::Ping => drop(client.discover().uncached().raw().await?),
        }
        Ok(())
    }
}

/// Sends requests for some time. Those in flight at its end are awaited and counted.
pub(super) async fn run(client: &Client, job: &Arc<Job>, callers: u16, time: Duration) -> Counted {
    let started = Instant::now();
    let end = started + time;
    let mut running = JoinSet::new();
    for _ in 0..callers {
        running.spawn(caller(client.clone(), Arc::clone(job), end));
    }
    let mut all = Counted::default();
    while let Some(ended) = running.join_next().await {
        match ended {
            Ok(counted) => all.add(counted),
            Err(error) => all.failure = Some(error.to_string()),
        }
    }
    all.time = started.elapsed();
    all
}

async fn caller(client: Client, job: Arc<Job>, end: Instant) -> Counted {
    let mut counted = Counted::default();
    loop {
        let started = Instant::now();
        if started >= end {
            return counted;
        }
        match job.send(&client).await {
            Ok(()) => counted.latencies.add(started.elapsed()),
            Err(error) => {
                counted.failed += 1;
                counted.failure.get_or_insert(error.to_string());
                // A server that refuses everything at once must not keep this thread busy.
                tokio::task::yield_now().await;
            }
        }
    }
}
