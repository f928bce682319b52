//! The same clients at the ports of a process: `scale-server`.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::nodes::Nodes;
use super::{Size, story};
use crate::redis::store::Store;

pub const SECRET: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const NODES: usize = 3;
const TIMEOUT: Duration = Duration::from_secs(60);

fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scale-server"));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Starts the nodes on free ports, below those that the system gives to connections: these are taken by other tests.
async fn start(ledger: &std::path::Path) -> (Child, Arc<Nodes>) {
    for attempt in 0..20 {
        let port = 20_000 + (std::process::id() + 157 * attempt) % 10_000;
        let mut child = command()
            .args(["--port", &port.to_string(), "--nodes", &NODES.to_string()])
            .env("SCALE_SECRET", SECRET)
            .env("SCALE_LEDGER", ledger)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut ports = Vec::new();
        while let Some(line) = timeout(TIMEOUT, lines.next_line()).await.expect("a start").unwrap() {
            ports.push(line.parse().unwrap());
            if ports.len() == NODES {
                return (child, Arc::new(Nodes::at(ports)));
            }
        }
    }
    panic!("no three free ports in a row");
}

/// Starts processes that share a store, each with one node on a free port.
async fn start_on(store: &Store, ledger: &std::path::Path) -> (Vec<Child>, Arc<Nodes>) {
    let (mut children, mut ports) = (Vec::new(), Vec::new());
    while ports.len() < NODES {
        let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
        let mut child = command()
            .args(["--port", &port.to_string(), "--redis", &store.url()])
            .env("SCALE_SECRET", SECRET)
            .env("SCALE_LEDGER", ledger)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Another process can take the port first.
        if let Some(line) = timeout(TIMEOUT, lines.next_line()).await.expect("a start").unwrap() {
            ports.push(line.parse().unwrap());
            children.push(child);
        }
    }
    (children, Arc::new(Nodes::at(ports)))
}

/// SCL-03, SCL-04: three processes on one Redis or Valkey.
#[tokio::test]
async fn processes_on_a_real_store_serve_every_message_at_a_random_one() {
    let Some(store) = Store::start("processes that share a store").await else { return };
    let ledger = store.folder().join("ledger");
    let (_children, nodes) = start_on(&store, &ledger).await;
    for node in 0..NODES {
        assert_eq!(ready(&nodes, node).await, 200);
    }
    let mut report = story(&nodes, 2000, Size { clients: 3, actions: 8, pace: 20 }).await;
    let lines: Vec<String> = std::fs::read_to_string(&ledger).unwrap().lines().map(Into::into).collect();
    report.check_lines(&lines);
    report.assert_none(2000);
}

async fn ready(nodes: &Nodes, node: usize) -> u16 {
    let request = Request::get("/readyz").header("host", "127.0.0.1");
    nodes.send(node, request.body(Full::<Bytes>::default()).unwrap()).await.status
}

#[tokio::test]
async fn a_process_with_three_ports_serves_every_message_at_a_random_one() {
    let folder = std::env::temp_dir().join(format!("scale-server-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ledger = folder.join("ledger");
    let (mut child, nodes) = start(&ledger).await;
    for node in 0..NODES {
        assert_eq!(ready(&nodes, node).await, 200);
    }
    let mut report = story(&nodes, 1000, Size { clients: 3, actions: 8, pace: 5 }).await;
    let lines: Vec<String> = std::fs::read_to_string(&ledger).unwrap().lines().map(Into::into).collect();
    report.check_lines(&lines);
    report.assert_none(1000);
    child.kill().await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[tokio::test]
async fn a_wrong_option_is_an_error_that_says_what_is_wrong() {
    for (arguments, secret, expected) in [
        (
            &["--port", "1", "--nodes", "3", "--redis", "redis://127.0.0.1"][..],
            SECRET,
            "--redis: a node that shares a store is one process",
        ),
        (&["--port", "1", "--other"][..], SECRET, "unknown option --other"),
        (&["--port"][..], SECRET, "--port needs a value"),
        (&["--port", "65535", "--nodes", "2"][..], SECRET, "--nodes 2: there are no such ports"),
        (&["--port", "1"][..], "00ff", "SCALE_SECRET must have 64 hexadecimal digits"),
    ] {
        let mut child = command().args(arguments).env("SCALE_SECRET", secret).spawn().unwrap();
        let mut text = String::new();
        child.stderr.take().unwrap().read_to_string(&mut text).await.unwrap();
        assert!(text.starts_with(&format!("scale-server: {expected}")), "{arguments:?}: {text}");
        assert!(!child.wait().await.unwrap().success());
    }
}
