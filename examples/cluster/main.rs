//! Several nodes of one server behind a balancer that picks at random, on a Redis or Valkey that the program starts itself.
//! Run: `cargo run -p duplexer-examples --bin cluster`, with `redis-server` or `valkey-server` on `PATH` or in `REDIS_SERVER`.
//! Options: `--nodes 3`, `--port 8000` (0: any), `--redis URL` for a store that runs already.
//! Try: `work 60`, then `stop` the node that it names: the call continues, and its progress is followed at another node.
//! Then `kill` a node under its call: the client hears within seconds that the node is gone, and calls again. `ask` gets its
//! answer at any node, `change` is heard through any node. `quit` or Ctrl-C leaves no process and no file behind.

#![expect(clippy::print_stdout, reason = "a program for the terminal")]

mod balancer;
mod client;
mod node;
mod processes;

use std::pin::pin;

use duplexer::BoxError;
use tokio::sync::mpsc;

use crate::client::Demo;
use crate::processes::Cluster;

const HELP: &str =
    "commands: nodes, work [STEPS], ask, change, stop N, kill N, start N, quit; N is the number of a node";

struct Options {
    nodes: usize,
    port: u16,
    redis: Option<String>,
}

fn options(mut words: impl Iterator<Item = String>) -> Result<Options, BoxError> {
    let mut options = Options { nodes: 3, port: 8000, redis: None };
    while let Some(option) = words.next() {
        let value = words.next().ok_or_else(|| format!("{option} needs a value"))?;
        match option.as_str() {
            "--nodes" => options.nodes = value.parse()?,
            "--port" => options.port = value.parse()?,
            "--redis" => options.redis = Some(value),
            _ => return Err(format!("unknown option {option}: there are --nodes, --port and --redis").into()),
        }
    }
    if !(1..=9).contains(&options.nodes) {
        return Err("--nodes: from 1 to 9".into());
    }
    Ok(options)
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1).peekable();
    if words.next_if(|word| word == "node").is_some() {
        return node::serve(words).await;
    }
    let Options { nodes, port, redis } = options(words)?;
    let mut interrupted = pin!(interrupted());
    let mut cluster = tokio::select! {
        started = Cluster::start(nodes, port, redis) => started?,
        signal = &mut interrupted => return signal.map_err(Into::into),
    };
    let outcome = tokio::select! {
        outcome = console(&mut cluster) => outcome,
        signal = interrupted => signal.map_err(Into::into),
    };
    cluster.end().await;
    println!("ended");
    outcome
}

/// Returns when the program is to end: at Ctrl-C, when it is terminated, or when its terminal is closed.
async fn interrupted() -> std::io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminated, mut closed) = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        tokio::select! {
            pressed = tokio::signal::ctrl_c() => pressed,
            _ = terminated.recv() => Ok(()),
            _ = closed.recv() => Ok(()),
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await
}

/// Returns the lines of the input. A thread reads them: the end of the runtime would wait for a task that does.
fn input() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut read = std::io::stdin().lines().map_while(Result::ok);
        read.try_for_each(|line| send.blocking_send(line))
    });
    lines
}

/// Reads commands until `quit`, or until the input ends.
async fn console(cluster: &mut Cluster) -> Result<(), BoxError> {
    println!("{}\n{HELP}", cluster.url());
    cluster.show().await;
    let mut demo = Demo::open(&cluster.url()).await?;
    let mut lines = input();
    while let Some(line) = lines.recv().await {
        let mut words = line.split_whitespace();
        let (verb, number) =
            (words.next().unwrap_or_default(), words.next().and_then(|word| word.parse().ok()));
        match (verb, number) {
            ("" | "nodes", _) => cluster.show().await,
            ("work", steps) => demo.work(steps.unwrap_or(60)),
            ("ask", _) => demo.ask().await,
            ("change", _) => demo.change().await,
            ("stop", Some(node)) => cluster.stop(node).await,
            ("kill", Some(node)) => cluster.kill(node).await,
            ("start", Some(node)) => cluster.start_node(node).await,
            ("quit", _) => break,
            _ => println!("{HELP}"),
        }
    }
    Ok(())
}
