//! Checks of `sampling/createMessage` params before they are sent.

use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::sampling::{CreateMessageParams, SamplingContent, SamplingMessage};

use crate::kernel::connection::{ClientCapability, Connection};
use duplexer_core::error::CallError;

/// Checks that the client supports tools if the params hold any, and that tool results answer tool uses.
pub(super) fn check_sampling(connection: &Connection, params: &CreateMessageParams) -> Result<(), CallError> {
    let refuse =
        |text: &'static str| Err(CallError::Unsupported(ErrorObject::new(ErrorCode::INVALID_PARAMS, text)));
    let wants_tools = params.tools.is_some() || params.tool_choice.is_some();
    if wants_tools && !connection.client().supports(&ClientCapability::SamplingTools) {
        return refuse("Client does not support sampling tools capability");
    }
    match check_tool_results(&params.messages) {
        Ok(()) => Ok(()),
        Err(text) => refuse(text),
    }
}

/// Checks the last message against the one before it.
fn check_tool_results(messages: &[SamplingMessage]) -> Result<(), &'static str> {
    let Some((last, earlier)) = messages.split_last() else { return Ok(()) };
    let answered = ids(last, |block| match block {
        SamplingContent::ToolResult(result) => Some(&result.tool_use_id),
        _ => None,
    });
    let used = earlier.last().map(|previous| {
        ids(previous, |block| match block {
            SamplingContent::ToolUse(tool) => Some(&tool.id),
            _ => None,
        })
    });
    if answered.is_empty() {
        let unanswered = used.is_some_and(|used| !used.is_empty());
        return if unanswered { Err("every tool use must be answered with a tool result") } else { Ok(()) };
    }
    if answered.len() != last.content.0.len() {
        return Err("a message with tool results must hold nothing else");
    }
    match used {
        None => Err("tool results need a previous message with tool uses"),
        Some(used) if used.is_empty() => Err("tool results do not follow a message with tool uses"),
        Some(used) if used != answered => {
            Err("tool results do not match the tool uses of the previous message")
        }
        Some(_) => Ok(()),
    }
}

fn ids<'a>(
    message: &'a SamplingMessage,
    id: impl Fn(&'a SamplingContent) -> Option<&'a String>,
) -> Vec<&'a String> {
    let mut ids: Vec<_> = message.content.0.iter().filter_map(id).collect();
    ids.sort_unstable();
    ids
}

#[cfg(test)]
mod tests {
    use duplexer_types::json::Json;
    use duplexer_types::sampling::{Blocks, ToolResultContent, ToolUseContent};

    use super::*;

    fn tool_use(id: &str) -> SamplingContent {
        SamplingContent::ToolUse(ToolUseContent::new(id, "tool", Json::object()))
    }

    fn tool_result(id: &str) -> SamplingContent {
        SamplingContent::ToolResult(ToolResultContent::new(id, Vec::new()))
    }

    /// CONN-13, P-SAM-2: tool results are the whole message, follow the uses they answer, one for each.
    #[test]
    fn tool_results_answer_the_tool_uses_before_them() {
        let check = |messages: Vec<SamplingMessage>, ok: bool| {
            assert_eq!(check_tool_results(&messages).is_ok(), ok, "{messages:?}");
        };
        let text = || SamplingMessage::user("hello");
        let uses =
            |ids: &[&str]| SamplingMessage::assistant(Blocks(ids.iter().map(|id| tool_use(id)).collect()));
        let results =
            |ids: &[&str]| SamplingMessage::user(Blocks(ids.iter().map(|id| tool_result(id)).collect()));
        check(vec![], true);
        check(vec![text()], true);
        check(vec![text(), uses(&["a", "b"]), results(&["b", "a"])], true);
        check(vec![results(&["a"])], false);
        check(vec![text(), results(&["a"])], false);
        check(vec![uses(&["a", "b"]), results(&["a"])], false);
        check(vec![uses(&["a"]), results(&["b"])], false);
        check(vec![uses(&["a"]), text()], false);
        check(
            vec![
                uses(&["a"]),
                SamplingMessage::user(Blocks(vec![tool_result("a"), SamplingContent::text("x")])),
            ],
            false,
        );
    }
}
