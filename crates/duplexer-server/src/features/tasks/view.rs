//! Views: a record in the words of a revision. The record has one state; each revision names it in its own way.

use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::task::{DetailedTask, Task, TaskStatus};
use duplexer_types::tool::CallToolResult;
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ResultMeta, result_type, write_result};

use super::record::{TaskId, TaskOutcome, TaskRecord};
use super::time::{UnixMillis, millis};
use crate::kernel::outcome::Outcome;

/// Returns the state of a task for clients of `era`. `id` is that of the record: a caller that has it already need not copy it.
pub(crate) fn task(
    record: &TaskRecord,
    id: TaskId,
    era: Era,
    now: impl FnOnce() -> UnixMillis,
    poll_interval: Duration,
) -> Task {
    let times = &record.times;
    // The time to live grows while the task runs, so that no running task looks expired.
    let lived = times.ended.unwrap_or_else(now).since(times.created);
    let ttl = millis(lived).saturating_add(times.retention);
    let (created, updated) = (times.created.rfc3339(), times.updated.rfc3339());
    let mut task = Task::new(id, status(record, era), created, updated, ttl);
    task.status_message.clone_from(&record.state.message);
    if let (None, Some(TaskOutcome::Error(error))) = (&task.status_message, &record.state.outcome) {
        task.status_message = Some(error.message.clone().into_owned());
    }
    if !record.is_final() {
        task.poll_interval_ms = Some(millis(poll_interval).max(1));
    }
    task
}

/// A tool that reports a failure has completed for the extension, and failed for the experiment of 2025-11-25.
fn status(record: &TaskRecord, era: Era) -> TaskStatus {
    match (&record.state.outcome, era) {
        (Some(TaskOutcome::Result { is_error: true, .. }), Era::Handshake) => TaskStatus::Failed,
        _ => record.status(),
    }
}

/// Returns the task with its questions, result or error.
pub(crate) fn detailed(
    record: &TaskRecord,
    id: TaskId,
    era: Era,
    now: impl FnOnce() -> UnixMillis,
    poll_interval: Duration,
) -> DetailedTask {
    let mut detailed = DetailedTask::new(task(record, id, era, now, poll_interval));
    match &record.state.outcome {
        Some(TaskOutcome::Result { result, .. }) => detailed.result = Some(result.clone()),
        Some(TaskOutcome::Error(error)) => detailed.error = Some(error.clone()),
        Some(TaskOutcome::Cancelled) => {}
        None => {
            let open = record.open_questions();
            let open = open.filter_map(|asked| Some((asked.key.clone(), asked.request.decode().ok()?)));
            let open: JsonObject<_> = open.collect();
            detailed.input_requests = (!open.is_empty()).then_some(open);
        }
    }
    detailed
}

/// Returns what `tasks/result` answers for an ended task (2025-11-25); `None` if it has not ended.
pub(crate) fn payload(record: &TaskRecord) -> Option<Result<Outcome, McpError>> {
    Some(match record.state.outcome.as_ref()? {
        TaskOutcome::Result { result, .. } => {
            result.decode::<CallToolResult>().map_err(McpError::internal).map(|mut result| {
                let meta = result.meta.take().unwrap_or_default();
                Outcome::of(result.meta(meta.with(key::RELATED_TASK, related(record))))
            })
        }
        TaskOutcome::Error(error) => Err(McpError::Rpc(error.clone())),
        TaskOutcome::Cancelled => Err(McpError::new(ErrorCode::INTERNAL_ERROR, "The task was cancelled")),
    })
}

/// Returns the value that marks messages as belonging to a task (2025-11-25).
pub(crate) fn related(record: &TaskRecord) -> Json {
    related_to(record.id.as_str())
}

pub(crate) fn related_to(id: &str) -> Json {
    Json::encode(&std::collections::BTreeMap::from([("taskId", id)])).unwrap_or_else(|_| Json::object())
}

/// Converts the outcome of a call into what the record keeps.
pub(crate) fn outcome(ended: Result<Outcome, McpError>, method: &str) -> TaskOutcome {
    let outcome = match ended {
        Ok(outcome) => outcome,
        Err(error) => return TaskOutcome::Error(error.to_wire(method)),
    };
    if outcome.result_type() != result_type::COMPLETE {
        let error =
            McpError::internal("a task can end only with a result; what it asks, it asks with `elicit`");
        return TaskOutcome::Error(error.to_wire(method));
    }
    let is_error = outcome.is_error();
    match outcome.into_typed::<CallToolResult>() {
        Ok(result) => kept(&result, is_error),
        Err(other) => match Json::parse(other.text()) {
            Ok(result) => TaskOutcome::Result { result, is_error },
            Err(error) => TaskOutcome::Error(McpError::internal(error).to_wire(method)),
        },
    }
}

/// Returns the outcome of a failure that the tool itself reports.
pub(crate) fn tool_error(text: &str) -> TaskOutcome {
    kept(&CallToolResult::error(text), true)
}

/// Writes a result as the newest revision has it, which defines every member.
fn kept(result: &CallToolResult, is_error: bool) -> TaskOutcome {
    let mut text = Vec::new();
    let written = write_result(&mut text, result, ProtocolVersion::LATEST_ENVELOPE, ResultMeta::default());
    match written.and_then(|()| Json::parse(&String::from_utf8_lossy(&text))) {
        Ok(result) => TaskOutcome::Result { result, is_error },
        Err(error) => {
            tracing::error!(%error, "the result of a task cannot be written");
            TaskOutcome::Error(ErrorObject::internal())
        }
    }
}
