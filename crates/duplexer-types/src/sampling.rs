//! Sampling: a server requests a completion from the client's model.

use crate::annotations::Role;
use crate::content::{AudioContent, Content, ImageContent, TextContent};
use crate::json::{Json, JsonObject};
use crate::model::{kinds, model, open_enum, read_from_json};
use crate::tool::ToolDefinition;
use crate::wire::handshake::{Messages, is_structured};
use crate::wire::{Shape, Wire};

model! {
    /// Parameters of a [`sampling/createMessage`](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#creating-messages) request.
    ///
    /// ```
    /// use duplexer_types::sampling::{CreateMessageParams, SamplingMessage};
    ///
    /// let question = SamplingMessage::user("Summarize in one sentence: ...");
    /// let params = CreateMessageParams::new(vec![question], 200).system_prompt("Be brief.").temperature(0.2);
    /// assert_eq!(params.max_tokens, 200);
    /// ```
    #[doc(alias = "sampling/createMessage")]
    pub struct CreateMessageParams {
        /// Messages of the conversation. Revisions that allow one block per message get one message per block.
        messages: Vec<SamplingMessage> = "messages" through Messages,
        /// Maximum number of tokens to sample.
        max_tokens: u64 = "maxTokens" as number,
    } optional {
        /// Preferences for the selection of a model.
        model_preferences: ModelPreferences = "modelPreferences",
        /// System prompt.
        system_prompt: String = "systemPrompt",
        /// Context of servers to include.
        include_context: IncludeContext = "includeContext",
        /// Sampling temperature.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        temperature: f64 = "temperature",
        /// Sequences at which sampling stops.
        stop_sequences: Vec<String> = "stopSequences",
        /// Provider-specific metadata.
        metadata: JsonObject = "metadata",
        /// Tools that the model can use.
        tools: Vec<ToolDefinition> = "tools" since V2025_11_25,
        /// How the model uses tools. Default: auto.
        tool_choice: ToolChoice = "toolChoice" since V2025_11_25,
    }
}

model! {
    /// Message of a [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#messages) conversation.
    pub struct SamplingMessage {
        /// Speaker of the message.
        role: Role = "role",
        /// Content of the message.
        content: Blocks = "content",
    } optional {
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_11_25,
    }
}

impl SamplingMessage {
    /// Creates a message of the user.
    pub fn user(content: impl Into<Blocks>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the assistant.
    pub fn assistant(content: impl Into<Blocks>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

model! {
    /// Result of a [`sampling/createMessage`](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#creating-messages) request.
    ///
    /// ```
    /// use duplexer_types::sampling::CreateMessageResult;
    ///
    /// let answer = CreateMessageResult::text("small-model", "Short.");
    /// assert_eq!(answer.content.text(), "Short.");
    /// ```
    #[doc(alias = "sampling/createMessage")]
    pub result CreateMessageResult {
        /// Speaker of the message: the assistant.
        role: Role = "role",
        /// Content of the message.
        content: Blocks = "content",
        /// Name of the model.
        model: String = "model",
    } optional {
        /// Reason why sampling stopped.
        stop_reason: StopReason = "stopReason",
    }
}

impl CreateMessageResult {
    /// Creates a result with one text of the assistant, from the model with this name.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, SamplingContent::text(text), model)
    }
}

/// Content blocks of a message. A single block is written as an object, several as an array.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Blocks(pub Vec<SamplingContent>);

impl Blocks {
    /// Returns the concatenated text blocks.
    pub fn text(&self) -> String {
        self.0.iter().filter_map(SamplingContent::as_text).collect()
    }
}

impl From<SamplingContent> for Blocks {
    fn from(block: SamplingContent) -> Self {
        Self(vec![block])
    }
}

impl From<Vec<SamplingContent>> for Blocks {
    fn from(blocks: Vec<SamplingContent>) -> Self {
        Self(blocks)
    }
}

impl From<&str> for Blocks {
    fn from(text: &str) -> Self {
        SamplingContent::text(text).into()
    }
}

impl serde::Serialize for Blocks {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl Blocks {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let blocks = if json.is_object() { json.decode().map(|block| vec![block]) } else { json.decode() };
        blocks.map(Self)
    }
}

read_from_json!(Blocks);

kinds! {
    /// [Content block](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#content-types) of a sampling message.
    pub enum SamplingContent by "type" {
        /// Text content.
        Text(TextContent) = "text",
        /// Image content.
        Image(ImageContent) = "image",
        /// Audio content.
        Audio(AudioContent) = "audio",
        /// Request of the model to call a tool.
        ToolUse(ToolUseContent) = "tool_use",
        /// Result of a tool call.
        ToolResult(ToolResultContent) = "tool_result",
    }
}

impl SamplingContent {
    /// Creates text content.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// Returns the text, if the block is text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(content) = self { Some(&content.text) } else { None }
    }
}

model! {
    /// [Request](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools) of the model to call a tool.
    pub struct ToolUseContent const "type" = "tool_use" {
        /// Identifier of the tool use.
        id: String = "id",
        /// Name of the tool.
        name: String = "name",
        /// Arguments of the tool: a JSON object.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::object))]
        input: Json = "input",
    } optional {
        /// Additional metadata.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// [Result](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools) of a tool call of the model.
    pub struct ToolResultContent const "type" = "tool_result" {
        /// Identifier of the tool use that this is the result of.
        tool_use_id: String = "toolUseId",
        /// Content of the result.
        content: Vec<Content> = "content",
    } optional {
        /// Structured result: any JSON. Before 2026-07-28 only objects are sent.
        #[serde(deserialize_with = "crate::json::present")]
        structured_content: Json = "structuredContent" if is_structured,
        /// Whether the tool failed. Default: false.
        is_error: bool = "isError",
        /// Additional metadata.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// How the model uses [tools](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#sampling-with-tools).
    pub struct ToolChoice {} optional {
        /// The mode. Default: auto.
        mode: ToolChoiceMode = "mode",
    }
}

open_enum! {
    /// Mode of tool use.
    pub enum ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// The model must use a tool.
        Required = "required",
        /// The model must not use tools.
        None = "none",
    }
}

model! {
    /// [Preferences](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#model-preferences) for the selection of a model. Priorities range from 0 to 1.
    pub struct ModelPreferences {} optional {
        /// Hints at model names, in order of preference.
        hints: Vec<ModelHint> = "hints",
        /// Importance of low cost.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        cost_priority: f64 = "costPriority",
        /// Importance of low latency.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        speed_priority: f64 = "speedPriority",
        /// Importance of advanced capabilities.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        intelligence_priority: f64 = "intelligencePriority",
    }
}

model! {
    /// [Hint](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#model-preferences) at a model.
    pub struct ModelHint {} optional {
        /// Substring of the model name.
        name: String = "name",
    }
}

open_enum! {
    /// Context of servers to include in a sampling request.
    pub enum IncludeContext {
        /// No context.
        None = "none",
        /// Context of the requesting server.
        ThisServer = "thisServer",
        /// Context of all connected servers.
        AllServers = "allServers",
    }
}

open_enum! {
    /// Reason why sampling stopped.
    pub enum StopReason {
        /// The model finished its turn.
        EndTurn = "endTurn",
        /// The model reached a stop sequence.
        StopSequence = "stopSequence",
        /// The token limit was reached.
        MaxTokens = "maxTokens",
        /// The model requests tool calls.
        ToolUse = "toolUse",
    }
}

#[cfg(test)]
mod tests {
    use super::{Blocks, SamplingContent, ToolUseContent};
    use crate::json::Json;

    #[test]
    fn the_text_of_a_message_is_the_text_of_its_blocks() {
        let tool = SamplingContent::ToolUse(ToolUseContent::new("1", "look", Json::object()));
        let said = Blocks(vec![SamplingContent::text("Hello, "), tool, SamplingContent::text("world")]);
        assert_eq!(said.text(), "Hello, world");
    }
}
