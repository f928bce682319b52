//! Prompts: message templates that a user selects.

use crate::annotations::Role;
use crate::content::Content;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::JsonObject;
use crate::model::model;

model! {
    /// Definition of a [prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#prompt), an item of [`ListPromptsResult`].
    ///
    /// A server registers a `prompt::Prompt` of `duplexer-server`, which adds the function to the definition.
    ///
    /// ```
    /// use duplexer_types::prompt::{PromptArgument, PromptDefinition};
    ///
    /// let prompt = PromptDefinition::new("review")
    ///     .description("Asks for a review.")
    ///     .arguments([PromptArgument::new("code").required(true)]);
    /// assert_eq!(prompt.arguments.unwrap()[0].name, "code");
    /// ```
    pub struct PromptDefinition {
        /// Unique identifier of the prompt.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
        /// Description of the prompt.
        description: String = "description",
        /// Arguments that fill in the template.
        arguments: Vec<PromptArgument> = "arguments",
        /// Icons for user interfaces.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// Additional metadata.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// Definition of an argument of a [prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#prompt).
    pub struct PromptArgument {
        /// Identifier of the argument.
        name: String = "name",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
        /// Description of the argument.
        description: String = "description",
        /// Whether the argument must be given. Default: false.
        required: bool = "required",
    }
}

model! {
    /// Result of a [`prompts/list`](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#listing-prompts) request: one page of prompts.
    #[doc(alias = "prompts/list")]
    pub cacheable result ListPromptsResult {
        /// The prompts of this page.
        prompts: Vec<PromptDefinition> = "prompts",
    } optional {
        /// Cursor of the next page. Absent on the last page.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Parameters of a [`prompts/get`](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt) request.
    #[doc(alias = "prompts/get")]
    pub struct GetPromptParams {
        /// Name of the prompt.
        name: String = "name",
    } optional {
        /// Arguments that fill in the template.
        arguments: JsonObject<String> = "arguments",
        /// Responses to the server's input requests, by their keys (envelope era).
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// State of the server from its [`InputRequiredResult`](crate::input::InputRequiredResult), verbatim
        /// (envelope era).
        request_state: String = "requestState" since V2026_07_28,
    }
}

model! {
    /// Result of a [`prompts/get`](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#getting-a-prompt) request.
    #[doc(alias = "prompts/get")]
    pub result GetPromptResult {
        /// The messages of the prompt.
        messages: Vec<PromptMessage> = "messages",
    } optional {
        /// Description of the prompt.
        description: String = "description",
    }
}

model! {
    /// Message of a [prompt](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#promptmessage).
    ///
    /// ```
    /// use duplexer_types::prompt::PromptMessage;
    ///
    /// let message = PromptMessage::user("Review this code.");
    /// assert_eq!(message.content.as_text(), Some("Review this code."));
    /// ```
    pub struct PromptMessage {
        /// Speaker of the message.
        role: Role = "role",
        /// Content of the message.
        content: Content = "content",
    }
}

impl PromptMessage {
    /// Creates a message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// Creates a message of the assistant.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}
