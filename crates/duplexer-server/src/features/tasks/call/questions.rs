//! Questions of a task to its client. The record holds question and answer, so that an answer survives the run that asked.

use duplexer_core::dispatch::{ClockPause, lock};
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::version::{Era, ProtocolVersion};
use duplexer_types::wire::{ForRevision, Shape};
use tokio::time::timeout;

use super::TaskCall;
use crate::features::tasks::change::{Author, Change};
use crate::features::tasks::record::{TaskId, TaskQuestion};

impl TaskCall {
    /// Asks the client, and waits for the answer. `directly` sends the question as a request, which tasks of 2025-11-25 do.
    pub(crate) async fn ask(
        &self,
        key: &str,
        request: &InputRequest,
        digest: String,
        directly: impl Future<Output = Result<InputResponse, McpError>>,
    ) -> Result<InputResponse, McpError> {
        self.enter_background().await;
        let Some((id, epoch)) = self.task() else { return Err(McpError::internal("the call is not a task")) };
        let shape = Shape::new(ProtocolVersion::LATEST_ENVELOPE);
        let text = Json::encode(&ForRevision(request, shape)).map_err(McpError::internal)?;
        let change = Change::Ask { key: key.to_owned(), request: text, digest: digest.clone() };
        let record = self.engine.update(&id, Author::Run(self.engine.run, epoch), &change).await?;
        let asked =
            record.question(key, &digest).ok_or_else(|| McpError::internal("the question is not stored"))?;
        if let Some(answer) = &asked.answer {
            return answer.decode().map_err(McpError::internal);
        }
        let waiting = Waiting::begin(self);
        let limit = self.engine.plan.settings.input_timeout;
        let answer = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Err(unanswered(key, "the task was cancelled")),
            answer = timeout(limit, self.answer(&id, asked, directly)) => {
                answer.unwrap_or_else(|_| Err(unanswered(key, "the client took too long")))
            }
        };
        waiting.end().await;
        answer
    }

    async fn answer(
        &self,
        id: &TaskId,
        asked: &TaskQuestion,
        directly: impl Future<Output = Result<InputResponse, McpError>>,
    ) -> Result<InputResponse, McpError> {
        if self.client.version.era() == Era::Handshake {
            let answer = directly.await?;
            let answers = JsonObject::new().with(asked.key.clone(), answer.clone());
            self.engine.update(id, Author::Anyone, &Change::Answer(answers)).await?;
            return Ok(answer);
        }
        let watch = self.engine.plan.hub.watch(id);
        loop {
            let mut changed = std::pin::pin!(watch.notified());
            changed.as_mut().enable();
            match self.engine.get(id).await {
                Ok(Some(record)) => {
                    let question = record.state.questions.iter().find(|question| question.key == asked.key);
                    if let Some(answer) = question.and_then(|question| question.answer.as_ref()) {
                        return answer.decode().map_err(McpError::internal);
                    }
                }
                // The run itself learns that its task is gone.
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, task = %id, "the store cannot be read"),
            }
            changed.await;
        }
    }
}

fn unanswered(key: &str, reason: &str) -> McpError {
    McpError::new(ErrorCode::INTERNAL_ERROR, format!("The question '{key}' was not answered: {reason}"))
}

/// Gives the permit to run back, and stops the clock, while the client is asked.
struct Waiting<'a> {
    call: &'a TaskCall,
    _clock: ClockPause,
}

impl<'a> Waiting<'a> {
    fn begin(call: &'a TaskCall) -> Self {
        let mut slot = lock(&call.run.slot);
        slot.waiting += 1;
        slot.permit = None;
        Self { call, _clock: call.run.clock.pause() }
    }

    /// Waits for the permit again, if nothing else is asked.
    async fn end(self) {
        let call = self.call;
        drop(self);
        if lock(&call.run.slot).waiting == 0 {
            call.acquire_slot().await;
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut slot = lock(&self.call.run.slot);
        slot.waiting = slot.waiting.saturating_sub(1);
    }
}
