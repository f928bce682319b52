//! `duplexer call`: calls a tool.

use duplexer::Json;
use duplexer::types::json::JsonObject;
use duplexer::types::tool::CallToolResult;

use super::{Kind, unknown, unreadable};
use crate::arguments::arguments;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::show;
use crate::terminal::print;

/// A tool and its arguments.
pub(super) struct Call {
    tool: String,
    arguments: JsonObject,
}

impl Call {
    pub(super) fn parse(words: &[String]) -> Result<Self, Failure> {
        let (tool, rest) = words.split_first().ok_or_else(|| {
            Failure::usage("which tool? Name it behind the server; `duplexer list` shows which there are")
        })?;
        Ok(Self { tool: tool.clone(), arguments: arguments(rest)? })
    }

    pub(super) async fn run(&self, session: &Session, output: &Output) -> Result<(), Failure> {
        let raw = match session.ask(session.client.call_tool(&self.tool, self.arguments.clone())).await {
            Ok(raw) => raw,
            Err(error) => return Err(unknown(session, error, Kind::Tools, &self.tool).await),
        };
        let result: CallToolResult = raw.decode().map_err(unreadable)?;
        if output.is_json() {
            output.json(&raw)?;
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

/// Prints the result. With `--output` its binary parts go into files; without any the text does.
fn show(result: &CallToolResult, output: &Output) -> Result<(), Failure> {
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
            Call::parse(&words).unwrap().failed().to_string()
        };
        assert_eq!(failed(&["add", "a:=1"]), "the tool `add` failed");
        assert_eq!(failed(&["add", "a=x"]), "the tool `add` failed");
        assert_eq!(
            failed(&["add", "a=1"]),
            "the tool `add` failed; a was sent as text, a:=1 sends it as JSON"
        );
    }
}
