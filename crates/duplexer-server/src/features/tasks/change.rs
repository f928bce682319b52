//! The state machine of tasks: the only place that changes a record. Pure: it reads no clock and no store.

use duplexer_core::run::RunId;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::input::InputResponse;
use duplexer_types::json::{Json, JsonObject};

use super::limits::TaskLimits;
use super::record::{TaskOutcome, TaskQuestion, TaskRecord};
use super::time::UnixMillis;
use crate::features::input_rounds::fits;

/// A change of a task.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// The work asks its client.
    Ask { key: String, request: Json, digest: String },
    /// The client answers questions.
    Answer(JsonObject<InputResponse>),
    /// The work reports its status.
    Message(String),
    /// The client cancels, and the work is to end.
    RequestCancel,
    /// The work goes on elsewhere, until a deadline.
    HandOver(UnixMillis),
    /// The node ends; another one can take the task over at once.
    Release,
    /// The work has ended, with its last status text.
    End { outcome: TaskOutcome, message: Option<String> },
}

/// Whose change it is. The run that works on a task must still hold its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Author {
    /// The client, or the program that finishes work that was handed over.
    Anyone,
    /// The run that works on the task, in this epoch.
    Run(RunId, u64),
}

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    /// The record has changed.
    Changed,
    /// There was nothing to change.
    Unchanged,
}

/// Why a change was refused.
#[derive(Debug)]
pub(crate) enum Refused {
    /// The task has ended. Nothing leaves a final state.
    Final,
    /// Another run has taken the task over.
    Fenced,
    /// The question or answer exceeds a limit.
    Limit(&'static str),
}

impl TaskRecord {
    /// Applies a change. The record stays as it is if the change is refused.
    pub(crate) fn apply(
        &mut self,
        change: &Change,
        author: Author,
        now: UnixMillis,
        limits: &TaskLimits,
    ) -> Result<Applied, Refused> {
        if self.permits(change, author)? == Applied::Unchanged {
            return Ok(Applied::Unchanged);
        }
        let applied = self.change(change, now, limits)?;
        if applied == Applied::Changed {
            self.times.updated = now.max(self.times.updated);
            self.revision += 1;
        }
        Ok(applied)
    }

    /// Checks whether the task can still be changed by this author. [`Applied::Unchanged`] if it has ended, and the change is
    /// accepted without an effect.
    pub(crate) fn permits(&self, change: &Change, author: Author) -> Result<Applied, Refused> {
        if let Author::Run(run, epoch) = author
            && (self.lease.epoch != epoch || self.lease.run != Some(run))
        {
            return Err(if self.is_final() { Refused::Final } else { Refused::Fenced });
        }
        match change {
            _ if !self.is_final() => Ok(Applied::Changed),
            Change::Answer(_) => Ok(Applied::Unchanged),
            _ => Err(Refused::Final),
        }
    }

    fn change(&mut self, change: &Change, now: UnixMillis, limits: &TaskLimits) -> Result<Applied, Refused> {
        match change {
            Change::Ask { key, request, digest } => self.ask(key, request, digest, limits),
            Change::Answer(answers) => self.answer(answers, limits),
            Change::Message(text) => {
                if self.state.message.as_deref() == Some(text) {
                    return Ok(Applied::Unchanged);
                }
                self.state.message = Some(text.clone());
                Ok(Applied::Changed)
            }
            Change::RequestCancel => {
                if self.lease.run.is_none() {
                    // The work was handed over: this server cannot stop it, and its result is no longer needed.
                    self.end(TaskOutcome::Cancelled, now);
                } else if self.state.cancel_requested {
                    return Ok(Applied::Unchanged);
                }
                self.state.cancel_requested = true;
                Ok(Applied::Changed)
            }
            Change::HandOver(deadline) => {
                self.lease.run = None;
                self.lease.handed_over = true;
                self.lease.until = *deadline;
                Ok(Applied::Changed)
            }
            Change::Release => {
                self.lease.run = None;
                self.lease.until = UnixMillis(0);
                Ok(Applied::Changed)
            }
            Change::End { outcome, message } => {
                if message.is_some() {
                    self.state.message.clone_from(message);
                }
                self.end(bounded(outcome.clone(), limits), now);
                Ok(Applied::Changed)
            }
        }
    }

    fn end(&mut self, outcome: TaskOutcome, now: UnixMillis) {
        self.state.outcome = Some(outcome);
        self.times.ended = Some(now.max(self.times.created));
        self.lease.run = None;
    }

    /// Adds a question, unless the same one has been asked before. A key that was used for another question gets a number.
    fn ask(
        &mut self,
        key: &str,
        request: &Json,
        digest: &str,
        limits: &TaskLimits,
    ) -> Result<Applied, Refused> {
        if self.question(key, digest).is_some() {
            return Ok(Applied::Unchanged);
        }
        if self.open_questions().count() >= limits.open_questions {
            return Err(Refused::Limit("the task has too many open questions"));
        }
        if self.state.questions.len() >= limits.questions {
            return Err(Refused::Limit("the task has asked too many questions"));
        }
        let is_taken = |key: &str| self.state.questions.iter().any(|asked| asked.key == key);
        let numbered = (2..).map(|number: u32| format!("{key}#{number}"));
        let free = std::iter::once(key.to_owned()).chain(numbered).find(|key| !is_taken(key));
        self.state.questions.push(TaskQuestion {
            key: free.unwrap_or_default(),
            asked_as: key.to_owned(),
            request: request.clone(),
            digest: digest.to_owned(),
            answer: None,
        });
        Ok(Applied::Changed)
    }

    /// Returns the question that was asked with this key and digest.
    pub(crate) fn question(&self, key: &str, digest: &str) -> Option<&TaskQuestion> {
        self.state.questions.iter().find(|asked| asked.asked_as == key && asked.digest == digest)
    }

    /// Stores the answers to open questions. Answers to other keys, and those of the wrong kind, are ignored.
    fn answer(
        &mut self,
        answers: &JsonObject<InputResponse>,
        limits: &TaskLimits,
    ) -> Result<Applied, Refused> {
        let mut applied = Applied::Unchanged;
        for (key, answer) in answers.iter() {
            let open = |asked: &&mut TaskQuestion| asked.key == key && asked.answer.is_none();
            let Some(question) = self.state.questions.iter_mut().find(open) else { continue };
            if !question.request.decode().is_ok_and(|request| fits(&request, answer)) {
                continue;
            }
            let Ok(answer) = Json::encode(answer) else { continue };
            if answer.as_str().len() > limits.answer_bytes {
                return Err(Refused::Limit("the answer is too large"));
            }
            question.answer = Some(answer);
            applied = Applied::Changed;
        }
        Ok(applied)
    }
}

/// Replaces a result that is too large to be kept by a tool error that says so.
fn bounded(outcome: TaskOutcome, limits: &TaskLimits) -> TaskOutcome {
    match outcome {
        TaskOutcome::Result { result, .. } if result.as_str().len() > limits.result_bytes => {
            super::view::tool_error(&format!(
                "The result has {} bytes, and a task keeps at most {}.",
                result.as_str().len(),
                limits.result_bytes
            ))
        }
        TaskOutcome::Error(mut error) => {
            error.data = error.data.filter(|data| data.as_str().len() <= limits.result_bytes);
            TaskOutcome::Error(error)
        }
        other => other,
    }
}

/// Returns the outcome of work that is not continued.
pub(crate) fn lost(text: &'static str) -> TaskOutcome {
    TaskOutcome::Error(ErrorObject::new(ErrorCode::INTERNAL_ERROR, text))
}

#[cfg(test)]
pub(crate) mod tests;
