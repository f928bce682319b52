//! What tasks do while they run: status texts, time limits, and nothing at all.

use std::sync::atomic::AtomicUsize;
use std::task::Poll;

use super::*;
use crate::Context;
use crate::tool::ToolError;

async fn serve(tasks: Tasks, tool: Tool<()>) -> RunningServer {
    let server = Server::builder("jobs", "0").extend(tasks).tool(tool.task(TaskPolicy::new().required()));
    server.build().unwrap().start().await.unwrap()
}

/// A client that has tasks, and can ask its user.
fn asked() -> Arc<Connection> {
    let text = format!(r#"{{"elicitation":{{}},"extensions":{{"{EXTENSION}":{{}}}}}}"#);
    let profile = ClientProfile::new(None, Some(serde_json::from_str(&text).unwrap()));
    Arc::new(Connection::ready(ProtocolVersion::LATEST_ENVELOPE, profile))
}

/// Runs the tool as a task, and returns the text of its result.
async fn result(running: &RunningServer, tool: &str) -> String {
    let ada = asked();
    let id = start(running, &ada, tool).await.unwrap();
    assert_eq!(end(running, &ada, &id).await, TaskStatus::Completed);
    let got = about(running, &ada, Method::TasksGet, &id).await.unwrap();
    got.into_typed::<GetTaskResult>().unwrap().task.result.unwrap().as_str().to_owned()
}

/// TSK-D7: status texts are merged, at most one per 250 ms is stored, and the last one always is.
#[tokio::test(start_paused = true)]
async fn few_status_texts_are_stored_and_always_the_last() {
    let store = MemoryTasks::new();
    let busy = |cx: Context| async move {
        for step in 1..=100 {
            cx.progress(step).total(100).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cx.progress(100).message("packing").await;
    };
    let running = serve(Tasks::on(store.clone()), Tool::new("busy", busy)).await;
    let ada = client(None);
    let id = start(&running, &ada, "busy").await.unwrap();
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Completed);
    let record = store.get(&TaskId::from(&*id)).await.unwrap().unwrap();
    assert_eq!(record.state.message.as_deref(), Some("packing"));
    assert!((3..=6).contains(&record.revision), "in a second, and the end: {}", record.revision);
}

/// TSK-D9, TSK-D10: the timeout of a tool bounds the run, and is a tool error.
#[tokio::test(start_paused = true)]
async fn a_task_that_takes_too_long_ends_with_a_tool_error() {
    let slow = Tool::new("slow", || async { std::future::pending::<()>().await });
    let running = serve(Tasks::new(), slow.timeout(Duration::from_secs(5))).await;
    let result = result(&running, "slow").await;
    assert!(
        result.contains("This took longer than the 5s") && result.contains(r#""isError":true"#),
        "{result}"
    );
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Age {
    #[expect(dead_code, reason = "the client does not answer")]
    years: u8,
}

/// TSK-D9: a question without an answer in time fails, and the function decides.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_not_answered_fails_in_the_function() {
    let asks = |cx: Context| async move {
        let asked = cx.elicit::<Age>("age", "How old?").await;
        asked.map_or_else(|error| error.to_string(), |_| "answered".to_owned())
    };
    let tasks = Tasks::new().input_timeout(Duration::from_secs(60));
    let running = serve(tasks, Tool::new("asks", asks)).await;
    let result = result(&running, "asks").await;
    assert!(result.contains("The question 'age' was not answered: the client took too long"), "{result}");
}

/// TSK-D8: a function on a thread of its own sees the cancellation only. Its task is cancelled when it ends, whatever it
/// returns.
#[tokio::test]
async fn a_blocking_function_is_cancelled_when_it_ends() {
    let (go, waits) = std::sync::mpsc::sync_channel::<()>(1);
    let waits = std::sync::Mutex::new(waits);
    let blocks = move || -> Result<&'static str, ToolError> {
        waits.lock().unwrap().recv().unwrap();
        Ok("too late")
    };
    let running = serve(Tasks::new(), Tool::blocking("blocks", blocks)).await;
    let ada = client(None);
    let id = start(&running, &ada, "blocks").await.unwrap();
    about(&running, &ada, Method::TasksCancel, &id).await.unwrap();
    assert_eq!(status(&running, &ada, &id).await, TaskStatus::Working);
    go.send(()).unwrap();
    assert_eq!(end(&running, &ada, &id).await, TaskStatus::Cancelled);
}

/// TSK-D18: tasks that wait cause no wake-ups. Whatever wakes a task polls its function too.
#[tokio::test(start_paused = true)]
async fn ten_thousand_waiting_tasks_cause_no_wake_ups() {
    const TASKS: usize = 10_000;
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let wait = Tool::new("wait", move || {
        let polls = Arc::clone(&counted);
        std::future::poll_fn(move |_| {
            polls.fetch_add(1, Ordering::SeqCst);
            Poll::<()>::Pending
        })
    });
    let limits = TaskLimits { per_owner: TASKS, ..TaskLimits::default() };
    let running = serve(Tasks::new().limits(limits).running(TASKS), wait).await;
    let ada = client(None);
    for _ in 0..TASKS {
        start(&running, &ada, "wait").await.unwrap();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = polls.load(Ordering::SeqCst);
    assert!(begun >= TASKS, "{begun}");
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert_eq!(polls.load(Ordering::SeqCst), begun);
}

/// TSK-26: the methods of the experiment do not exist in the envelope era.
#[tokio::test]
async fn the_extension_has_neither_results_nor_lists() {
    let running = running(Tasks::new()).await;
    for method in [Method::TasksResult, Method::TasksList] {
        let error = about(&running, &client(None), method, "any").await.unwrap_err().to_wire("");
        assert_eq!(error.code, ErrorCode::METHOD_NOT_FOUND, "{method:?}");
    }
}
