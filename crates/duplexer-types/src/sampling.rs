//! A server uses the client's model.

use serde::de::Error as _;

use crate::annotations::Role;
use crate::content::{AudioContent, Content, ImageContent, TextContent};
use crate::json::{Json, JsonObject};
use crate::model::{kinds, model, open_enum};
use crate::tool::Tool;
use crate::wire::handshake::{Messages, is_structured};
use crate::wire::{Shape, Wire};

model! {
    /// Asks the client's model to go on with a conversation.
    pub struct CreateMessageParams {
        /// The conversation. Revisions in which a message has one block get one message per block.
        messages: Vec<SamplingMessage> = "messages" through Messages,
        /// How many tokens at most.
        max_tokens: u64 = "maxTokens",
    } optional {
        /// Which model would suit.
        model_preferences: ModelPreferences = "modelPreferences",
        /// What the model is told first.
        system_prompt: String = "systemPrompt",
        /// What else the model gets to see.
        include_context: IncludeContext = "includeContext",
        /// How much chance there is in the answer.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        temperature: f64 = "temperature",
        /// Where the model stops.
        stop_sequences: Vec<String> = "stopSequences",
        /// For the provider of the model.
        metadata: JsonObject = "metadata",
        /// What the model can have done.
        tools: Vec<Tool> = "tools" since V2025_11_25,
        /// Whether it has something done.
        tool_choice: ToolChoice = "toolChoice" since V2025_11_25,
    }
}

model! {
    /// What somebody says.
    pub struct SamplingMessage {
        /// Who.
        role: Role = "role",
        /// What.
        content: Blocks = "content",
    } optional {
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_11_25,
    }
}

impl SamplingMessage {
    /// The person says it.
    pub fn user(content: impl Into<Blocks>) -> Self {
        Self::new(Role::User, content)
    }

    /// The model says it.
    pub fn assistant(content: impl Into<Blocks>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

model! {
    /// What the model said.
    pub result CreateMessageResult {
        /// Who speaks: the model.
        role: Role = "role",
        /// What it said.
        content: Blocks = "content",
        /// Which model it was.
        model: String = "model",
    } optional {
        /// Why it stopped.
        stop_reason: StopReason = "stopReason",
    }
}

/// The blocks of a message: on the wire a single block stands alone, several stand in an array.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub struct Blocks(pub Vec<SamplingContent>);

impl Blocks {
    /// What of it is text.
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

impl<'de> serde::Deserialize<'de> for Blocks {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::deserialize(deserializer)?;
        let blocks = if json.is_object() { json.decode().map(|block| vec![block]) } else { json.decode() };
        blocks.map(Self).map_err(D::Error::custom)
    }
}

kinds! {
    /// A piece of what is said to a model or by it.
    pub enum SamplingContent by "type" {
        /// Text.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// Sound.
        Audio(AudioContent) = "audio",
        /// The model wants something done.
        ToolUse(ToolUseContent) = "tool_use",
        /// It has been done.
        ToolResult(ToolResultContent) = "tool_result",
    }
}

impl SamplingContent {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextContent::new(text))
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(content) = self { Some(&content.text) } else { None }
    }
}

model! {
    /// The model wants something done.
    pub struct ToolUseContent says "type" = "tool_use" {
        /// Links it to its result.
        id: String = "id",
        /// Which tool.
        name: String = "name",
        /// With what: an object.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::object))]
        input: Json = "input",
    } optional {
        /// What the protocol does not describe.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// It has been done.
    pub struct ToolResultContent says "type" = "tool_result" {
        /// Links it to its use.
        tool_use_id: String = "toolUseId",
        /// What the tool said.
        content: Vec<Content> = "content",
    } optional {
        /// The same for programs: any JSON. Before 2026-07-28 only objects are sent.
        #[serde(deserialize_with = "crate::json::present")]
        structured_content: Json = "structuredContent" if is_structured,
        /// Whether the tool failed.
        is_error: bool = "isError",
        /// What the protocol does not describe.
        meta: JsonObject = "_meta",
    }
}

model! {
    /// Whether the model has something done.
    pub struct ToolChoice {} optional {
        /// Whether.
        mode: ToolChoiceMode = "mode",
    }
}

open_enum! {
    /// Whether the model has something done.
    pub enum ToolChoiceMode {
        /// As it likes.
        Auto = "auto",
        /// It must.
        Required = "required",
        /// It must not.
        None = "none",
    }
}

model! {
    /// Which model would suit; priorities go from 0 to 1.
    pub struct ModelPreferences {} optional {
        /// Parts of model names, best first.
        hints: Vec<ModelHint> = "hints",
        /// It should be cheap.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        cost_priority: f64 = "costPriority",
        /// It should be fast.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        speed_priority: f64 = "speedPriority",
        /// It should be clever.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::fraction))]
        intelligence_priority: f64 = "intelligencePriority",
    }
}

model! {
    /// A hint at a model.
    pub struct ModelHint {} optional {
        /// A part of its name.
        name: String = "name",
    }
}

open_enum! {
    /// What else the model gets to see.
    pub enum IncludeContext {
        /// Nothing.
        None = "none",
        /// What the asking server knows.
        ThisServer = "thisServer",
        /// What all servers know.
        AllServers = "allServers",
    }
}

open_enum! {
    /// Why the model stopped.
    pub enum StopReason {
        /// It had nothing more to say.
        EndTurn = "endTurn",
        /// It came to a stop sequence.
        StopSequence = "stopSequence",
        /// It had no more tokens.
        MaxTokens = "maxTokens",
        /// It wants something done.
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
