//! What middleware for tools reads of a message: the name of the tool, before the catalog has looked it up.

use std::borrow::Cow;

use duplexer_core::dispatch::Message;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::first_text;
use duplexer_types::methods::Method;

/// Returns the name of the tool that a message calls, as the client wrote it. The tool need not exist.
pub(super) fn tool_name(message: &Message) -> Option<Cow<'_, str>> {
    let is_call = message.known() == Some(Method::ToolsCall);
    message.params().filter(|_| is_call).and_then(|params| first_text(params, message.meta(), "name"))
}

/// Settings by the name of a tool. There are few, so a list is quicker than a map.
#[derive(Clone, Debug)]
pub(super) struct ByTool<T>(Vec<OfTool<T>>);

#[derive(Clone, Debug)]
struct OfTool<T> {
    name: Box<str>,
    /// How the params of most calls begin.
    start: Box<str>,
    value: T,
}

impl<T> ByTool<T> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Sets the value of a tool, in place of an earlier one.
    pub(super) fn set(&mut self, tool: impl Into<String>, value: T) {
        let name = tool.into().into_boxed_str();
        let start = format!(r#"{{"name":{}"#, Json::from(&*name)).into_boxed_str();
        self.0.retain(|known| known.name != name);
        self.0.push(OfTool { name, start, value });
    }

    /// Returns the name of the tool that a message calls and its value, if it has one.
    pub(super) fn of(&self, message: &Message) -> Option<(&str, &T)> {
        if self.0.is_empty() || message.known() != Some(Method::ToolsCall) {
            return None;
        }
        let params = message.params()?;
        let starts = |tool: &&OfTool<T>| params.as_bytes().starts_with(tool.start.as_bytes());
        let found = self.0.iter().find(starts).or_else(|| {
            let name = tool_name(message)?;
            self.0.iter().find(|known| *known.name == *name)
        })?;
        Some((&found.name, &found.value))
    }
}

/// Returns whether the client decides how long a request takes.
pub(super) fn is_long_lived(message: &Message) -> bool {
    // Most requests are calls, which need no look-up.
    message.known().is_some_and(|method| method != Method::ToolsCall && method.is_long_lived())
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

    #[test]
    fn a_setting_is_found_however_the_client_writes_its_call() {
        let mut settings = ByTool::new();
        settings.set("echo", 1);
        settings.set("say \"hi\"", 2);
        settings.set("echo", 3);
        let check = |params: &str, expected: Option<i32>| {
            let message = Message::new(Method::ToolsCall.name(), Some(params.to_owned().into()));
            assert_eq!(settings.of(&message).map(|(_, value)| *value), expected, "{params}");
        };
        check(r#"{"name":"echo","arguments":{}}"#, Some(3));
        check(r#"{ "arguments":{"name":"x"}, "name" : "echo" }"#, Some(3));
        check(r#"{"name":"\u0065cho"}"#, Some(3));
        check(r#"{"name":"say \"hi\""}"#, Some(2));
        check(r#"{"name":"echo2"}"#, None);
        check(r#"{"name":"ech"}"#, None);
        check(r#"{"name":5}"#, None);
        let other = Message::new(Method::PromptsGet.name(), Some(r#"{"name":"echo"}"#.to_owned().into()));
        assert_eq!(settings.of(&other), None);
    }
}
