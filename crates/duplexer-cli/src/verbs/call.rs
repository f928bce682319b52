//! `duplexer call`: calls a tool.

use duplexer::Json;
use duplexer::client::{ClientError, Started};
use duplexer::error::CallError;
use duplexer::types::json::JsonObject;
use duplexer::types::task::CreateTaskResult;
use duplexer::types::tool::{CallToolResult, TaskSupport};
use duplexer::types::version::Era;
use duplexer::types::wire::result_type;

use super::{Kind, unknown, unreadable};
use crate::arguments::arguments;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::show;
use crate::terminal::print;
use crate::text::Text;

/// What becomes of a call that the server runs as a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It is waited for.
    Wait,
    /// Its id is printed.
    Detach,
}

/// A tool and its arguments.
pub(super) struct Call {
    tool: String,
    arguments: JsonObject,
    ending: Ending,
}

impl Call {
    pub(super) fn parse(words: &[String], ending: Ending) -> Result<Self, Failure> {
        let (tool, rest) = words.split_first().ok_or_else(|| {
            Failure::usage("which tool? Name it behind the server; `duplexer list` shows which there are")
        })?;
        Ok(Self { tool: tool.clone(), arguments: arguments(rest)?, ending })
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw = match self.start(session).await {
            Ok(Answer::Result(raw)) => raw,
            Ok(Answer::Task(id)) if self.ending == Ending::Detach => return output.text(&Text::plain(id)),
            Ok(Answer::Task(id)) => session.wait_for_task(&id).await?,
            Err(error) => return Err(unknown(session, error, Kind::Tools, &self.tool).await),
        };
        self.finish(&raw, output)
    }

    /// Calls the tool. The server decides whether it becomes a task; in 2025-11-25 the client does.
    async fn start(&self, session: &Session) -> Result<Answer, ClientError> {
        let client = &session.client;
        let call = client.call_tool(&self.tool, self.arguments.clone());
        let asks = client.era() == Era::Handshake && client.server_capabilities().tasks.is_some();
        if asks && self.runs_as_task(session).await? {
            return Ok(match call.started().await? {
                Started::Task(task) => Answer::Task(task.id().to_owned()),
                Started::Done(result) => Answer::Result(Json::encode(&result).map_err(CallError::Encode)?),
                _ => return Err(CallError::Closed.into()),
            });
        }
        match session.ask(call).await {
            Ok(raw) => Ok(Answer::Result(raw)),
            Err(ClientError::ResultType { result_type, result, .. }) if result_type == result_type::TASK => {
                let created: CreateTaskResult = result.decode().map_err(CallError::Unexpected)?;
                Ok(Answer::Task(created.task.task_id))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether the call has to ask for a task: because the tool requires it, or for `--detach`.
    async fn runs_as_task(&self, session: &Session) -> Result<bool, ClientError> {
        let tools = session.client.all_tools().await?;
        let tool = tools.iter().find(|tool| tool.name == self.tool);
        Ok(match tool.and_then(|tool| tool.execution.as_ref()?.task_support.as_ref()) {
            Some(TaskSupport::Required) => true,
            Some(TaskSupport::Optional) => self.ending == Ending::Detach,
            _ => false,
        })
    }

    fn finish(&self, raw: &Json, output: &Output) -> Result<(), Failure> {
        let result: CallToolResult = raw.decode().map_err(unreadable)?;
        if output.is_json() {
            output.json(raw)?;
        } else {
            show(&result, output)?;
        }
        if result.is_error == Some(true) { Err(self.failed()) } else { Ok(()) }
    }

    /// The tool has reported its error; adds a hint for a common cause.
    fn failed(&self) -> Failure {
        let failure = Failure::new(Exit::Tool, format!("the tool `{}` failed", self.tool));
        match self.arguments.iter().find_map(|(name, value)| Some((name, meant(value)?))) {
            Some((name, value)) => {
                failure.hint(&format!("{name} was sent as text, {name}:={value} sends it as JSON"))
            }
            None => failure,
        }
    }
}

/// What a call is answered with.
enum Answer {
    Result(Json),
    /// The id of a task.
    Task(String),
}

/// Prints the result. With `--output` its binary parts go into files; without any the text does.
pub(super) fn show(result: &CallToolResult, output: &Output) -> Result<(), Failure> {
    let parts: Vec<_> = result.content.iter().filter_map(show::binary).collect();
    let saved = output.save(&parts)?;
    let text = show::tool_result(result, &saved);
    if saved.is_empty() {
        output.text(&text)?;
    } else {
        print(&text);
    }
    Ok(())
}

/// Returns the text of a string argument that is valid JSON of another type.
fn meant(value: &Json) -> Option<String> {
    let text: String = value.decode().ok()?;
    let value = Json::parse(&text).ok()?;
    (!value.as_str().starts_with('"')).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_sent_as_text_is_pointed_out() {
        let failed = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Call::parse(&words, Ending::Wait).unwrap().failed().to_string()
        };
        assert_eq!(failed(&["add", "a:=1"]), "the tool `add` failed");
        assert_eq!(failed(&["add", "a=x"]), "the tool `add` failed");
        assert_eq!(
            failed(&["add", "a=1"]),
            "the tool `add` failed; a was sent as text, a:=1 sends it as JSON"
        );
    }
}
