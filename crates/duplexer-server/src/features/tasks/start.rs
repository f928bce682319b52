//! The start of a task-capable tool: directly, in its request until it becomes a task, or as a task from the beginning.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::Json;
use duplexer_types::task::{CreateTaskResult, EXTENSION, TaskMetadata};
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::{Era, feature};
use serde::Deserialize;
use tokio::time::sleep;

use super::call::{CalledTool, TaskCall};
use super::engine::{Engine, NewTask, Work};
use super::policy::{Need, Start, TaskPolicy};
use super::record::TaskQuestion;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;

/// A call of a task-capable tool.
#[derive(Clone, Copy)]
pub(crate) struct TaskStart<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a str,
    pub(crate) policy: &'a TaskPolicy,
    pub(crate) timeout: Option<Duration>,
    pub(crate) blocking: bool,
}

/// The request for a task that a call contains (2025-11-25).
#[derive(Deserialize)]
struct Requested {
    #[serde(default)]
    task: Option<TaskMetadata>,
}

/// Starts the function, within its time limit only where the engine does not apply it.
pub(crate) type Run = Box<dyn FnOnce(Context, Limit) -> Work + Send>;

/// Who applies the time limit of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The call itself.
    Call,
    /// The engine of tasks.
    Engine,
}

/// How a call may run.
enum Mode {
    Direct,
    /// The server decides whether it becomes a task.
    Offered,
    /// The client has asked for a task.
    Requested(TaskMetadata),
}

pub(crate) fn start(
    cx: Context,
    call: TaskStart<'_>,
    run: Run,
) -> BoxFuture<'static, Result<Outcome, McpError>> {
    if let Some(task) = cx.scope().task() {
        // The task is run again.
        task.set_tool(call.called());
        return run(cx, Limit::Engine);
    }
    let Some(engine) = cx.server().tasks().map(Arc::clone) else { return run(cx, Limit::Call) };
    match mode(&cx, &call) {
        Ok(Mode::Direct) => run(cx, Limit::Call),
        Ok(mode) => match Json::parse(call.arguments) {
            Ok(arguments) => {
                let (tool, called) = (call.tool.to_owned(), call.called());
                let starting = Starting { engine, tool, arguments, called };
                Box::pin(starting.start(cx, mode, run))
            }
            Err(error) => Box::pin(std::future::ready(Err(McpError::InvalidParams(error.into())))),
        },
        Err(refused) => Box::pin(std::future::ready(refused)),
    }
}

/// Decides how a call may run. Fails with the answer if it cannot.
fn mode(cx: &Context, call: &TaskStart<'_>) -> Result<Mode, Result<Outcome, McpError>> {
    let is_required = call.policy.need == Need::Required;
    let version = cx.protocol_version();
    if version.era() == Era::Envelope {
        return match cx.require_extension(EXTENSION) {
            Ok(()) => Ok(Mode::Offered),
            Err(error) if is_required => Err(Err(error)),
            Err(_) => Ok(Mode::Direct),
        };
    }
    if version.has(feature::TASK_EXPERIMENT) {
        return match cx.params::<Requested>().map_err(Err)?.task {
            Some(requested) => Ok(Mode::Requested(requested)),
            None if is_required => {
                let text = format!("The tool '{}' runs as a task only: call it with `task`", call.tool);
                Err(Err(McpError::new(ErrorCode::METHOD_NOT_FOUND, text)))
            }
            None => Ok(Mode::Direct),
        };
    }
    if is_required {
        let text =
            format!("This tool runs as a task only, and revision {version} of the protocol has no tasks.");
        return Err(Ok(Outcome::of(CallToolResult::error(text))));
    }
    Ok(Mode::Direct)
}

impl TaskStart<'_> {
    fn called(&self) -> CalledTool {
        CalledTool { policy: self.policy.clone(), timeout: self.timeout, blocking: self.blocking }
    }
}

/// A call that becomes a task, or ends before.
struct Starting {
    engine: Arc<Engine>,
    tool: String,
    arguments: Json,
    called: CalledTool,
}

impl Starting {
    async fn start(self, cx: Context, mode: Mode, run: Run) -> Result<Outcome, McpError> {
        let policy = &self.called.policy;
        let retention = match &mode {
            Mode::Requested(requested) => requested.ttl.map(Duration::from_millis),
            Mode::Direct | Mode::Offered => None,
        };
        let is_task_from_start = matches!(mode, Mode::Requested(_))
            || policy.need == Need::Required && policy.start != Start::Explicit;
        let call = TaskCall::in_request(&self.engine, &cx, self.called.clone());
        let of_call = cx.for_task(Arc::clone(&call));
        let mut work: Work = Box::pin(async move { run(of_call, Limit::Engine).await });
        let mut cancel = CancelOnDrop(Some(Arc::clone(&call)));
        if !is_task_from_start && let Some(outcome) = in_request(policy, &call, &mut work).await {
            return outcome;
        }
        let new = NewTask {
            cx: &cx,
            tool: &self.tool,
            arguments: &self.arguments,
            policy,
            answered: answered(&cx),
            retention,
        };
        // The work does not continue until the record is stored.
        let created = self.engine.create(new).await?;
        cancel.0 = None;
        call.enter(&created.record);
        let task = self.engine.task(&created.record, cx.protocol_version());
        self.engine.spawn(created, call, work);
        Ok(Outcome::of(CreateTaskResult::new(task)))
    }
}

/// Runs a call in its request until it has to become a task. Returns the outcome if it ends before.
async fn in_request(
    policy: &TaskPolicy,
    call: &TaskCall,
    work: &mut Work,
) -> Option<Result<Outcome, McpError>> {
    let patience = match policy.start {
        Start::After(Duration::ZERO) => {
            let once = |task: &mut std::task::Context<'_>| match work.as_mut().poll(task) {
                Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
                Poll::Pending => Poll::Ready(None),
            };
            return std::future::poll_fn(once).await;
        }
        Start::After(limit) => limit,
        Start::Explicit => Duration::MAX,
    };
    tokio::select! {
        biased;
        outcome = &mut *work => Some(outcome),
        () = call.requested() => None,
        () = sleep(patience) => None,
        limit = call.timed_out() => Some(Ok(Outcome::of(CallToolResult::error(super::too_long(limit))))),
    }
}

/// Returns what rounds of the call have answered, for the record.
fn answered(cx: &Context) -> Vec<TaskQuestion> {
    let answers = cx.scope().input_rounds.answers();
    let question = |(key, digest, answer): (String, String, Json)| TaskQuestion {
        key: key.clone(),
        asked_as: key,
        request: Json::null(),
        digest,
        answer: Some(answer),
    };
    answers.into_iter().map(question).collect()
}

/// Cancels the call when its request is dropped before it is a task.
struct CancelOnDrop(Option<Arc<TaskCall>>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(call) = &self.0 {
            call.cancel();
        }
    }
}
