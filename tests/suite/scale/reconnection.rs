//! Our own client behind a balancer, with no setting of its own (SCL-94): nodes end and die while it calls.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use duplexer_client::{Change, Client, ClientBuilder, ClientError, Negotiation, ServerNotification};
use duplexer_core::error::CallError;
use duplexer_http_client::HttpTransport;
use duplexer_tests::cluster::balancer;
use duplexer_tests::random::Random;
use duplexer_tests::scale::TOUCHED;
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::subscription::SubscriptionFilter;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::ports::SECRET;
use crate::redis::store::Store;

const NODES: usize = 3;

/// Processes of nodes behind a balancer. None of them runs at first.
struct Deployment {
    store: Store,
    ports: Vec<u16>,
    nodes: Vec<Option<Child>>,
    url: String,
    _balancer: JoinSet<()>,
}

impl Deployment {
    async fn start(test: &str) -> Option<Self> {
        let store = Store::start(test).await?;
        let mut listeners = Vec::new();
        for _ in 0..NODES {
            listeners.push(tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap());
        }
        let ports: Vec<u16> = listeners.iter().map(|it| it.local_addr().unwrap().port()).collect();
        drop(listeners);
        let (address, balancer) = balancer::start(&ports, Random::new(7)).await;
        let url = format!("http://{address}/mcp");
        let nodes = (0..NODES).map(|_| None).collect();
        Some(Self { store, ports, nodes, url, _balancer: balancer })
    }

    async fn boot(&mut self, node: usize) {
        let mut child = Command::new(env!("CARGO_BIN_EXE_scale-server"))
            .args(["--port", &self.ports[node].to_string(), "--redis", &self.store.url(), "--lease", "2000"])
            .env("SCALE_SECRET", SECRET)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let output = child.stdout.take().unwrap();
        BufReader::new(output).lines().next_line().await.unwrap().expect("a node that listens");
        self.nodes[node] = Some(child);
    }

    async fn kill(&mut self, node: usize) {
        self.nodes[node].take().unwrap().kill().await.unwrap();
    }

    /// Asks a node to end.
    fn terminate(&self, node: usize) {
        let id = i32::try_from(self.nodes[node].as_ref().unwrap().id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    }

    async fn connect(&self, builder: ClientBuilder) -> Client {
        let transport = HttpTransport::builder(&self.url).bearer("ada").build().unwrap();
        builder.connect(transport).await.unwrap()
    }
}

fn handshake() -> ClientBuilder {
    Client::builder("test", "1").negotiation(Negotiation::Handshake)
}

/// The steps of a call, as the client reports them.
#[derive(Clone)]
struct Steps {
    seen: Arc<Mutex<Vec<String>>>,
    first: mpsc::Sender<()>,
}

/// Calls `count`. The receiver hears of the first step.
fn count(client: &Client, n: u32) -> (JoinSet<Result<String, ClientError>>, Steps, mpsc::Receiver<()>) {
    let (first, begun) = mpsc::channel(1);
    let steps = Steps { seen: Arc::default(), first };
    let (client, reported) = (client.clone(), steps.clone());
    let mut call = JoinSet::new();
    call.spawn(async move {
        let arguments = json!({"n": n, "ms": 100, "tag": "t"});
        let report = move |progress: duplexer_core::dispatch::Progress| {
            reported.seen.lock().unwrap().push(progress.message.unwrap_or_default());
            let _ = reported.first.try_send(());
        };
        client.call_tool("count", arguments).on_progress(report).text().await
    });
    (call, steps, begun)
}

/// SCL-61, SCL-94: a client follows its call at another node while the node that runs it ends, and sees every step once.
#[tokio::test]
async fn the_client_follows_its_call_when_the_node_ends() {
    let Some(mut deployment) = Deployment::start("a client whose node ends").await else { return };
    deployment.boot(0).await;
    let client = deployment.connect(handshake()).await;
    let (mut call, steps, mut begun) = count(&client, 25);
    begun.recv().await.unwrap();
    deployment.boot(1).await;
    deployment.terminate(0);
    assert_eq!(call.join_next().await.unwrap().unwrap().unwrap(), "t:25");
    let expected: Vec<String> = (1..=25).map(|step| format!("t:{step}")).collect();
    assert_eq!(*steps.seen.lock().unwrap(), expected);
    assert_eq!(client.call_tool("echo", json!({"text": "x"})).text().await.unwrap(), "x");
}

/// SCL-60, SCL-94: a client whose node dies hears so, does not call again by itself, and goes on in the same session.
#[tokio::test]
async fn the_client_hears_that_the_node_of_its_call_has_died() {
    let Some(mut deployment) = Deployment::start("a client whose node dies").await else { return };
    deployment.boot(0).await;
    let (renewed, mut renewals) = mpsc::channel(8);
    let builder = handshake().on_notification(move |notification| {
        if matches!(notification, ServerNotification::SessionRenewed) {
            let _ = renewed.try_send(());
        }
    });
    let client = deployment.connect(builder).await;
    let (mut call, steps, mut begun) = count(&client, 600);
    begun.recv().await.unwrap();
    deployment.boot(1).await;
    deployment.kill(0).await;
    let failed = call.join_next().await.unwrap().unwrap().unwrap_err();
    let ClientError::Call(CallError::Rpc(error)) = &failed else { panic!("{failed:?}") };
    assert!(error.data.as_ref().unwrap().as_str().contains("node_lost"), "{failed:?}");
    let seen = steps.seen.lock().unwrap().clone();
    assert_eq!(seen.iter().filter(|step| *step == "t:1").count(), 1, "{seen:?}");
    assert_eq!(client.call_tool("echo", json!({"text": "x"})).text().await.unwrap(), "x");
    assert!(renewals.try_recv().is_err(), "the session is the same");
    // A store that has lost the session: one handshake, of which the client tells its author, and the call succeeds.
    let mut commands = deployment.store.commands().await;
    let () = redis::cmd("FLUSHALL").query_async(&mut commands).await.unwrap();
    assert_eq!(client.call_tool("echo", json!({"text": "y"})).text().await.unwrap(), "y");
    renewals.recv().await.unwrap();
}

/// SCL-07, SCL-94: questions are answered on connections of their own, at any node.
#[tokio::test]
async fn the_client_answers_questions_at_any_node() {
    let Some(mut deployment) = Deployment::start("a client that answers").await else { return };
    for node in 0..NODES {
        deployment.boot(node).await;
    }
    for negotiation in [Negotiation::Handshake, Negotiation::Auto] {
        let answer = |_| std::future::ready(Ok(ElicitResult::accept(json!({"answer": "yes"}))));
        let builder = Client::builder("test", "1").negotiation(negotiation).on_elicitation(answer);
        let client = deployment.connect(builder).await;
        for number in 0..12 {
            let asked = client.call_tool("ask", json!({"tag": number.to_string()})).text().await.unwrap();
            assert_eq!(asked, format!("{number}:yes"));
        }
    }
}

/// SCL-10, SCL-94: a listener whose node dies listens again, reports what it can have missed, and hears of later changes.
#[tokio::test]
async fn the_client_listens_again_when_its_node_dies() {
    let Some(mut deployment) = Deployment::start("a client that listens").await else { return };
    let touched = || Change::Resource(TOUCHED.to_owned());
    for (negotiation, first) in [(Negotiation::Auto, 0), (Negotiation::Handshake, 1)] {
        let second = 1 - first;
        if deployment.nodes[first].is_none() {
            deployment.boot(first).await;
        }
        let builder = Client::builder("test", "1").negotiation(negotiation.clone());
        let client = deployment.connect(builder).await;
        let filter = SubscriptionFilter::new().resource_subscriptions([TOUCHED.to_owned()]);
        let mut changes = client.changes(filter).await.unwrap();
        deployment.boot(second).await;
        deployment.kill(first).await;
        if matches!(negotiation, Negotiation::Auto) {
            // The envelope era has no log of a listener: what can have changed is reported.
            assert_eq!(changes.next().await.unwrap().unwrap(), touched());
        }
        client.call_tool("touch", json!({})).text().await.unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), touched());
        deployment.kill(second).await;
    }
}
