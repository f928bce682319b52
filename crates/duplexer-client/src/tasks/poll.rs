//! Waits for the end of a task: polls at the interval of the server, and answers each question once.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use duplexer_types::error::ErrorCode;
use duplexer_types::input::InputResponse;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::methods::{Method, TasksResult, TasksUpdate};
use duplexer_types::task::{
    CancelTaskParams, DetailedTask, GetTaskParams, Task, TaskStatus, UpdateTaskParams,
};
use duplexer_types::version::Era;
use tokio::time::sleep;

use super::{TaskHandle, TaskOptions};
use crate::input::{PendingResponse, run_callback};
use crate::{Client, ClientError};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{CallError, McpError};

const SHORTEST: Duration = Duration::from_millis(50);
const DEFAULT: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(60);
/// Failed polls in a row that are tried again.
const MAX_FAILURES: u32 = 5;
/// Time of the cancellation of a task whose call was dropped.
const CANCEL_TIME: Duration = Duration::from_secs(10);

pub(super) struct Polling<'a> {
    handle: TaskHandle,
    options: &'a TaskOptions,
    /// Keys of questions that were answered. A key names one question for the whole life of a task.
    answered: HashSet<String>,
    first_wait: Option<Duration>,
}

impl<'a> Polling<'a> {
    pub(super) fn new(client: &Client, id: &str, options: &'a TaskOptions) -> Self {
        let handle = TaskHandle::new(client, id.to_owned());
        Self { handle, options, answered: HashSet::new(), first_wait: None }
    }

    /// Begins with the state of the creation: the first poll waits for the interval.
    pub(super) fn started(mut self, task: &Task) -> Self {
        if let Some(callback) = &self.options.on_status {
            callback(task);
        }
        self.first_wait = Some(interval(task));
        self
    }

    /// Polls until the task has ended, and returns the text of its result.
    // Boxed here, because a future is compiled once more in every crate that awaits it.
    pub(super) fn finish(self) -> BoxFuture<'a, Result<Json, ClientError>> {
        Box::pin(self.poll())
    }

    async fn poll(mut self) -> Result<Json, ClientError> {
        if let Some(wait) = self.first_wait.take() {
            sleep(wait).await;
        }
        let mut failures = 0;
        loop {
            let now = match self.handle.status().await {
                Ok(now) => now,
                Err(error) if is_temporary(&error) && failures < MAX_FAILURES => {
                    failures += 1;
                    sleep(DEFAULT * failures).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            failures = 0;
            if let Some(callback) = &self.options.on_status {
                callback(&now.task);
            }
            let wait = interval(&now.task);
            match self.handle.client.era() {
                Era::Envelope => {
                    if let Some(ended) = self.step(now).await? {
                        return Ok(ended);
                    }
                }
                Era::Handshake => {
                    if let Some(ended) = self.experiment_step(&now.task).await? {
                        return Ok(ended);
                    }
                }
            }
            sleep(wait).await;
        }
    }

    /// Handles one state of the extension. Returns the result if the task has ended with one.
    async fn step(&mut self, now: DetailedTask) -> Result<Option<Json>, ClientError> {
        let DetailedTask { task, input_requests, result, error, .. } = now;
        match (&task.status, result, error) {
            (TaskStatus::Completed, Some(result), _) => Ok(Some(result)),
            (TaskStatus::Failed, _, Some(error)) => Err(CallError::Rpc(error).into()),
            (TaskStatus::Cancelled, ..) => Err(ClientError::TaskCancelled(task.task_id)),
            (TaskStatus::Completed | TaskStatus::Failed, ..) => {
                let text = format!("the task is {} without its outcome", task.status);
                Err(CallError::Unexpected(serde::de::Error::custom(text)).into())
            }
            _ => {
                let mut pending = Vec::new();
                let version = self.handle.client.0.session.version;
                for (key, request) in input_requests.unwrap_or_default() {
                    if self.answered.insert(key.clone()) {
                        let callbacks = self.handle.client.0.callbacks.clone();
                        pending.push((key, run_callback(callbacks, request, version)));
                    }
                }
                self.answer(pending).await?;
                Ok(None)
            }
        }
    }

    /// Asks all questions together, and sends each answer when it is there. A question that cannot be answered cancels the task.
    async fn answer(&self, mut pending: Vec<(String, PendingResponse)>) -> Result<(), ClientError> {
        while !pending.is_empty() {
            let (key, answer) = next(&mut pending).await;
            match answer {
                Ok(answer) => {
                    let answers: JsonObject<InputResponse> = JsonObject::new().with(key, answer);
                    let params = UpdateTaskParams::new(self.handle.id.as_str(), answers);
                    let sent = self.handle.client.request::<TasksUpdate>(params).await;
                    sent.map_err(|error| known(&self.handle.id, error))?;
                }
                Err(cause) => {
                    // The error of the question counts, whatever becomes of the cancellation.
                    let _ = self.handle.cancel().await;
                    return Err(ClientError::Unanswered { key, cause });
                }
            }
        }
        Ok(())
    }

    /// Handles one state of the experiment of 2025-11-25: the request for the result waits for the end, and its stream carries
    /// the questions.
    async fn experiment_step(&self, task: &Task) -> Result<Option<Json>, ClientError> {
        if task.status == TaskStatus::Cancelled {
            return Err(ClientError::TaskCancelled(task.task_id.clone()));
        }
        if !task.status.is_final() && task.status != TaskStatus::InputRequired {
            return Ok(None);
        }
        let params = GetTaskParams::new(task.task_id.as_str());
        let result = self.handle.client.request::<TasksResult>(params).no_timeout().raw().await;
        result.map(Some).map_err(|error| known(&self.handle.id, error))
    }
}

/// Waits for the first response, and removes its question.
async fn next(pending: &mut Vec<(String, PendingResponse)>) -> (String, Result<InputResponse, McpError>) {
    std::future::poll_fn(|cx| {
        for at in 0..pending.len() {
            if let Some((_, future)) = pending.get_mut(at)
                && let Poll::Ready(answer) = future.as_mut().poll(cx)
            {
                let (key, _) = pending.swap_remove(at);
                return Poll::Ready((key, answer));
            }
        }
        Poll::Pending
    })
    .await
}

/// Returns when to poll next: at the interval of the server, within bounds, and not together with all other clients.
pub(super) fn interval(task: &Task) -> Duration {
    let asked = task.poll_interval_ms.map_or(DEFAULT, Duration::from_millis).clamp(SHORTEST, LONGEST);
    let tenths = RandomState::new().hash_one(&task.task_id) % 201;
    asked.mul_f64(0.9 + 0.001 * f64::from(u32::try_from(tenths).unwrap_or_default()))
}

fn is_temporary(error: &ClientError) -> bool {
    matches!(error, ClientError::Call(CallError::Timeout(_))) || error.is_retryable()
}

/// Recognises the error of a server that does not know the task.
pub(super) fn known(id: &str, error: ClientError) -> ClientError {
    match error {
        ClientError::Call(CallError::Rpc(error)) if error.code == ErrorCode::INVALID_PARAMS => {
            ClientError::UnknownTask { id: id.to_owned(), reason: error.message.into_owned() }
        }
        other => other,
    }
}

/// Cancels a task when the call that waits for it is dropped.
pub(super) struct CancelOnDrop {
    client: Client,
    id: Option<String>,
}

impl CancelOnDrop {
    pub(super) fn new(client: &Client, id: &str) -> Self {
        Self { client: client.clone(), id: Some(id.to_owned()) }
    }

    pub(super) fn disarm(&mut self) {
        self.id = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let inner = &self.client.0;
        let request =
            inner.session.envelope.attach(Method::TasksCancel, &CancelTaskParams::new(id), JsonObject::new());
        let Ok(mut request) = request else { return };
        request.options.timeout = Some(CANCEL_TIME);
        // Without the client: a task of the session must not keep the session alive.
        let peer = Arc::clone(&inner.peer);
        inner.resources.spawn(async move {
            if let Err(error) = peer.request(request).await {
                tracing::debug!(%error, "a task whose call was dropped could not be cancelled");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TSK-42, TSK-D21: the interval of the server, within bounds and a tenth of itself; a second without one.
    #[test]
    fn a_client_polls_at_the_interval_of_the_server_within_bounds() {
        let check = |asked: Option<u64>, expected: u64| {
            let mut task = Task::new("t", TaskStatus::Working, "", "", 1);
            task.poll_interval_ms = asked;
            for _ in 0..100 {
                let millis = interval(&task).as_millis();
                let expected = u128::from(expected);
                assert!((expected * 9 / 10..=expected * 11 / 10).contains(&millis), "{asked:?}: {millis} ms");
            }
        };
        check(None, 1000);
        check(Some(300), 300);
        check(Some(0), 50);
        check(Some(u64::MAX), 60_000);
    }
}
