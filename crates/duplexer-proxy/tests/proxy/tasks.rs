//! Tasks through a proxy: what a client sees does not depend on the era of the server.

use std::time::Duration;

use duplexer::client::prelude::*;
use duplexer::client::{Started, TaskHandle, TaskOptions};
use duplexer::dispatch::OutboundRequest;
use duplexer::proxy::Remote;
use duplexer::tasks::{TaskPolicy, Tasks};
use duplexer::testing::TestClient;
use duplexer::types::task::TaskStatus;
use duplexer::types::version::Era;
use duplexer::{Context, Server, Tool, ToolError};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::{Seat, Speaks, client, open_running, text};

/// A server whose tools run as tasks.
fn jobs() -> Server {
    let yes = TaskPolicy::new;
    Server::builder("jobs", "1")
        .extend(Tasks::new().poll_interval(Duration::from_millis(50)))
        .tool(
            Tool::new("slow", || async {
                tokio::task::yield_now().await;
                "slow"
            })
            .task(yes()),
        )
        .tool(Tool::new("quick", || async { "quick" }).task(yes()))
        .tool(Tool::new("plain", || async { "plain" }))
        .tool(
            Tool::new("must", || async {
                tokio::task::yield_now().await;
                "must"
            })
            .task(yes().required()),
        )
        .tool(
            Tool::new("fail", || async {
                tokio::task::yield_now().await;
                Err::<(), _>(ToolError::new("no"))
            })
            .task(yes()),
        )
        .tool(
            Tool::new("refuse", || async {
                tokio::task::yield_now().await;
                Err::<(), _>(McpError::new(duplexer::types::error::ErrorCode(-32050), "refused"))
            })
            .task(yes()),
        )
        .tool(Tool::new("forever", std::future::pending::<()>).task(yes()))
        .tool(
            Tool::new("stubborn", std::future::pending::<()>)
                .task(yes().cancel_grace(Duration::from_secs(3600))),
        )
        .tool(
            Tool::new("book", |cx: Context| async move {
                cx.progress(1).total(2).message("looking").await;
                let first = cx.elicit::<Seat>("first", "Which seat?").await?.accepted()?;
                let second = cx.elicit::<Seat>("second", "Which other seat?").await?.accepted()?;
                Ok::<_, ToolError>(format!("{} {}", first.seat(), second.seat()))
            })
            .task(yes()),
        )
        .build()
        .unwrap()
}

/// Runs a check with a client of each era and a server of each. All sessions use one run of the server.
async fn each<F: Future<Output = ()>>(check: impl Fn(Era, TestClient, Remote) -> F) {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::Both, Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let running = jobs().start().await.unwrap();
            let remote = || {
                let running = running.clone();
                Remote::new(move |builder: ClientBuilder| {
                    let running = running.clone();
                    async move { open_running(&running, speaks, builder).await }
                })
            };
            let builder = client(era).tasks(TaskOptions::new());
            let client = TestClient::connect(&remote().server().unwrap(), builder).await.unwrap();
            timeout(Duration::from_secs(60), Box::pin(check(era, client, remote())))
                .await
                .unwrap_or_else(|_| panic!("{era:?} {speaks:?} hangs"));
            running.shutdown().await;
        }
    }
}

async fn started(client: &Client, tool: &str) -> TaskHandle {
    match client.call_tool(tool, ()).started().await.unwrap() {
        Started::Task(task) => task,
        other => panic!("{tool} is not a task: {other:?}"),
    }
}

async fn until(task: &TaskHandle, wanted: &TaskStatus) {
    let mut now = task.status().await.unwrap();
    while now.task.status != *wanted {
        assert!(!now.task.status.is_final(), "{now:?}");
        now = task.changed(&now.task).await.unwrap();
    }
}

/// TSK-32, TSK-40: a task is created, followed, asked in, and fetched, with the words of the client's revision.
#[tokio::test]
async fn a_task_is_followed_to_its_end() {
    each(|era, client, _| async move {
        client.all_tools().await.unwrap();
        for (tool, expected) in [("slow", "slow"), ("must", "must"), ("book", "7a 7a")] {
            let task = started(&client, tool).await;
            assert_eq!(text(&task.result().await.unwrap().content), expected, "{era:?}");
            // Asked again, it is still there.
            assert_eq!(text(&task.result().await.unwrap().content), expected, "{era:?}");
        }
        for (tool, expected) in [("slow", "slow"), ("must", "must"), ("plain", "plain"), ("book", "7a 7a")] {
            let result = client.call_tool(tool, ()).await.unwrap();
            assert_eq!(text(&result.content), expected, "{era:?}: waited for");
        }
        client.close().await;
    })
    .await;
}

/// TSK-18, TSK-60, TSK-68: how a task ends is written in the terms of the client's revision.
#[tokio::test]
async fn an_end_has_the_form_of_the_revision_of_the_client() {
    each(|era, client, _| async move {
        client.all_tools().await.unwrap();
        let failed = started(&client, "fail").await;
        let result = failed.result().await.unwrap();
        assert_eq!((text(&result.content).as_str(), result.is_error), ("no", Some(true)), "{era:?}");
        let status = failed.status().await.unwrap().task.status;
        let expected = if era == Era::Handshake { TaskStatus::Failed } else { TaskStatus::Completed };
        assert_eq!(status, expected, "{era:?}");
        let refused = started(&client, "refuse").await;
        let error = refused.result().await.unwrap_err().to_string();
        assert!(error.contains("refused"), "{era:?}: {error}");
        assert_eq!(refused.status().await.unwrap().task.status, TaskStatus::Failed, "{era:?}");
        client.close().await;
    })
    .await;
}

/// TSK-25, TSK-61, TSK-63: a task is cancelled; one that has ended is acknowledged or refused. Unknown ids are unknown.
#[tokio::test]
async fn a_task_is_cancelled() {
    each(|era, client, _| async move {
        client.all_tools().await.unwrap();
        let task = started(&client, "forever").await;
        task.cancel().await.unwrap();
        until(&task, &TaskStatus::Cancelled).await;
        assert!(matches!(task.result().await, Err(ClientError::TaskCancelled(_))), "{era:?}");
        let late = task.cancel().await;
        assert_eq!(late.is_err(), era == Era::Handshake, "{late:?}");
        let unknown = client.task("never").status().await.unwrap_err();
        assert!(matches!(unknown, ClientError::UnknownTask { .. }), "{era:?}: {unknown:?}");
        client.close().await;
    })
    .await;
}

/// TSK-63: in 2025-11-25 a cancelled task stays cancelled, also while its work at an envelope server goes on.
#[tokio::test(start_paused = true)]
async fn a_cancelled_task_stays_cancelled() {
    each(|era, client, _| async move {
        if era == Era::Handshake {
            client.all_tools().await.unwrap();
            let task = started(&client, "stubborn").await;
            task.cancel().await.unwrap();
            assert_eq!(task.status().await.unwrap().task.status, TaskStatus::Cancelled);
            assert!(task.cancel().await.is_err());
            let id = task.id();
            let fetched = raw(&client, "tasks/result", json!({ "taskId": id })).await.unwrap_err();
            assert!(fetched.contains("The task was cancelled"), "{fetched}");
        }
        client.close().await;
    })
    .await;
}

/// TSK-47, TSK-81: a task outlives the session that created it, and another client resumes it with its questions.
#[tokio::test]
async fn a_task_is_resumed_through_another_proxy() {
    each(|era, first, again| async move {
        first.all_tools().await.unwrap();
        let id = started(&first, "book").await.id().to_owned();
        first.close().await;
        let builder = client(era).tasks(TaskOptions::new());
        let second = TestClient::connect(&again.server().unwrap(), builder).await.unwrap();
        let booked = second.task(id).result().await.unwrap();
        assert_eq!(text(&booked.content), "7a 7a", "{era:?}");
        second.close().await;
    })
    .await;
}

async fn raw(client: &Client, method: &'static str, params: Value) -> Result<Value, String> {
    let request = OutboundRequest::new(method).params(params);
    let answer = client.request_custom(request).await.map_err(|error| error.to_string())?;
    Ok(serde_json::from_str(answer.as_str()).unwrap())
}

/// TSK-56: a client of 2025-11-25 that asks for a task always gets one, however quick the call was. What is declared is what
/// can be done; a list of tasks is neither declared nor served where the server has none.
#[tokio::test]
async fn a_client_that_asks_for_a_task_gets_one() {
    each(|era, client, _| async move {
        if era == Era::Envelope {
            let extensions = client.server_capabilities().extensions.as_ref();
            assert!(extensions.is_some_and(|all| all.get("io.modelcontextprotocol/tasks").is_some()));
            client.close().await;
            return;
        }
        let tools = client.all_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "quick" && tool.execution.is_some()));
        let declared = client.server_capabilities().tasks.clone().unwrap();
        assert!(declared.get("cancel").is_some() && declared.get("requests").is_some());
        let created =
            raw(&client, "tools/call", json!({ "name": "quick", "task": { "ttl": 1000 } })).await.unwrap();
        assert_eq!(created["task"]["status"], "working", "{created}");
        let id = created["task"]["taskId"].as_str().unwrap().to_owned();
        let fetched = raw(&client, "tasks/result", json!({ "taskId": id })).await.unwrap();
        assert_eq!(fetched["content"][0]["text"], "quick", "{fetched}");
        assert_eq!(fetched["_meta"]["io.modelcontextprotocol/related-task"]["taskId"], id, "{fetched}");
        assert!(fetched.get("resultType").is_none(), "{fetched}");
        let state = raw(&client, "tasks/get", json!({ "taskId": id })).await.unwrap();
        assert_eq!(state["status"], "completed", "{state}");
        assert!(state.get("ttl").is_some() && state.get("result").is_none(), "{state}");
        assert!(raw(&client, "tasks/cancel", json!({ "taskId": id })).await.is_err());
        if declared.get("list").is_none() {
            assert!(raw(&client, "tasks/list", json!({})).await.is_err());
        }
        client.close().await;
    })
    .await;
}

/// TSK-13, TSK-19: without tasks, requests about them are refused, and a tool that requires them is refused or waited for.
#[tokio::test]
async fn a_client_without_tasks_gets_none() {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let running = jobs().start().await.unwrap();
            let shared = running.clone();
            let remote = Remote::new(move |builder: ClientBuilder| {
                let running = shared.clone();
                async move { open_running(&running, speaks, builder).await }
            });
            let client = TestClient::connect(&remote.server().unwrap(), client(era)).await.unwrap();
            assert_eq!(text(&client.call_tool("slow", ()).await.unwrap().content), "slow");
            let must = client.call_tool("must", ()).await;
            match (era, speaks) {
                // The proxy waits on behalf of a client that cannot.
                (Era::Handshake, Speaks::OnlyEnvelope) => assert_eq!(text(&must.unwrap().content), "must"),
                _ => assert!(must.unwrap_err().to_string().contains("task"), "{era:?} {speaks:?}"),
            }
            if era == Era::Envelope {
                let error = raw(&client, "tasks/get", json!({ "taskId": "t" })).await.unwrap_err();
                assert!(error.contains("io.modelcontextprotocol/tasks"), "{error}");
            }
            client.close().await;
            running.shutdown().await;
        }
    }
}
