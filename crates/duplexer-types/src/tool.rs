//! Tools: functions that a model can call.

use std::fmt;

use serde::de::{DeserializeOwned, Error as _};

use crate::content::Content;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum};
use crate::task::TaskMetadata;
use crate::wire::handshake::{describes_objects, is_structured};

model! {
    /// Definition of a [tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool), an item of [`ListToolsResult`].
    ///
    /// A server registers a `tool::Tool` of `duplexer-server`, which adds the function to the definition.
    ///
    /// ```
    /// use duplexer_types::tool::{ToolAnnotations, ToolDefinition};
    /// use serde_json::json;
    ///
    /// let tool = ToolDefinition::new("add", json!({"type": "object", "properties": {"a": {"type": "integer"}}}))
    ///     .description("Adds.")
    ///     .annotations(ToolAnnotations::new().read_only_hint(true));
    /// assert_eq!(tool.name, "add");
    /// ```
    pub struct ToolDefinition {
        /// Unique identifier of the tool.
        name: String = "name",
        /// JSON Schema of the arguments; its root `type` is `object`.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::object_schema))]
        input_schema: Json = "inputSchema",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
        /// Description of the tool, for the model.
        description: String = "description",
        /// JSON Schema of `structuredContent`. Before 2026-07-28 only object schemas are sent.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::schema))]
        output_schema: Json = "outputSchema" since V2025_06_18 if describes_objects,
        /// Hints about the behaviour of the tool.
        annotations: ToolAnnotations = "annotations" since V2025_03_26,
        /// Icons for user interfaces.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Execution settings, such as task support (2025-11-25).
        execution: ToolExecution = "execution" since V2025_11_25 until V2025_11_25,
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Hints about the behaviour of a [tool](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool).
    ///
    /// They are untrusted, unless the server is trusted.
    pub struct ToolAnnotations {} optional {
        /// Display name. [`ToolDefinition::title`] takes precedence.
        title: String = "title",
        /// The tool does not modify its environment. Default: false.
        read_only_hint: bool = "readOnlyHint",
        /// The tool may perform destructive updates, not only additive ones. Default: true.
        destructive_hint: bool = "destructiveHint",
        /// Repeated calls with the same arguments have no additional effect. Default: false.
        idempotent_hint: bool = "idempotentHint",
        /// The tool interacts with external entities (an "open world"). Default: true.
        open_world_hint: bool = "openWorldHint",
    }
}

model! {
    /// Execution settings of a tool ([2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#tool-level-negotiation)).
    pub struct ToolExecution {} optional {
        /// Whether calls can be augmented with a task. Default: forbidden.
        task_support: TaskSupport = "taskSupport",
    }
}

open_enum! {
    /// Whether calls of a tool can be augmented with a task
    /// ([2025-11-25](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks#tool-level-negotiation)).
    pub enum TaskSupport {
        /// Calls must not be augmented.
        Forbidden = "forbidden",
        /// The client chooses.
        Optional = "optional",
        /// Calls must be augmented.
        Required = "required",
    }
}

model! {
    /// Result of a [`tools/list`](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#listing-tools) request: one page of tools.
    #[doc(alias = "tools/list")]
    pub cacheable result ListToolsResult {
        /// The tools of this page.
        tools: Vec<ToolDefinition> = "tools",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Parameters of a [`tools/call`](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#calling-tools) request.
    ///
    /// ```
    /// use duplexer_types::tool::CallToolParams;
    /// use serde_json::json;
    ///
    /// let call = CallToolParams::new("add").arguments(json!({"a": 1}));
    /// assert_eq!(serde_json::to_string(&call)?, r#"{"name":"add","arguments":{"a":1}}"#);
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    #[doc(alias = "tools/call")]
    pub struct CallToolParams {
        /// Name of the tool.
        name: String = "name",
    } optional {
        /// Arguments of the tool: a JSON object.
        #[serde(deserialize_with = "crate::json::object")]
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_object))]
        arguments: Json = "arguments",
        /// Responses to the server's input requests, by their keys (envelope era).
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// State of the server from its [`InputRequiredResult`](crate::input::InputRequiredResult), verbatim
        /// (envelope era).
        request_state: String = "requestState" since V2026_07_28,
        /// Asks for a task (2025-11-25).
        #[serde(deserialize_with = "crate::task::metadata")]
        task: TaskMetadata = "task" since V2025_11_25 until V2025_11_25,
    }
}

model! {
    /// Result of a [`tools/call`](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#tool-result) request, and of `tasks/result` (2025-11-25).
    ///
    /// ```
    /// use duplexer_types::tool::CallToolResult;
    /// use serde_json::json;
    ///
    /// let sum = CallToolResult::structured(json!({"sum": 3}));
    /// assert_eq!(sum.to_text(), r#"{"sum":3}"#);
    /// let failed = CallToolResult::error("The disk is full.").into_result();
    /// assert_eq!(failed.unwrap_err().to_string(), "The disk is full.");
    /// ```
    #[doc(alias = "tools/call")]
    #[doc(alias = "tasks/result")]
    pub result CallToolResult {
        /// Content for the model.
        content: Vec<Content> = "content",
    } optional {
        /// Structured result: any JSON, `null` included. Before 2026-07-28 only objects are sent.
        #[serde(deserialize_with = "crate::json::present")]
        structured_content: Json = "structuredContent" since V2025_06_18 if is_structured,
        /// Whether the tool failed. Default: false.
        is_error: bool = "isError",
    } impl {
        fn is_error(&self) -> bool {
            self.is_error == Some(true)
        }
    }
}

impl CallToolResult {
    /// Creates a result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([Content::text(text)])
    }

    /// Creates a tool execution error, `isError: true`. The text is for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// Creates a structured result, with the same JSON as text.
    pub fn structured(value: impl Into<Json>) -> Self {
        let value = value.into();
        Self::text(value.as_str()).structured_content(value)
    }

    /// Returns the result, or the failure that the tool reports with `isError: true`.
    ///
    /// # Errors
    /// Fails if the tool has failed.
    pub fn into_result(self) -> Result<Self, ToolFailed> {
        if self.is_error == Some(true) { Err(ToolFailed(Box::new(self))) } else { Ok(self) }
    }

    /// Returns the text blocks of the content, one below the other.
    pub fn to_text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(Content::as_text).collect();
        texts.join("\n")
    }

    /// Decodes the structured content.
    ///
    /// Before 2026-07-28 structured content is an object, and servers put other values into its member `result`. Such a
    /// value is decoded if the object itself is not a `T`.
    ///
    /// # Errors
    /// Fails if there is no structured content, or if it is not a `T`.
    pub fn decode_structured<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        let Some(content) = &self.structured_content else {
            return Err(serde_json::Error::custom("the result has no structured content"));
        };
        content.decode().or_else(|error| match content.member("result") {
            Some(wrapped) => serde_json::from_str(wrapped).map_err(|_| error),
            None => Err(error),
        })
    }
}

/// Failure that a tool reports in its result (`isError: true`). Its text is the text of the content.
///
/// ```
/// use duplexer_types::tool::CallToolResult;
///
/// let failed = CallToolResult::error("The disk is full.").into_result().unwrap_err();
/// assert_eq!(failed.to_string(), "The disk is full.");
/// assert_eq!(failed.result().is_error, Some(true));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolFailed(Box<CallToolResult>);

impl ToolFailed {
    /// Returns the result of the tool.
    pub fn result(&self) -> &CallToolResult {
        &self.0
    }
}

impl fmt::Display for ToolFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.to_text() {
            text if text.is_empty() => f.write_str("the tool failed without a text"),
            text => f.write_str(&text),
        }
    }
}

impl std::error::Error for ToolFailed {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn a_failed_tool_is_an_error_with_the_text_of_its_content() {
        assert_eq!(CallToolResult::text("3").into_result().unwrap().to_text(), "3");
        let failed = CallToolResult::error("no such city").into_result().unwrap_err();
        assert_eq!((failed.to_string(), failed.result().is_error), ("no such city".to_owned(), Some(true)));
        let silent = CallToolResult::new([]).is_error(true).into_result().unwrap_err();
        assert_eq!(silent.to_string(), "the tool failed without a text");
    }

    #[test]
    fn structured_content_is_decoded_with_and_without_its_wrapper() {
        let structured = |value| CallToolResult::structured(Json::from(value));
        assert_eq!(structured(json!(3)).decode_structured::<i64>().unwrap(), 3);
        assert_eq!(structured(json!({"result": 3})).decode_structured::<i64>().unwrap(), 3);
        let map: BTreeMap<String, i64> = structured(json!({"result": 3})).decode_structured().unwrap();
        assert_eq!(map["result"], 3);
        assert!(structured(json!({"sum": 3})).decode_structured::<i64>().is_err());
        let none = CallToolResult::text("3").decode_structured::<i64>().unwrap_err();
        assert_eq!(none.to_string(), "the result has no structured content");
    }
}
