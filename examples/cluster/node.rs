//! One node: a server over HTTP that shares its sessions, events and changes with the other nodes.

use std::time::Duration;

use duplexer::Context;
use duplexer::http::StreamableHttp;
use duplexer::prelude::*;
use duplexer::redis::Shared;
use duplexer::server::request_state::RequestState;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;

/// A resource that `change` changes.
pub(crate) const COLOUR: &str = "cluster://colour";
/// How soon the others give up a node that has died. Short, so that a demonstration takes little time; the default is 10 s.
const LEASE: Duration = Duration::from_secs(4);
/// Time for calls that run when a node is stopped.
const GRACE: Duration = Duration::from_secs(8);

/// The name of the node.
struct Node(String);

#[derive(Deserialize, JsonSchema)]
struct Favourite {
    colour: String,
}

/// Works step by step, and says where.
#[tool(idempotent)]
async fn work(cx: Context<Node>, #[schemars(range(min = 1, max = 10_000))] steps: u32) -> String {
    let Node(name) = cx.state();
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cx.progress(step).total(steps).message(&format!("{name}: step {step} of {steps}")).await;
    }
    format!("done by {name}")
}

/// Asks for a colour.
#[tool]
async fn ask(cx: Context<Node>) -> Result<String, ToolError> {
    let Favourite { colour } = cx.elicit("favourite", "Which colour do you like?").await?.accepted()?;
    Ok(format!("{} has heard: {colour}", cx.state().0))
}

/// Publishes a change that the clients of all nodes hear of.
#[tool]
async fn change(cx: Context<Node>) -> String {
    cx.notify_resource_updated(COLOUR).await;
    format!("published by {}", cx.state().0)
}

/// Serves until standard input ends: a node ends with the program that has started it.
pub(crate) async fn serve(mut words: impl Iterator<Item = String>) -> Result<(), BoxError> {
    let usage = "usage: cluster node NAME PORT REDIS_URL";
    let (name, port) = (words.next().ok_or(usage)?, words.next().ok_or(usage)?.parse::<u16>()?);
    let shared =
        Shared::connect(words.next().ok_or(usage)?).namespace("cluster").node(&name).lease(LEASE).await?;
    let secret = std::env::var("CLUSTER_SECRET")?;
    let server = Server::builder("cluster", "1.0.0")
        .state(Node(name))
        .subscriptions(shared.bus())
        .request_state(RequestState::keys([secret.as_bytes()])?)
        .resource(Resource::text(COLOUR, "blue").name("colour"))
        .tool(work)
        .tool(ask)
        .tool(change)
        .build()?;
    let service = StreamableHttp::builder(server)
        .scale_out(&shared)
        .sse_retry(Duration::from_millis(200))
        .shutdown_grace(GRACE)
        .build()?;
    let bound = service.bind(("127.0.0.1", port)).await?;
    bound.health_routes().serve_until(input_ends()).await;
    Ok(())
}

async fn input_ends() {
    let mut byte = [0];
    let mut input = tokio::io::stdin();
    while input.read(&mut byte).await.is_ok_and(|count| count > 0) {}
}
