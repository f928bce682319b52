//! Texts that a person picks to begin a conversation with.

use crate::annotations::Role;
use crate::content::Content;
use crate::icon::Icon;
use crate::input::InputResponse;
use crate::json::JsonObject;
use crate::model::model;

model! {
    /// A prompt.
    pub struct Prompt {
        /// Its name, for programs.
        name: String = "name",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
        /// What it is for.
        description: String = "description",
        /// What it can be filled with.
        arguments: Vec<PromptArgument> = "arguments",
        /// Pictures.
        icons: Vec<Icon> = "icons" since V2025_11_25,
        /// What the protocol does not describe.
        meta: JsonObject = "_meta" since V2025_06_18,
    }
}

model! {
    /// What a prompt can be filled with.
    pub struct PromptArgument {
        /// Its name, for programs.
        name: String = "name",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
        /// What it is for.
        description: String = "description",
        /// Whether the prompt cannot do without.
        required: bool = "required",
    }
}

model! {
    /// A page of prompts.
    pub cacheable result ListPromptsResult {
        /// The prompts.
        prompts: Vec<Prompt> = "prompts",
    } optional {
        /// Where the next page begins.
        next_cursor: String = "nextCursor",
    }
}

model! {
    /// Fills a prompt.
    pub struct GetPromptParams {
        /// Which one.
        name: String = "name",
    } optional {
        /// With what.
        arguments: JsonObject<String> = "arguments",
        /// Answers to what the server asked for.
        input_responses: JsonObject<InputResponse> = "inputResponses" since V2026_07_28,
        /// What the server wants to get back, as it came.
        request_state: String = "requestState" since V2026_07_28,
    }
}

model! {
    /// A filled prompt.
    pub result GetPromptResult {
        /// What is said.
        messages: Vec<PromptMessage> = "messages",
    } optional {
        /// What it is for.
        description: String = "description",
    }
}

model! {
    /// What somebody says.
    pub struct PromptMessage {
        /// Who.
        role: Role = "role",
        /// What.
        content: Content = "content",
    }
}

impl PromptMessage {
    /// The person says it.
    pub fn user(content: impl Into<Content>) -> Self {
        Self::new(Role::User, content)
    }

    /// The model says it.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self::new(Role::Assistant, content)
    }
}
