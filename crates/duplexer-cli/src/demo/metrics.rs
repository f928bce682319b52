//! The metrics of the demo, on an address of their own.

use std::net::SocketAddr;

use duplexer::otel::{Metrics, PrometheusEndpoint};
use duplexer_http::StreamableHttp;

use crate::failure::{Exit, Failure, chain};
use crate::terminal::Terminal;

/// Serves metrics while the demo is served.
pub(super) async fn beside(
    address: SocketAddr,
    metrics: Metrics,
    service: StreamableHttp,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    metrics.add_source(service);
    let endpoint = PrometheusEndpoint::bind(address, metrics).await.map_err(|error| {
        Failure::new(Exit::Connect, chain(&error)).hint("`--metrics 127.0.0.1:0` takes any port that is free")
    })?;
    Terminal::new().note(&format!("Metrics at http://{}/metrics", endpoint.local_addr()));
    tokio::select! {
        served = serving => served,
        () = endpoint.serve() => Ok(()),
    }
}
