//! What a model can have done.

use crate::content::Content;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::{Json, JsonObject};
use crate::model::{model, open_enum};
use crate::wire::handshake::{describes_objects, is_structured};

model! {
    /// A tool.
    pub struct Tool {
        /// Its name, for programs.
        name: String = "name",
        /// A JSON Schema whose `type` is `object`.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::object_schema))]
        input_schema: Json = "inputSchema",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
        /// What it does, for the model.
        description: String = "description",
        /// A JSON Schema of `structuredContent`. Before 2026-07-28 only those of objects are sent.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::schema))]
        output_schema: Json = "outputSchema" since V2025_06_18 if describes_objects,
        /// Hints about what it does.
        annotations: ToolAnnotations = "annotations" since V2025_03_26,
        /// Pictures.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Whether it runs as a task.
        execution: ToolExecution = "execution" since V2025_11_25 until V2025_11_25,
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Hints about what a tool does. Nobody vouches for them.
    pub struct ToolAnnotations {} optional {
        /// Its name, for people; the tool's own title goes before it.
        title: String = "title",
        /// It changes nothing. (Otherwise: it may.)
        read_only_hint: bool = "readOnlyHint",
        /// It may destroy something. (Otherwise: it may.)
        destructive_hint: bool = "destructiveHint",
        /// Doing it twice does no more than doing it once. (Otherwise: it may.)
        idempotent_hint: bool = "idempotentHint",
        /// It deals with the world outside. (Otherwise: it may.)
        open_world_hint: bool = "openWorldHint",
    }
}

model! {
    /// How a tool runs (2025-11-25).
    pub struct ToolExecution {} optional {
        /// Whether it runs as a task.
        task_support: TaskSupport = "taskSupport",
    }
}

open_enum! {
    /// Whether a tool runs as a task (2025-11-25).
    pub enum TaskSupport {
        /// Never.
        Forbidden = "forbidden",
        /// If asked to.
        Optional = "optional",
        /// Always.
        Required = "required",
    }
}

model! {
    /// A page of tools.
    pub cacheable result ListToolsResult {
        /// The tools.
        tools: Vec<Tool> = "tools",
    } optional {
        /// Where the next page begins.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Has a tool do its work.
    pub struct CallToolParams {
        /// Which one.
        name: String = "name",
    } optional {
        /// With what: an object.
        #[serde(deserialize_with = "crate::json::object")]
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_object))]
        arguments: Json = "arguments",
        /// Answers to what the server asked for.
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// What the server wants to get back, as it came.
        request_state: String = "requestState" since V2026_07_28,
    }
}

model! {
    /// What a tool has to say.
    pub result CallToolResult {
        /// For the model.
        content: Vec<Content> = "content",
    } optional {
        /// For programs: any JSON, `null` included. Before 2026-07-28 only objects are sent.
        #[serde(deserialize_with = "crate::json::present")]
        structured_content: Json = "structuredContent" since V2025_06_18 if is_structured,
        /// Whether the tool failed.
        is_error: bool = "isError",
    } impl {
        fn is_error(&self) -> bool {
            self.is_error == Some(true)
        }
    }
}

impl CallToolResult {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new([Content::text(text)])
    }

    /// The tool failed; the text tells the model why.
    pub fn error(text: impl Into<String>) -> Self {
        Self::text(text).is_error(true)
    }

    /// JSON for programs, and the same as text for the model.
    pub fn structured(value: Json) -> Self {
        Self::text(value.as_str()).structured_content(value)
    }
}
