//! Tasks as clients see them: the extension of 2026-07-28, and the experiment of 2025-11-25.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::client::{
    ClientBuilder, ClientError, ErrorKind, ServerNotification, Started, TaskHandle, TaskOptions,
};
use duplexer::dispatch::OutboundRequest;
use duplexer::prelude::*;
use duplexer::tasks::{TaskPolicy, Tasks};
use duplexer::testing::TestClient;
use duplexer::{Context, Json};
use duplexer_types::elicitation::ElicitResult;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::subscription::SubscriptionFilter;
use duplexer_types::task::{EXTENSION, TaskStatus};
use duplexer_types::version::Era;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::common::{options, refusal};

/// Lets waiting functions continue, and counts how often functions ran.
struct Jobs {
    gate: Semaphore,
    runs: AtomicUsize,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Ends before it waits.
#[tool(task)]
async fn quick(cx: Context<Jobs>) -> &'static str {
    cx.state().runs.fetch_add(1, Ordering::SeqCst);
    "quick"
}

#[tool(task)]
async fn wait(cx: Context<Jobs>) -> String {
    let run = cx.state().runs.fetch_add(1, Ordering::SeqCst);
    tokio::task::yield_now().await;
    cx.progress(1).total(4).message("begun").await;
    cx.state().gate.acquire().await.unwrap().forget();
    format!("run {run}")
}

#[tool(task(required))]
async fn must(cx: Context<Jobs>) -> &'static str {
    cx.state().runs.fetch_add(1, Ordering::SeqCst);
    "must"
}

#[tool(task)]
async fn fails() -> Result<String, ToolError> {
    tokio::task::yield_now().await;
    Err(ToolError::new("no luck"))
}

#[tool(task)]
async fn refuses() -> Result<String, McpError> {
    tokio::task::yield_now().await;
    Err(McpError::new(ErrorCode(-5), "not today"))
}

#[tool(task)]
#[allow(unreachable_code, reason = "the macro converts what it returns")]
async fn panics() -> String {
    tokio::task::yield_now().await;
    panic!("secret")
}

#[tool(task)]
async fn asks(cx: Context<Jobs>) -> Result<String, ToolError> {
    let (first, second) =
        tokio::join!(cx.elicit::<Name>("first", "First?"), cx.elicit::<Name>("second", "Second?"));
    Ok(format!("{} {}", first?.accepted()?.name, second?.accepted()?.name))
}

#[tool(task(explicit))]
async fn explicit(cx: Context<Jobs>) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("who", "Who?").await?.accepted()?;
    cx.background().await;
    let Name { name: other } = cx.elicit("else", "Who else?").await?.accepted()?;
    Ok(format!("{name} and {other}"))
}

#[tool(task(cancel_grace = 60))]
async fn graceful(cx: Context<Jobs>) -> &'static str {
    cx.cancellation().cancelled().await;
    "cleaned up"
}

#[tool(task(required))]
async fn elsewhere(cx: Context<Jobs>) -> Result<(), ToolError> {
    cx.hand_over().await?;
    Ok(())
}

#[tool]
async fn plain() -> &'static str {
    "plain"
}

fn jobs(tasks: Tasks) -> Server {
    Server::builder("jobs", "0")
        .extend(tasks)
        .state(Jobs { gate: Semaphore::new(0), runs: AtomicUsize::new(0) })
        .tool(quick)
        .tool(wait)
        .tool(must)
        .tool(fails)
        .tool(refuses)
        .tool(panics)
        .tool(asks)
        .tool(explicit)
        .tool(graceful)
        .tool(elsewhere)
        .tool(plain)
        .tool(Tool::new("open", |cx: Context<Jobs>| async move { cx.state().gate.add_permits(1) }))
        .build()
        .unwrap()
}

/// A client that has tasks and answers questions with the question.
fn with_tasks(era: Era) -> ClientBuilder {
    options(era)
        .tasks(TaskOptions::new())
        .on_elicitation(|_| async { Ok(ElicitResult::accept(json!({"name": "Ada"}))) })
}

async fn connect(era: Era) -> TestClient {
    let client = TestClient::connect(&jobs(Tasks::new()), with_tasks(era)).await.unwrap();
    client.all_tools().await.unwrap();
    client
}

async fn raw(client: &TestClient, method: &str, params: Value) -> Result<Value, ErrorObject> {
    let request = OutboundRequest::new(method.to_owned()).params(Json::from(params));
    match client.request_custom(request).await {
        Ok(result) => Ok(result.decode().unwrap()),
        Err(error) => Err(refusal::<()>(Err(error))),
    }
}

async fn call(client: &TestClient, tool: &str) -> Result<Value, ErrorObject> {
    let experiment = json!({"name": tool, "task": {"ttl": 1000}});
    let params = if client.era() == Era::Handshake { experiment } else { json!({"name": tool}) };
    raw(client, "tools/call", params).await
}

async fn start(client: &TestClient, tool: &str) -> TaskHandle {
    match client.call_tool(tool, ()).started().await.unwrap() {
        Started::Task(task) => task,
        done => panic!("{done:?}"),
    }
}

/// Waits until a task has this status.
async fn until(task: &TaskHandle, status: TaskStatus) -> Value {
    for _ in 0..10_000 {
        let now = task.status().await.unwrap();
        if now.task.status == status {
            return serde_json::to_value(&now).unwrap();
        }
        assert!(!now.task.status.is_final(), "{now:?}");
        tokio::task::yield_now().await;
    }
    panic!("the task never is {status}")
}

/// TSK-03, TSK-04, TSK-05, TSK-15, P-TASK-3, P-TASK-5, TSK-56, TSK-57, P-LTASK-3, TSK-D2: the creation answer of each revision; the function runs once.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_becomes_a_task() {
    let client = connect(Era::Envelope).await;
    let created = call(&client, "wait").await.unwrap();
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert!(created["ttlMs"].as_u64().unwrap() >= 600_000 && created["pollIntervalMs"].as_u64().unwrap() > 0);
    for absent in ["task", "result", "error", "inputRequests", "requestState", "ttl", "pollInterval"] {
        assert_eq!(created.get(absent), None, "{absent}");
    }
    assert!(created["createdAt"].as_str().unwrap().contains('T'));
    assert!(created["taskId"].as_str().unwrap().len() >= 22, "128 bits");
    client.call_tool("open", ()).await.unwrap();
    let result = client.task(created["taskId"].as_str().unwrap()).result().await.unwrap();
    assert_eq!(result.to_text(), "run 0");
    client.close().await;

    let client = connect(Era::Handshake).await;
    let created = call(&client, "wait").await.unwrap();
    assert_eq!(created.as_object().unwrap().keys().collect::<Vec<_>>(), ["task"]);
    let task = &created["task"];
    assert_eq!(task["status"], "working");
    assert!(task["createdAt"].as_str().unwrap().contains('T'));
    assert!(task["ttl"].as_u64().unwrap() >= 600_000 && task["pollInterval"].as_u64().unwrap() > 0);
    client.close().await;
}

/// TSK-14, TSK-D3, TSK-56: what ends before it waits is answered directly, except where the client asked for a task.
#[tokio::test(start_paused = true)]
async fn a_call_that_ends_at_once_is_answered_directly() {
    let client = connect(Era::Envelope).await;
    assert_eq!(call(&client, "quick").await.unwrap()["content"][0]["text"], "quick");
    assert!(matches!(client.call_tool("quick", ()).started().await.unwrap(), Started::Done(_)));
    client.close().await;
    let client = connect(Era::Handshake).await;
    assert_eq!(call(&client, "quick").await.unwrap()["task"]["status"], "working");
    let task = start(&client, "quick").await;
    assert_eq!(task.result().await.unwrap().to_text(), "quick");
    client.close().await;
}

/// EXF-01, TSK-12, P-TASK-1, TSK-13, P-TASK-2, TSK-19, P-TASK-10, TSK-26, P-TASK-14, TSK-51, TSK-52, TSK-54, TSK-55, P-LTASK-2, EXF-04: who has no tasks gets none; a tool that requires them says
/// so before its function runs.
#[tokio::test(start_paused = true)]
async fn clients_without_tasks_learn_what_is_missing() {
    let server = jobs(Tasks::new());
    let plain_client = TestClient::connect(&server, options(Era::Envelope)).await.unwrap();
    let missing = json!({"requiredCapabilities": {"extensions": {EXTENSION: {}}}});
    for (method, params) in [
        ("tools/call", json!({"name": "must"})),
        ("tasks/get", json!({"taskId": "t"})),
        ("tasks/update", json!({"taskId": "t", "inputResponses": {}})),
        ("tasks/cancel", json!({"taskId": "t"})),
        ("subscriptions/listen", json!({"notifications": {"taskIds": ["t"]}})),
    ] {
        let error = raw(&plain_client, method, params).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::MISSING_CLIENT_CAPABILITY, "{method}");
        assert_eq!(error.data.unwrap().decode::<Value>().unwrap(), missing, "{method}");
    }
    let (ended, _) = tokio::join!(plain_client.call_tool("wait", ()), plain_client.call_tool("open", ()));
    assert_eq!(ended.unwrap().to_text(), "run 0", "it runs to its end within the request");
    plain_client.close().await;

    let client = connect(Era::Envelope).await;
    let ignored = raw(&client, "tools/call", json!({"name": "plain", "task": {"ttl": 5}})).await.unwrap();
    assert_eq!(ignored["content"][0]["text"], "plain");
    for method in ["tasks/result", "tasks/list"] {
        let error = client.request_custom(OutboundRequest::new(method)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Local, "{method} does not exist there");
    }
    client.close().await;

    let client = connect(Era::Handshake).await;
    let code = async |params| raw(&client, "tools/call", params).await.unwrap_err().code;
    assert_eq!(code(json!({"name": "plain", "task": {}})).await, ErrorCode::METHOD_NOT_FOUND);
    assert_eq!(code(json!({"name": "must"})).await, ErrorCode::METHOD_NOT_FOUND);
    client.close().await;
}

/// A tool that requires tasks says why it cannot run before 2025-11-25, where the model can read it.
#[tokio::test]
async fn a_required_tool_explains_itself_in_earlier_revisions() {
    use duplexer_server::{ClientProfile, Connection};
    let running = jobs(Tasks::new()).start().await.unwrap();
    let old = Arc::new(Connection::ready("2025-06-18".parse().unwrap(), ClientProfile::UNKNOWN));
    let outcome = running.call(&old, silent(), "tools/call", Some(r#"{"name":"must"}"#)).await.unwrap();
    let result: CallToolResult = outcome.into_typed().unwrap();
    assert_eq!(result.is_error, Some(true));
    assert_eq!(
        result.to_text(),
        "This tool runs as a task only, and revision 2025-06-18 of the protocol has no tasks."
    );
    let outcome = running.call(&old, silent(), "tools/call", Some(r#"{"name":"quick"}"#)).await.unwrap();
    assert_eq!(outcome.into_typed::<CallToolResult>().unwrap().to_text(), "quick");
}

/// A context whose channel drops what is sent.
fn silent() -> duplexer::dispatch::CallContext {
    use duplexer::dispatch::{
        BoxFuture, CallContext, Cancellation, Channel, NoChannel, NotifyFuture, Outbound,
    };
    struct Silent(Cancellation);
    impl Outbound for Silent {
        fn request(
            &self,
            request: OutboundRequest,
        ) -> BoxFuture<'_, Result<bytestring::ByteString, duplexer::CallError>> {
            Box::pin(async move { NoChannel.request(request).await })
        }

        fn notify(&self, _: &str, _: Option<&dyn duplexer_types::jsonrpc::Body>) -> NotifyFuture {
            NotifyFuture::done()
        }
    }
    impl Channel for Silent {
        fn cancellation(&self) -> &Cancellation {
            &self.0
        }

        fn closing(&self) -> &Cancellation {
            &self.0
        }
    }
    let transport = Arc::new(duplexer::transport::TransportContext::stream("test"));
    CallContext::new(Some(1_i64.into()), transport, Arc::new(Silent(Cancellation::new())))
}

/// TSK-07, TSK-16, P-TASK-4, TSK-17, P-TASK-6, TSK-18, P-TASK-7, TSK-48, TSK-60, P-LTASK-4, TSK-68, TSK-D10: how a task ends is written in the terms of each revision; a
/// panic is an error without detail.
#[tokio::test(start_paused = true)]
async fn an_end_is_written_in_the_terms_of_the_revision() {
    for era in [Era::Envelope, Era::Handshake] {
        let client = connect(era).await;
        let task = start(&client, "fails").await;
        let failed = if era == Era::Envelope { TaskStatus::Completed } else { TaskStatus::Failed };
        let state = until(&task, failed).await;
        assert_eq!(task.result().await.unwrap().is_error, Some(true));
        if era == Era::Envelope {
            assert_eq!((&state["result"]["isError"], state.get("error")), (&json!(true), None));
            assert_eq!(state["result"]["_meta"].get("io.modelcontextprotocol/related-task"), None);
        } else {
            let payload = raw(&client, "tasks/result", json!({"taskId": task.id()})).await.unwrap();
            let related = &payload["_meta"]["io.modelcontextprotocol/related-task"];
            assert_eq!((related, payload.get("resultType")), (&json!({"taskId": task.id()}), None));
        }
        for (tool, code, text) in [
            ("refuses", ErrorCode(-5), "not today"),
            ("panics", ErrorCode::INTERNAL_ERROR, "Internal server error"),
        ] {
            let task = start(&client, tool).await;
            let state = until(&task, TaskStatus::Failed).await;
            assert_eq!(state["statusMessage"], text, "{era:?}");
            assert_eq!(state.get("result"), None);
            let error = refusal(task.result().await);
            assert_eq!((error.code, &*error.message), (code, text), "{era:?}");
        }
        client.close().await;
    }
}

/// TSK-25, P-TASK-22, P-TASK-23, TSK-61, TSK-63, P-LTASK-5, TSK-D8: cancelling is asked for in one revision and done in the other; a finished task is
/// acknowledged or refused.
#[tokio::test(start_paused = true)]
async fn a_task_is_cancelled() {
    let client = connect(Era::Envelope).await;
    let task = start(&client, "wait").await;
    let id = json!({"taskId": task.id()});
    for _ in 0..2 {
        let acknowledged = raw(&client, "tasks/cancel", id.clone()).await.unwrap();
        assert_eq!(acknowledged["resultType"], "complete");
        assert_eq!(acknowledged.get("taskId"), None);
        until(&task, TaskStatus::Cancelled).await;
    }
    let graceful = start(&client, "graceful").await;
    graceful.cancel().await.unwrap();
    assert_eq!(graceful.result().await.unwrap().to_text(), "cleaned up", "what it still returns is kept");
    client.close().await;

    let client = connect(Era::Handshake).await;
    let task = start(&client, "wait").await;
    let cancelled = raw(&client, "tasks/cancel", json!({"taskId": task.id()})).await.unwrap();
    assert_eq!((&cancelled["status"], &cancelled["taskId"]), (&json!("cancelled"), &json!(task.id())));
    let again = raw(&client, "tasks/cancel", json!({"taskId": task.id()})).await.unwrap_err();
    assert_eq!(again.code, ErrorCode::INVALID_PARAMS);
    let payload = raw(&client, "tasks/result", json!({"taskId": task.id()})).await.unwrap_err();
    assert_eq!((payload.code, &*payload.message), (ErrorCode::INTERNAL_ERROR, "The task was cancelled"));
    let graceful = start(&client, "graceful").await;
    graceful.cancel().await.unwrap();
    until(&graceful, TaskStatus::Cancelled).await;
    client.close().await;
}

/// EXF-06, TSK-20, P-TASK-11, TSK-21, P-TASK-12, TSK-22, TSK-24: partial answers, unknown keys and answers of the wrong kind.
#[tokio::test(start_paused = true)]
async fn questions_of_a_task_are_answered_by_updates() {
    let client = connect(Era::Envelope).await;
    let task = start(&client, "asks").await;
    let state = until(&task, TaskStatus::InputRequired).await;
    assert_eq!(state["inputRequests"]["first"]["method"], "elicitation/create");
    let update = async |answers: Value| {
        let params = json!({"taskId": task.id(), "inputResponses": answers});
        let acknowledged = raw(&client, "tasks/update", params).await.unwrap();
        assert_eq!(acknowledged["resultType"], "complete");
        assert_eq!(acknowledged.get("status"), None);
        serde_json::to_value(task.status().await.unwrap()).unwrap()
    };
    let answer = |name: &str| json!({"action": "accept", "content": {"name": name}});
    let state = update(json!({"never": {"ignored": true}, "first": {"roots": []}})).await;
    assert_eq!(state["inputRequests"].as_object().unwrap().len(), 2);
    let state = update(json!({"first": answer("Ada")})).await;
    assert_eq!(state["status"], "input_required");
    assert_eq!(state["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"]);
    update(json!({"first": answer("Eve"), "second": answer("Bob")})).await;
    assert_eq!(task.result().await.unwrap().to_text(), "Ada Bob", "the first answer counts");
    client.close().await;
}

/// TSK-27, P-TASK-19, TSK-44, TSK-65, TSK-66, TSK-D4: an explicit tool asks in rounds first and in the task then; in 2025-11-25 its
/// questions are requests that name the task.
#[tokio::test(start_paused = true)]
async fn an_explicit_tool_says_when_it_becomes_a_task() {
    for era in [Era::Envelope, Era::Handshake] {
        let client = connect(era).await;
        let result = client.call_tool("explicit", ()).await.unwrap();
        assert_eq!(result.to_text(), "Ada and Ada", "{era:?}");
        let task = start(&client, "explicit").await;
        assert_eq!(task.result().await.unwrap().to_text(), "Ada and Ada", "{era:?}");
        let seen = client.transcript().to_string();
        let rounds = seen.matches(r#""resultType":"input_required""#).count();
        let requests = seen.matches(r#""method":"elicitation/create","params""#).count();
        match era {
            Era::Envelope => assert_eq!(rounds, 2, "{seen}"),
            Era::Handshake => {
                let related =
                    format!(r#""io.modelcontextprotocol/related-task":{{"taskId":"{}"}}"#, task.id());
                assert!(requests >= 2 && seen.matches(&related).count() >= 2, "{seen}");
            }
        }
        client.close().await;
    }
}

/// TSK-30, TSK-67, P-PROG-5, TSK-D7: progress is the status text; only 2025-11-25 still sends it, with the token of the call.
#[tokio::test(start_paused = true)]
async fn progress_is_the_status_text() {
    for era in [Era::Envelope, Era::Handshake] {
        let client = connect(era).await;
        let params = json!({"name": "wait", "task": {}, "_meta": {"progressToken": "mine"}});
        let created = raw(&client, "tools/call", params).await.unwrap();
        let id = created["taskId"].as_str().or(created["task"]["taskId"].as_str()).unwrap().to_owned();
        let task = client.task(id);
        let begun = async {
            while task.status().await.unwrap().task.status_message.as_deref() != Some("begun") {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), begun).await.unwrap();
        task.cancel().await.unwrap();
        until(&task, TaskStatus::Cancelled).await;
        let sent = client.transcript().to_string().matches(r#""progressToken":"mine","progress":1"#).count();
        assert_eq!(sent, usize::from(era == Era::Handshake), "{}", client.transcript());
        client.close().await;
    }
}

/// TSK-28, P-TASK-15, TSK-29, P-TASK-16: a listener gets the state of the tasks that it may see, and no others.
#[tokio::test(start_paused = true)]
async fn changes_of_a_task_are_pushed_to_listeners() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let listening = with_tasks(Era::Envelope).on_notification(move |notification| {
        if let ServerNotification::Other { method, params } = notification {
            sink.lock().unwrap().push((method, params.unwrap().decode::<Value>().unwrap()));
        }
    });
    let client = TestClient::connect(&jobs(Tasks::new()), listening).await.unwrap();
    let task = start(&client, "wait").await;
    let ids = vec![task.id().to_owned(), "foreign".to_owned()];
    let stream = client.listen(SubscriptionFilter::new().task_ids(ids)).await.unwrap();
    assert_eq!(stream.acknowledged().task_ids.as_deref(), Some(&[task.id().to_owned()][..]));
    client.call_tool("open", ()).await.unwrap();
    task.result().await.unwrap();
    let completed =
        || seen.lock().unwrap().iter().any(|(_, task): &(_, Value)| task["status"] == "completed");
    for _ in 0..10_000 {
        if completed() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (method, last) = seen.lock().unwrap().last().unwrap().clone();
    assert_eq!(method, "notifications/tasks");
    assert_eq!(
        (&last["taskId"], &last["result"]["content"][0]["text"]),
        (&json!(task.id()), &json!("run 0"))
    );
    assert!(last["_meta"].get("io.modelcontextprotocol/subscriptionId").is_some());
    client.close().await;
}

/// TSK-10, TSK-11, TSK-50, TSK-53, TSK-62, TSK-D26: what is declared in each revision, and the list of 2025-11-25.
#[tokio::test(start_paused = true)]
async fn tasks_are_declared_and_listed() {
    let client = connect(Era::Envelope).await;
    let capabilities = client.server_capabilities();
    assert!(capabilities.tasks.is_none());
    assert_eq!(capabilities.extensions.as_ref().unwrap().get(EXTENSION).unwrap().as_str(), "{}");
    client.close().await;

    let client = connect(Era::Handshake).await;
    let capabilities = client.server_capabilities();
    assert!(capabilities.extensions.is_none());
    let tasks: Value = serde_json::to_value(capabilities.tasks.as_ref().unwrap()).unwrap();
    assert_eq!(tasks, json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}));
    let tools = raw(&client, "tools/list", json!({})).await.unwrap();
    let support = |name: &str| {
        let tool = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].clone()
    };
    assert_eq!(
        (support("wait"), support("must"), support("plain")),
        (json!("optional"), json!("required"), Value::Null)
    );
    let mut started = Vec::new();
    for _ in 0..60 {
        started.push(start(&client, "wait").await.id().to_owned());
    }
    let (first, mut listed) = (client.list_tasks().await.unwrap(), Vec::new());
    let second = client.list_tasks().cursor(first.next_cursor.unwrap()).await.unwrap();
    assert_eq!(second.next_cursor, None);
    listed.extend(first.tasks.into_iter().chain(second.tasks).map(|task| task.task_id));
    started.sort();
    assert_eq!(listed, started);
    assert_eq!(refusal(client.list_tasks().cursor("§").await).code, ErrorCode::INVALID_PARAMS);
    client.close().await;
}

/// TSK-D19: work that is done elsewhere.
#[tokio::test(start_paused = true)]
async fn work_that_is_handed_over_is_ended_by_another_program() {
    let tasks = Tasks::new();
    let client = TestClient::connect(&jobs(tasks.clone()), with_tasks(Era::Envelope)).await.unwrap();
    let task = start(&client, "elsewhere").await;
    let remote = tasks.of(task.id());
    for _ in 0..10_000 {
        if remote.progress("queued").await.is_ok() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(task.status().await.unwrap().task.status_message.as_deref(), Some("queued"));
    remote.complete(CallToolResult::text("from elsewhere")).await.unwrap();
    assert_eq!(task.result().await.unwrap().to_text(), "from elsewhere");
    assert!(remote.complete(CallToolResult::text("twice")).await.is_err());
    assert!(tasks.of("unknown").progress("x").await.is_err());
    client.close().await;
}

/// TSK-46, TSK-D22: dropping an awaited call cancels its task; dropping a handle leaves it alone.
#[tokio::test(start_paused = true)]
async fn dropping_a_call_cancels_its_task_and_dropping_a_handle_does_not() {
    for era in [Era::Envelope, Era::Handshake] {
        let statuses = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&statuses);
        let tasks = TaskOptions::new().on_status(move |task| sink.lock().unwrap().push(task.task_id.clone()));
        let client = TestClient::connect(&jobs(Tasks::new()), options(era).tasks(tasks)).await.unwrap();
        client.all_tools().await.unwrap();
        let kept = start(&client, "wait").await;
        drop(client.task(kept.id()));
        // Of 2025-11-25 only a tool that requires tasks is awaited as one.
        let tool = if era == Era::Envelope { "wait" } else { "elsewhere" };
        let awaited = client.call_tool(tool, ());
        assert!(tokio::time::timeout(Duration::from_secs(5), awaited).await.is_err());
        let id = statuses.lock().unwrap().last().unwrap().clone();
        until(&client.task(id), TaskStatus::Cancelled).await;
        assert_eq!(kept.status().await.unwrap().task.status, TaskStatus::Working, "{era:?}");
        client.close().await;
    }
}

/// TSK-41, TSK-D20: without tasks a task is an invalid response; a question without a callback cancels the task.
#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_cancels_the_task() {
    let refuses = options(Era::Envelope)
        .tasks(TaskOptions::new())
        .on_elicitation(|_| async { Err(McpError::internal("no user is there")) });
    let client = TestClient::connect(&jobs(Tasks::new()), refuses).await.unwrap();
    let task = start(&client, "asks").await;
    let error = task.result().await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Unanswered { key, .. } if key == "first" || key == "second"),
        "{error:?}"
    );
    until(&task, TaskStatus::Cancelled).await;
    client.close().await;
}

/// TSK-D14: a server that stops ends its tasks honestly.
#[tokio::test(start_paused = true)]
async fn a_stopped_server_fails_its_tasks() {
    let tasks = Tasks::new();
    let server = jobs(tasks.clone());
    let client = TestClient::connect(&server, with_tasks(Era::Envelope)).await.unwrap();
    let task = start(&client, "wait").await;
    let id = task.id().to_owned();
    client.close().await;
    let client = TestClient::connect(&server, with_tasks(Era::Envelope)).await.unwrap();
    let error = refusal(client.task(id).result().await);
    assert_eq!(&*error.message, "The server was stopped");
    client.close().await;
}

/// A task-capable tool without tasks in its server fails the build, with a text that says what to add.
#[test]
fn a_server_without_tasks_cannot_have_tools_that_need_them() {
    let tool = Tool::new("render", || async {}).task(TaskPolicy::new());
    let error = Server::builder("jobs", "0").tool(tool).build().unwrap_err().to_string();
    assert_eq!(
        error,
        "the tool 'render' can run as a task, and its server has no tasks: add `.extend(Tasks::new())`"
    );
    let twice = Server::builder("jobs", "0").extend(Tasks::new()).extend(Tasks::new());
    assert!(twice.build().unwrap_err().to_string().contains("registered twice"));
}
