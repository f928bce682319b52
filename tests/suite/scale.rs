//! Several nodes behind a balancer that chooses at random: every message of a client goes to another node. Nothing is lost,
//! doubled or delivered to another client.
//!
//! In this process the clock is paused and there are no sockets, so that a run depends on its seed only. `SCALE_SEEDS=2000`
//! runs as many seeds, `SCALE_SEED=17` runs that one.

mod actions;
pub mod client;
mod drain;
mod interleaving;
pub mod nodes;
mod ports;
mod reconnection;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;
use duplexer_core::run::RunId;
use duplexer_http::{Health, MemoryCluster, NodeListener, NodeMessage, Sent, SharedStores};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use actions::{Action, Deed, Effects, Listener, SOON, pause, touch};
use client::{Client, Finding, Kind, Outcome, Random, Stream, count, ensure, request, text_of};
use nodes::{Cluster, IDLE, Nodes};

/// Time after which a request without an outcome is lost.
const PATIENCE: Duration = Duration::from_secs(90);

/// What happened in one run.
#[derive(Default)]
pub struct Report {
    findings: Vec<Finding>,
    /// Lines that the tools must have written, each once.
    effects: Effects,
}

impl Report {
    fn note<T>(&mut self, who: &str, outcome: Outcome<T>) -> Option<T> {
        outcome
            .map_err(|finding| self.findings.push(Finding { text: format!("{who}: {finding}"), ..finding }))
            .ok()
    }

    /// Compares the lines that the tools have written with those that they must have.
    pub fn check_lines(&mut self, lines: &[String]) {
        let mut written = BTreeMap::new();
        for line in lines {
            *written.entry(line.clone()).or_insert(0_usize) += 1;
        }
        for (line, times) in &written {
            if *times > 1 {
                self.findings.push(Finding::new(Kind::Doubled, format!("{line:?} ran {times} times")));
            }
            if line.ends_with(" again") {
                self.findings
                    .push(Finding::new(Kind::Doubled, format!("{line:?} ran although it was refused")));
            }
        }
        for line in self.effects.iter().filter(|line| !written.contains_key(*line)) {
            self.findings.push(Finding::new(Kind::Lost, format!("{line:?} did not run")));
        }
    }

    #[track_caller]
    pub fn assert_none(&self, seed: u64) {
        let texts: Vec<String> = self.findings.iter().map(ToString::to_string).collect();
        assert!(texts.is_empty(), "seed {seed}: {:?}\n{}", count(&self.findings), texts.join("\n"));
    }
}

/// Scale of one run.
#[derive(Clone, Copy)]
pub struct Size {
    pub clients: usize,
    pub actions: usize,
    /// Milliseconds between two progress notifications.
    pub pace: u64,
}

/// Runs clients with concurrent actions, one listener each, and ends their sessions.
pub async fn story(nodes: &Arc<Nodes>, seed: u64, size: Size) -> Report {
    let (mut random, mut report) = (Random::new(seed), Report::default());
    let mut clients = Vec::new();
    for number in 0..size.clients {
        let opened = Client::open(nodes, &format!("{seed}-{number}"), &mut random).await;
        clients.extend(report.note("open", opened));
    }
    let mut listeners = act(&clients, &mut random, &mut report, size).await;
    if let Some(first) = clients.first() {
        let heard = hear_once(first, &mut listeners, &mut random).await;
        report.note("the last change", heard);
    }
    for (number, client) in clients.iter().enumerate() {
        let listener = listeners.iter_mut().find(|listener| Arc::ptr_eq(&listener.client, client));
        let ended = end_session(client, listener, &mut random, size.pace).await;
        if let Some(effects) = report.note(&format!("the end of client {number}"), ended) {
            report.effects.extend(effects);
        }
    }
    report
}

/// Runs all actions of all clients at the same time.
async fn act(clients: &[Arc<Client>], random: &mut Random, report: &mut Report, size: Size) -> Vec<Listener> {
    let mut actions: JoinSet<(String, Outcome<Effects>)> = JoinSet::new();
    let mut listening: JoinSet<Outcome<Listener>> = JoinSet::new();
    for (number, client) in clients.iter().enumerate() {
        for index in 0..size.actions {
            let deed = Deed::ALL[random.below(Deed::ALL.len())];
            let tag = format!("{}/{index}", client.name);
            let mut random = random.fork();
            let client = Arc::clone(client);
            actions.spawn(async move {
                pause(&mut random, size.pace).await;
                let action = Action { client, random, tag: tag.clone(), pace: size.pace };
                let outcome = timeout(PATIENCE, action.run(deed)).await;
                let lost = || Err(Finding::new(Kind::Lost, "no outcome in time"));
                (format!("{deed:?} {tag}"), outcome.unwrap_or_else(|_| lost()))
            });
        }
        // The first client always listens, so that every run has changes.
        if number == 0 || random.one_in(2) {
            let (client, mut random) = (Arc::clone(client), random.fork());
            listening.spawn(async move {
                let mut listener = Listener::open(&client, &mut random).await?;
                listener.hear(4).await?;
                Ok(listener)
            });
        }
    }
    let mut listeners = Vec::new();
    while let Some(done) = actions.join_next().await {
        let (name, outcome) = done.unwrap();
        if let Some(effects) = report.note(&name, outcome) {
            report.effects.extend(effects);
        }
    }
    while let Some(done) = listening.join_next().await {
        listeners.extend(report.note("listening", done.unwrap()));
    }
    listeners
}

/// One change, with nothing else happening: every listener hears of it once.
async fn hear_once(client: &Arc<Client>, listeners: &mut [Listener], random: &mut Random) -> Outcome {
    for listener in &mut *listeners {
        listener.drain().await?;
    }
    touch(client, random).await?;
    for listener in listeners {
        listener.next(SOON).await?;
        let again = timeout(SOON, listener.stream.next()).await;
        ensure(again.is_err(), Kind::Doubled, || format!("one change: {again:?}"))?;
    }
    Ok(())
}

/// SCL-09: `DELETE` at any node ends the session at every node, and what runs for it.
async fn end_session(
    client: &Arc<Client>,
    listener: Option<&mut Listener>,
    random: &mut Random,
    pace: u64,
) -> Outcome<Effects> {
    let tag = format!("{}/last", client.name);
    let arguments = json!({"n": 60_000 / pace, "ms": pace, "tag": tag});
    let mut running = client.call(random, "count", &tag, arguments).await?;
    running.next().await?;
    let status = client.delete_anywhere(random).await.status;
    ensure((200..300).contains(&status), Kind::Refused, || format!("DELETE: {status}"))?;
    let deleted = Instant::now();
    for node in 0..client.nodes.len() {
        let echo =
            request(client.new_id(), "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
        let status = client.post(node, &echo).await.status;
        ensure(status == 404, Kind::Misdelivered, || format!("node {node} after DELETE: {status}"))?;
        let status = client.get(node, running.last_id()).await.status;
        ensure(status == 404, Kind::Misdelivered, || format!("GET at node {node} after DELETE: {status}"))?;
    }
    let ended = running.ends_after_deletion(SOON).await;
    ensure(ended, Kind::Lost, || format!("a call runs {:?} after DELETE", deleted.elapsed()))?;
    if let Some(listener) = listener {
        let ended = listener.stream.ends_after_deletion(SOON).await;
        ensure(ended, Kind::Lost, || "a stream is open after DELETE".to_owned())?;
    }
    Ok(Effects::from([format!("count {tag}")]))
}

/// Runs a test on a clock that only moves when everything waits.
fn paused<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let limited = async { timeout(20 * PATIENCE, test).await.expect("an end") };
    runtime.unwrap().block_on(limited)
}

/// Returns the seeds to run: `count` of them, unless the environment says otherwise.
fn seeds(count: u64) -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    match (number("SCALE_SEED"), number("SCALE_SEEDS")) {
        (Some(seed), _) => vec![seed],
        (None, chosen) => (0..chosen.unwrap_or(count)).collect(),
    }
}

/// SCL-02, SCL-03, SCL-04, SCL-07 to SCL-12: whatever node a message reaches.
#[test]
fn nothing_is_lost_doubled_or_misdelivered_when_every_message_goes_to_a_random_node() {
    for seed in seeds(30) {
        paused(async {
            let cluster = Cluster::start(3);
            let size = Size { clients: 3, actions: 8, pace: 20 };
            let mut report = story(&cluster.nodes, seed, size).await;
            report.check_lines(&cluster.lines.lock().unwrap());
            report.assert_none(seed);
        });
    }
}

/// Two nodes in this process, and a client with a session.
async fn two_nodes() -> (Cluster, Arc<Client>, Random) {
    let (cluster, mut random) = (Cluster::start(2), Random::new(1));
    let client = Client::open(&cluster.nodes, "ada", &mut random).await.unwrap();
    (cluster, client, random)
}

/// Starts a call at one node.
async fn call_at(
    client: &Arc<Client>,
    node: usize,
    id: i64,
    tool: &str,
    arguments: serde_json::Value,
) -> Stream {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {"progressToken": "token"}});
    let reply = client.post(node, &request(id, "tools/call", params)).await;
    assert_eq!(reply.status, 200);
    Stream::of(client, id, reply).await
}

/// SCL-03: a session belongs to no node, so a call at one does not end a call at another.
#[test]
fn two_calls_of_one_session_run_at_two_nodes() {
    paused(async {
        let (_cluster, client, _) = two_nodes().await;
        let mut one = call_at(&client, 0, 11, "count", json!({"n": 3, "ms": 20, "tag": "a"})).await;
        let mut two = call_at(&client, 1, 12, "count", json!({"n": 3, "ms": 20, "tag": "b"})).await;
        for (stream, tag) in [(&mut one, "a"), (&mut two, "b")] {
            for step in 1..=3 {
                assert_eq!(stream.next().await.unwrap()["params"]["message"], format!("{tag}:{step}"));
            }
            assert_eq!(text_of(&stream.next().await.unwrap()), Some(&*format!("{tag}:3")));
        }
    });
}

/// SCL-07, SCL-42: two handlers at two nodes ask at the same time; each gets the answer to its own question, which
/// arrives at the other node.
#[test]
fn an_answer_at_another_node_reaches_the_handler_that_asked() {
    paused(async {
        let (_cluster, client, _) = two_nodes().await;
        let mut questions = Vec::new();
        for (node, id, tag) in [(0, 20, "a"), (1, 21, "b")] {
            let mut stream = call_at(&client, node, id, "ask", json!({"tag": tag})).await;
            let question = stream.next().await.unwrap();
            assert_eq!(question["method"], "elicitation/create");
            questions.push((node, tag, stream, question["id"].clone()));
        }
        assert_ne!(questions[0].3, questions[1].3, "ids of two nodes are different");
        for (node, tag, stream, question) in &mut questions {
            let answer = json!({"jsonrpc": "2.0", "id": question,
                "result": {"action": "accept", "content": {"answer": format!("for {tag}")}}});
            assert_eq!(client.post(1 - *node, &answer).await.status, 202);
            assert_eq!(text_of(&stream.next().await.unwrap()), Some(&*format!("{tag}:for {tag}")));
        }
    });
}

/// SCL-38: a stream that is resumed at another node follows the handler where it runs, live.
#[test]
fn a_resumed_stream_follows_a_handler_at_another_node() {
    paused(async {
        let (_cluster, client, _) = two_nodes().await;
        let mut first = call_at(&client, 0, 31, "count", json!({"n": 20, "ms": 500, "tag": "a"})).await;
        assert_eq!(first.next().await.unwrap()["params"]["message"], "a:1");
        let last = first.last_id().unwrap().to_owned();
        drop(first);
        let reply = client.get(1, Some(&last)).await;
        assert_eq!(reply.status, 200);
        let mut resumed = Stream::of(&client, 31, reply).await;
        for step in 2..=20 {
            let before = Instant::now();
            assert_eq!(resumed.next().await.unwrap()["params"]["message"], format!("a:{step}"));
            assert!(
                before.elapsed() < Duration::from_millis(1500),
                "step {step} after {:?}",
                before.elapsed()
            );
        }
        assert_eq!(text_of(&resumed.next().await.unwrap()), Some("a:20"));
    });
}

/// SCL-08: a cancellation at another node.
#[test]
fn a_cancellation_at_another_node_ends_the_call() {
    paused(async {
        let (_cluster, client, _) = two_nodes().await;
        let mut stream = call_at(&client, 0, 41, "count", json!({"n": 1000, "ms": 50, "tag": "a"})).await;
        stream.next().await.unwrap();
        let cancelled =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 41}});
        assert_eq!(client.post(1, &cancelled).await.status, 202);
        let sent = Instant::now();
        let last = loop {
            let message = stream.next().await.unwrap();
            if message.get("method").is_none() {
                break message;
            }
        };
        assert_eq!(last["error"]["code"], -32800);
        assert!(sent.elapsed() <= SOON, "{:?}", sent.elapsed());
    });
}

/// SCL-11, SCL-30: a stranger's message while the owner's request runs has no effect on it.
#[test]
fn a_strangers_message_affects_nothing() {
    paused(async {
        let (cluster, client, random) = two_nodes().await;
        let action = Action { client, random, tag: "a".to_owned(), pace: 20 };
        let effects = action.run(Deed::Stranger).await.unwrap();
        assert_eq!(*cluster.lines.lock().unwrap(), effects.into_iter().collect::<Vec<_>>());
    });
}

/// SCL-10: a subscription at one node, the stream at another, the change at a third; the reader was away.
#[test]
fn a_change_reaches_a_reader_at_another_node_and_one_that_was_away() {
    paused(async {
        let (_cluster, client, mut random) = two_nodes().await;
        let mut listener = Listener::open(&client, &mut random).await.unwrap();
        listener.hear(10).await.unwrap();
        hear_once(&client, &mut [listener], &mut random).await.unwrap();
    });
}

/// The checks themselves: nodes that share nothing, and nodes that lose the messages to each other, are noticed.
#[test]
fn nodes_that_do_not_work_together_are_noticed() {
    let noticed = |shared: fn() -> Box<dyn Fn() -> SharedStores + Send + Sync>| {
        paused(async {
            let cluster = Cluster::with(3, shared());
            let size = Size { clients: 2, actions: 16, pace: 20 };
            let mut report = story(&cluster.nodes, 1, size).await;
            report.check_lines(&cluster.lines.lock().unwrap());
            count(&report.findings)
        })
    };
    let apart = noticed(|| Box::new(|| MemoryCluster::new(IDLE).node()));
    assert!(apart.contains_key(&Kind::Refused), "{apart:?}");
    let deaf = noticed(|| {
        let cluster = MemoryCluster::new(IDLE);
        Box::new(move || {
            let stores = cluster.node();
            SharedStores::new(stores.sessions, stores.events, Arc::new(Deaf(stores.nodes)))
        })
    });
    assert!(deaf.contains_key(&Kind::Lost), "{deaf:?}");
}

/// A node whose messages to others are lost.
struct Deaf(Arc<dyn duplexer_http::Nodes>);

impl duplexer_http::Nodes for Deaf {
    fn run(&self) -> RunId {
        self.0.run()
    }

    fn send<'a>(&'a self, _: RunId, _: &'a NodeMessage) -> BoxFuture<'a, Result<Sent, StoreError>> {
        Box::pin(std::future::ready(Ok(Sent::Queued)))
    }

    fn receive(&self, listener: Weak<dyn NodeListener>) {
        self.0.receive(listener);
    }

    fn is_alive(&self, run: RunId) -> BoxFuture<'_, Result<bool, StoreError>> {
        self.0.is_alive(run)
    }

    fn health(&self) -> Health {
        self.0.health()
    }

    fn leave(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.0.leave()
    }
}
