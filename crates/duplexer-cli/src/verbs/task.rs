//! `duplexer task`: shows a task, waits for it, cancels it, or lists those of 2025-11-25.

use duplexer::types::json::JsonObject;
use duplexer::types::methods::{TasksCancel, TasksGet};
use duplexer::types::task::{CancelTaskParams, DetailedTask, GetTaskParams, GetTaskResult, ListTasksResult};
use duplexer::types::tool::CallToolResult;

use super::{call, no_more, unreadable};
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::text::{Style, Text, lines};

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Get,
    Wait,
    Cancel,
    List,
}

/// An action and the task it is about.
pub(super) struct Task {
    action: Action,
    id: String,
}

impl Task {
    pub(super) fn parse(words: &[String], action: Action) -> Result<Self, Failure> {
        if action == Action::List {
            no_more(words)?;
            return Ok(Self { action, id: String::new() });
        }
        let (id, rest) = words.split_first().ok_or_else(|| {
            Failure::usage("which task? Give its id behind the server; `duplexer call --detach` prints it")
        })?;
        no_more(rest)?;
        Ok(Self { action, id: id.clone() })
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        match self.action {
            Action::Get => self.get(session, output).await,
            Action::Wait => self.wait(session, output).await,
            Action::Cancel => self.cancel(session, output).await,
            Action::List => list(session, output).await,
        }
    }

    async fn get(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw =
            session.ask(session.client.request::<TasksGet>(GetTaskParams::new(self.id.as_str()))).await?;
        if output.is_json() {
            return output.json(&raw);
        }
        let state: GetTaskResult = raw.decode().map_err(unreadable)?;
        output.text(&described(&state.task))
    }

    /// Ctrl-C leaves the task alone: another command has started it.
    async fn wait(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw = session.client.task(self.id.as_str()).raw_result().await;
        session.terminal.clear();
        let raw = raw?;
        let result: CallToolResult = raw.decode().map_err(unreadable)?;
        if output.is_json() {
            output.json(&raw)?;
        } else {
            call::show(&result, output)?;
        }
        match result.is_error {
            Some(true) => Err(Failure::new(Exit::Tool, "the tool failed")),
            _ => Ok(()),
        }
    }

    async fn cancel(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let params = CancelTaskParams::new(self.id.as_str());
        let raw = session.ask(session.client.request::<TasksCancel>(params)).await?;
        if output.is_json() {
            return output.json(&raw);
        }
        output.text(&Text::plain("The server was asked to cancel the task."))
    }
}

async fn list(session: &Session, output: &Output) -> Result<(), Failure> {
    let mut cursor = None;
    let mut shown = Vec::new();
    loop {
        let mut call = session.client.list_tasks();
        if let Some(cursor) = cursor.take() {
            call = call.cursor(cursor);
        }
        let raw = session.ask(call).await?;
        if output.is_json() {
            output.json(&raw)?;
        }
        let page: ListTasksResult = raw.decode().map_err(unreadable)?;
        shown.extend(page.tasks.into_iter().map(|task| described(&DetailedTask::new(task))));
        match page.next_cursor {
            Some(next) => cursor = Some(next),
            None => break,
        }
    }
    match (output.is_json(), shown.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => output.text(&Text::plain("There are no tasks.")),
        (false, false) => output.text(&lines(shown)),
    }
}

/// Describes a task in a few lines.
fn described(state: &DetailedTask) -> Text {
    let task = &state.task;
    let mut first =
        Text::new().then(Style::Name, &task.task_id).then(Style::Plain, format!(" {}", task.status));
    if let Some(message) = &task.status_message {
        first.push(Style::Plain, &format!(": {message}"));
    }
    let times = format!("  created {}, changed {}", task.created_at, task.last_updated_at);
    let mut all = vec![first, Text::new().then(Style::Faint, times)];
    for (key, _) in state.input_requests.iter().flat_map(JsonObject::iter) {
        all.push(Text::plain(format!("  asks `{key}`; `duplexer task wait` answers")));
    }
    lines(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use duplexer::types::task::{self, TaskStatus};

    #[test]
    fn a_task_is_described_with_its_questions() {
        let task =
            task::Task::new("t-1", TaskStatus::InputRequired, "then", "now", 5_u64).status_message("asking");
        let requests = [("sure".to_owned(), duplexer::types::input::InputRequest::ListRoots)];
        let state = DetailedTask::input_required(task, requests.into_iter().collect());
        assert_eq!(
            described(&state).as_str(),
            "t-1 input_required: asking\n  created then, changed now\n  asks `sure`; `duplexer task wait` answers"
        );
    }

    #[test]
    fn an_action_needs_one_task_and_a_list_none() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert!(Task::parse(&words(&["t"]), Action::Get).is_ok());
        assert!(Task::parse(&words(&[]), Action::Wait).is_err());
        assert!(Task::parse(&words(&["t", "u"]), Action::Cancel).is_err());
        assert!(Task::parse(&words(&["t"]), Action::List).is_err());
    }
}
