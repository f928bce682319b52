//! Tasks over transports and in both revisions that have them, under load, and across the end of a process.

use std::path::PathBuf;
use std::sync::mpsc;

use duplexer::tasks::Tasks;
use duplexer::testing::{TestClient, in_process};
use duplexer_client::{Client, ClientBuilder, ClientError, Negotiation, Started, TaskHandle, TaskOptions};
use duplexer_core::error::CallError;
use duplexer_core::transport::child::{Child, ChildCommand};
use duplexer_http::{MemoryEventStore, StreamableHttp};
use duplexer_http_client::HttpTransport;
use duplexer_tests::tasks::{Gate, lease, many, server};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::task::TaskStatus;
use serde_json::json;
use tokio::task::JoinSet;

use crate::{ENVELOPE, HANDSHAKE};

/// A client that has tasks, and answers every question with yes.
fn client(revision: &str) -> ClientBuilder {
    let yes = || ElicitResult::accept(json!({"sure": true}));
    let builder = Client::builder("tests", "0")
        .tasks(TaskOptions::new())
        .on_elicitation(move |_| std::future::ready(Ok(yes())));
    if revision == HANDSHAKE { builder.negotiation(Negotiation::Handshake) } else { builder }
}

/// Asserts what every transport and either revision must show.
async fn behaves(client: &Client, gate: Option<&Gate>) {
    let which = format!("{} over {:?}", client.protocol_version(), client.server_info().map(|it| &it.name));
    client.all_tools().await.unwrap();
    // Awaited to the end, with a question in the middle.
    let published = client.call_tool("publish", ()).await.unwrap();
    assert_eq!(published.to_text(), "published: true", "{which}");
    if let Some(gate) = gate {
        // Held: inspected, left alone, and resumed by its id.
        let task = started(client, "render", json!({"page": 7})).await;
        let mut now = task.status().await.unwrap();
        while now.task.status_message.as_deref() != Some("drawing") {
            assert_eq!(now.task.status, TaskStatus::Working, "{which}");
            now = task.changed(&now.task).await.unwrap();
        }
        let id = task.id().to_owned();
        drop(task);
        gate.let_through(1);
        assert_eq!(client.task(id).result().await.unwrap().to_text(), "page 7", "{which}");
        // Cancelled.
        let task = started(client, "render", json!({"page": 8})).await;
        task.cancel().await.unwrap();
        let error = task.result().await.unwrap_err();
        assert!(matches!(error, ClientError::TaskCancelled(_)), "{which}: {error:?}");
        gate.let_through(1);
        let required = client.call_tool("migrate", json!({"table": 3})).await.unwrap();
        assert_eq!(required.to_text(), "table 3", "{which}");
    }
    let error = client.task("never").status().await.unwrap_err();
    assert!(matches!(error, ClientError::UnknownTask { .. }), "{which}: {error:?}");
}

async fn started(client: &Client, tool: &str, arguments: serde_json::Value) -> TaskHandle {
    match client.call_tool(tool, arguments).started().await.unwrap() {
        Started::Task(task) => task,
        done => panic!("not a task: {done:?}"),
    }
}

/// TSK-D1, TSK-D6, TSK-32, TSK-40, P-TASK-20, TSK-42, P-TASK-21, TSK-44, TSK-47, TSK-D21, TSK-D23: the same tools and the same assertions in memory.
#[tokio::test]
async fn tasks_behave_the_same_in_memory() {
    for revision in [HANDSHAKE, ENVELOPE] {
        let gate = Gate::closed();
        let tested =
            TestClient::connect(&server(Tasks::new(), gate.clone()), client(revision)).await.unwrap();
        behaves(&tested, Some(&gate)).await;
        tested.close().await;
    }
}

/// TSK-31, TSK-45, TSK-66: over HTTP too, where questions of 2025-11-25 use the stream of `tasks/result`.
#[tokio::test]
async fn tasks_behave_the_same_over_http() {
    let gate = Gate::closed();
    let service =
        StreamableHttp::builder(server(Tasks::new(), gate.clone())).event_store(MemoryEventStore::new());
    let bound = service.build().unwrap().bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", bound.local_addr().unwrap());
    let mut serving = JoinSet::new();
    serving.spawn(bound.serve_until(std::future::pending()));
    for revision in [HANDSHAKE, ENVELOPE] {
        let client = client(revision).connect(HttpTransport::new(&url).unwrap()).await.unwrap();
        behaves(&client, Some(&gate)).await;
        // TSK-D26: without authorization callers cannot be distinguished, so nothing is listed.
        let tasks = client.server_capabilities().tasks.as_ref();
        assert!(tasks.is_none_or(|tasks| tasks.get("list").is_none()));
        client.close().await.unwrap();
    }
}

/// A directory that is deleted with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        Self(std::env::temp_dir().join(format!("duplexer-{name}-{}", std::process::id())))
    }

    /// Starts a server process with its tasks in the directory.
    async fn connect(&self, gate: &str, revision: &str) -> (Client, Child) {
        let command = ChildCommand::new(env!("CARGO_BIN_EXE_stdio-server"));
        let directory = self.0.to_str().unwrap();
        let command = command.env("TASK_LEASE", lease().as_secs().to_string());
        let (transport, child) = command.args(["tasks", directory, gate]).spawn().unwrap();
        (client(revision).connect(transport).await.unwrap(), child)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The same over the standard streams of a process, with tasks in files.
#[tokio::test]
async fn tasks_behave_the_same_over_stdio() {
    let scratch = Scratch::new("stdio-tasks");
    for revision in [HANDSHAKE, ENVELOPE] {
        let (client, child) = scratch.connect("open", revision).await;
        behaves(&client, None).await;
        client.close().await.unwrap();
        child.shutdown().await.unwrap();
    }
}

/// TSK-D13, TSK-D17: 200 tasks run when their process is killed. The next process knows all of them: those that can be repeated
/// complete with the right result, the others have failed with the reason.
#[cfg(unix)]
#[tokio::test]
async fn no_task_is_lost_when_its_process_is_killed() {
    let scratch = Scratch::new("killed-tasks");
    let (client, child) = scratch.connect("closed", ENVELOPE).await;
    // First, because those that wait for the gate take all permits to run.
    let ended = started(&client, "number", json!({"number": 5})).await;
    assert_eq!(ended.result().await.unwrap().to_text(), "5");
    let mut tasks = Vec::new();
    for number in 0..100_u32 {
        tasks.push((
            number,
            true,
            started(&client, "migrate", json!({"table": number})).await.id().to_owned(),
        ));
        tasks.push((
            number,
            false,
            started(&client, "render", json!({"page": number})).await.id().to_owned(),
        ));
    }
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    client.closed().await;
    // The process holds the lock of the directory until its end. How it ended is known.
    let _ = child.shutdown().await;

    let (client, child) = scratch.connect("open", ENVELOPE).await;
    let kept = client.task(ended.id()).result().await.unwrap();
    assert_eq!(kept.to_text(), "5", "a finished task is there");
    let mut waiting = JoinSet::new();
    for (number, resumable, id) in tasks {
        let task = client.task(id);
        waiting.spawn(async move { (number, resumable, task.result().await) });
    }
    let (mut completed, mut failed) = (0, 0);
    while let Some(ended) = waiting.join_next().await {
        match ended.unwrap() {
            (number, true, Ok(result)) => {
                assert_eq!(result.to_text(), format!("table {number}"));
                completed += 1;
            }
            (_, false, Err(ClientError::Call(CallError::Rpc(error)))) => {
                assert_eq!(error.message, "The server that ran this task went away");
                failed += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((completed, failed), (100, 100));
    client.close().await.unwrap();
    child.shutdown().await.unwrap();
}

/// TSK-07, TSK-D2, TSK-D16: 10 000 tasks, 500 at once: none is lost, and each has its own result.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_tasks_end_with_their_own_results() {
    let running = server(Tasks::new().limits(many()), Gate::open()).start().await.unwrap();
    let client = in_process(&running, client(ENVELOPE)).await.unwrap();
    let mut callers = JoinSet::new();
    for caller in 0..500_u32 {
        let client = client.clone();
        callers.spawn(async move {
            for call in 0..20_u32 {
                let number = caller * 20 + call;
                let Started::Task(task) =
                    client.call_tool("number", json!({"number": number})).started().await?
                else {
                    panic!("the tool waits, so it is a task")
                };
                assert_eq!(task.result().await?.to_text(), number.to_string());
                let revision = task.status().await?.task.last_updated_at;
                // TSK-25: a cancellation that comes too late changes nothing.
                task.cancel().await?;
                let now = task.status().await?.task;
                assert_eq!((now.status, now.last_updated_at), (TaskStatus::Completed, revision));
            }
            Ok::<_, ClientError>(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended.unwrap().unwrap();
    }
    client.close().await.unwrap();
    running.shutdown().await;
}

/// TSK-D12, TSK-D13: of two nodes on one store, one does not renew its lease in time. The other ends its task; the first comes back,
/// and its result comes too late.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stood_still_does_not_end_its_task_again() {
    let tasks = Tasks::new().lease(lease()).limits(many());
    let (gate, shared) = (Gate::closed(), tasks.clone());
    let (resume, stopped) = mpsc::sync_channel::<()>(1);
    let (send_id, id) = tokio::sync::oneshot::channel();
    let first = std::thread::spawn({
        let gate = gate.clone();
        move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let running = server(shared, gate.clone()).start().await.unwrap();
                let client = in_process(&running, client(ENVELOPE)).await.unwrap();
                let task = started(&client, "render", json!({"page": 1})).await;
                send_id.send(task.id().to_owned()).unwrap();
                // Nothing of this node runs until the other one has the task.
                stopped.recv().unwrap();
                gate.let_through(1);
                client.close().await.unwrap();
                running.shutdown().await;
            });
        }
    });
    let running = server(tasks, gate).start().await.unwrap();
    let client = in_process(&running, client(ENVELOPE)).await.unwrap();
    let task = client.task(id.await.unwrap());
    let Err(ClientError::Call(CallError::Rpc(error))) = task.result().await else { panic!("it has failed") };
    assert_eq!(error.message, "The server that ran this task went away");
    let before = task.status().await.unwrap();
    resume.send(()).unwrap();
    tokio::task::spawn_blocking(move || first.join().unwrap()).await.unwrap();
    let after = task.status().await.unwrap();
    assert_eq!(after.task.last_updated_at, before.task.last_updated_at);
    assert_eq!(after.error, before.error);
    client.close().await.unwrap();
    running.shutdown().await;
}
