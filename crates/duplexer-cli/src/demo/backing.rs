//! What the demo keeps beside its handlers: in the memory of this process, or shared with other nodes.

use std::sync::Arc;

use duplexer::otel::Metrics;
use duplexer::server::request_state::RequestState;
use duplexer::server::subscriptions::{MemoryBus, SubscriptionBus};
use duplexer::tasks::Tasks;
use duplexer_http::SharedStores;

use crate::arguments::DemoArguments;
use crate::failure::Failure;

/// Bus, tasks and sessions of one node.
pub(super) struct Backing {
    pub(super) bus: Arc<dyn SubscriptionBus>,
    pub(super) tasks: Tasks,
    /// `None`: a random key.
    pub(super) request_state: Option<RequestState>,
    /// `None`: this process is the only node.
    pub(super) stores: Option<SharedStores>,
    #[cfg(feature = "redis")]
    shared: Option<duplexer::redis::Shared>,
}

impl Backing {
    pub(super) fn in_memory() -> Self {
        Self {
            bus: Arc::new(MemoryBus::new()),
            tasks: Tasks::new(),
            request_state: None,
            stores: None,
            #[cfg(feature = "redis")]
            shared: None,
        }
    }

    /// Adds the counters of the store, if there is one.
    #[cfg_attr(
        not(feature = "redis"),
        expect(clippy::unused_self, reason = "a store needs the feature `redis`")
    )]
    pub(super) fn add_metrics(&self, metrics: &Metrics) {
        #[cfg(feature = "redis")]
        if let Some(shared) = &self.shared {
            metrics.add_source(shared.clone());
        }
        let _ = metrics;
    }

    /// Connects to the store that the arguments name, if they do.
    #[cfg(not(feature = "redis"))]
    #[expect(clippy::unused_async, reason = "connects with the feature `redis`")]
    pub(super) async fn open(_: &DemoArguments) -> Result<Self, Failure> {
        Ok(Self::in_memory())
    }

    /// Connects to the store that the arguments name, if they do.
    #[cfg(feature = "redis")]
    pub(super) async fn open(arguments: &DemoArguments) -> Result<Self, Failure> {
        use crate::failure::{Exit, chain};

        let shared = &arguments.shared;
        let Some(url) = &shared.redis else { return Ok(Self::in_memory()) };
        // What is wrong with the store while it is used.
        duplexer_core::stderr_log::enable();
        let mut connect = duplexer::redis::Shared::connect(url);
        if let Some(node) = &shared.node {
            connect = connect.node(node);
        }
        if let Some(namespace) = &shared.namespace {
            connect = connect.namespace(namespace);
        }
        let request_state = secret(shared)?.map(|secret| RequestState::keys([secret]));
        let request_state = request_state.transpose().map_err(|error| Failure::usage(chain(&error)))?;
        let connected = connect.await.map_err(|error| Failure::new(Exit::Connect, chain(&error)))?;
        Ok(Self {
            bus: Arc::new(connected.bus()),
            tasks: Tasks::on(connected.tasks()),
            request_state,
            stores: Some(connected.stores()),
            shared: Some(connected),
        })
    }
}

/// Reads the secret for request states. Without one the service cannot be built, and says what to set.
#[cfg(feature = "redis")]
fn secret(shared: &crate::arguments::SharedArguments) -> Result<Option<Vec<u8>>, Failure> {
    use std::ffi::OsString;

    let Some(path) = &shared.secret_file else {
        return Ok(std::env::var_os("DUPLEXER_SECRET").map(OsString::into_encoded_bytes));
    };
    let secret = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("the file '{}' cannot be read: {error}", path.display())))?;
    Ok(Some(secret.trim_ascii_end().to_vec()))
}
