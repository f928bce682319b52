//! Nodes of one server, for tests of scale-out.
//!
//! `scale-server --port N` serves `/mcp` and `/readyz` on 127.0.0.1. With `--nodes COUNT` one process has that many nodes,
//! on the ports from N on, which share stores in memory. With `--redis URL` it is one node of those that share a store; the
//! others give it up after `--lease MS`. With `--notice MS` a node that ends is still served requests for that long. Bearer
//! texts are principals. `SCALE_SECRET` is the key of request states (64 hexadecimal digits), `SCALE_LEDGER` the file in
//! which `count` and `mark` write what they have done.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use duplexer_http::{MemoryCluster, StreamableHttp};
use duplexer_redis::Shared;
use duplexer_server::BoxError;
use duplexer_server::subscriptions::MemoryBus;
use duplexer_tests::scale::{Ledger, auth, server, service_with_notice};
use tokio::task::JoinSet;

const USAGE: &str =
    "usage: scale-server --port PORT [--nodes COUNT | --redis URL [--lease MS]] [--notice MS]";
/// Idle time of sessions.
const IDLE: Duration = Duration::from_secs(30 * 60);

struct Options {
    port: u16,
    nodes: u16,
    redis: Option<String>,
    lease: Duration,
    notice: Duration,
}

fn options(mut arguments: impl Iterator<Item = String>) -> Result<Options, BoxError> {
    let (mut port, mut nodes, mut redis) = (None, 1, None);
    let (mut lease, mut notice) = (10_000, 0);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value\n{USAGE}"));
        match option.as_str() {
            "--port" => port = Some(value()?.parse()?),
            "--nodes" => nodes = value()?.parse()?,
            "--redis" => redis = Some(value()?),
            "--lease" => lease = value()?.parse()?,
            "--notice" => notice = value()?.parse()?,
            _ => return Err(format!("unknown option {option}\n{USAGE}").into()),
        }
    }
    let port: u16 = port.ok_or(USAGE)?;
    if nodes == 0 || port.checked_add(nodes - 1).is_none() {
        return Err(format!("--nodes {nodes}: there are no such ports from {port} on").into());
    }
    if nodes > 1 && redis.is_some() {
        return Err("--redis: a node that shares a store is one process; leave out --nodes".into());
    }
    let (lease, notice) = (Duration::from_millis(lease), Duration::from_millis(notice));
    Ok(Options { port, nodes, redis, lease, notice })
}

/// Returns the key of request states, which all nodes of a server share.
fn secret() -> Result<Vec<u8>, BoxError> {
    let text =
        std::env::var("SCALE_SECRET").map_err(|_| "SCALE_SECRET must be set: 64 hexadecimal digits")?;
    let digits = || (0..text.len()).step_by(2);
    let bytes: Option<Vec<u8>> =
        digits().map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect();
    bytes
        .filter(|bytes| bytes.len() == 32)
        .ok_or_else(|| "SCALE_SECRET must have 64 hexadecimal digits".into())
}

async fn run(options: Options) -> Result<(), BoxError> {
    let secret = secret()?;
    let ledger = std::env::var_os("SCALE_LEDGER").map_or(Ledger::None, |path| Ledger::File(path.into()));
    if let Some(url) = &options.redis {
        let name = format!("port {}", options.port);
        let shared = Shared::connect(url).namespace("scale").node(name).lease(options.lease).await?;
        let server = server(&ledger, Arc::new(shared.bus()), &secret)?;
        return serve(service_with_notice(server, shared.stores(), options.notice)?, options.port).await;
    }
    let (cluster, bus) = (MemoryCluster::new(IDLE), MemoryBus::new());
    let mut nodes = JoinSet::new();
    for number in 0..options.nodes {
        let server = server(&ledger, Arc::new(bus.clone()), &secret)?;
        nodes.spawn(serve(
            service_with_notice(server, cluster.node(), options.notice)?,
            options.port + number,
        ));
    }
    while let Some(ended) = nodes.join_next().await {
        ended??;
    }
    Ok(())
}

async fn serve(service: StreamableHttp, port: u16) -> Result<(), BoxError> {
    let bound = service.bind(("127.0.0.1", port)).await?;
    println!("{}", bound.local_addr()?);
    Ok(bound.health_routes().layer(auth()?).serve().await?)
}

fn main() -> ExitCode {
    let served = options(std::env::args().skip(1)).and_then(|options| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(run(options))
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("scale-server: {error}");
            ExitCode::FAILURE
        }
    }
}
