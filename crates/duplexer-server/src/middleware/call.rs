//! What middleware for tools reads of a message: the name of the tool, before the catalog has looked it up.

use std::borrow::Cow;

use duplexer_core::dispatch::Message;
use duplexer_types::jsonrpc::first_text;
use duplexer_types::methods::Method;

/// Returns the name of the tool that a message calls, as the client wrote it. The tool need not exist.
pub(super) fn tool_name(message: &Message) -> Option<Cow<'_, str>> {
    let is_call = message.known() == Some(Method::ToolsCall);
    message.params().filter(|_| is_call).and_then(|params| first_text(params, message.meta(), "name"))
}

/// Settings by the name of a tool. There are few, so a list is quicker than a map.
#[derive(Clone, Debug)]
pub(super) struct ByTool<T>(Vec<(Box<str>, T)>);

impl<T> ByTool<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets the value of a tool, in place of an earlier one.
    pub(super) fn set(&mut self, tool: impl Into<String>, value: T) {
        let tool = tool.into().into_boxed_str();
        self.0.retain(|(known, _)| *known != tool);
        self.0.push((tool, value));
    }

    /// Returns the value of the tool that a message calls.
    pub(super) fn of(&self, message: &Message) -> Option<&(Box<str>, T)> {
        if self.0.is_empty() {
            return None;
        }
        let name = tool_name(message)?;
        self.0.iter().find(|(known, _)| **known == *name)
    }
}

/// Returns whether the client decides how long a request takes.
pub(super) fn is_long_lived(message: &Message) -> bool {
    message.known().is_some_and(Method::is_long_lived)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_tools_have_the_name_of_a_tool() {
        let call = |method: &str, params: &str| {
            let message = Message::new(method.to_owned(), Some(params.to_owned().into()));
            tool_name(&message).map(Cow::into_owned)
        };
        let method = Method::ToolsCall.name();
        assert_eq!(call(method, r#"{"arguments":{"name":"b"},"name":"a"}"#).as_deref(), Some("a"));
        assert_eq!(call(method, r#"{"name":"\u0061"}"#).as_deref(), Some("a"));
        assert_eq!(call(method, r#"{"name":5}"#), None);
        assert_eq!(call(Method::PromptsGet.name(), r#"{"name":"a"}"#), None);
    }
}
