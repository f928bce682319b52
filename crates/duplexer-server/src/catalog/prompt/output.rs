//! What a prompt's function may return.

use std::borrow::Cow;

use crate::kernel::handler::{IntoReply, Reply};
use crate::kernel::outcome::Outcome;
use duplexer_core::error::McpError;
use duplexer_types::content::Content;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::prompt::{GetPromptResult, PromptMessage};

/// What a prompt's function may return: text or content (which the user says), messages, a result made by hand, or a
/// `Result` of these.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the messages of a prompt",
    label = "not messages",
    note = "a prompt's function returns text, `Content`, `PromptMessage`, `Vec<PromptMessage>` or `GetPromptResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<McpError>`"
)]
pub trait PromptOutput: Sized + 'static {
    /// The messages as a result.
    fn into_prompt(self, description: Option<String>) -> Result<Outcome, McpError>;
}

fn filled(messages: Vec<PromptMessage>, description: Option<String>) -> Outcome {
    let mut result = GetPromptResult::new(messages);
    result.description = description;
    Outcome::of(result)
}

macro_rules! messages {
    ($([$($generic:tt)*] $type:ty => |$value:ident| $messages:expr;)*) => {$(
        impl<$($generic)*> PromptOutput for $type {
            fn into_prompt(self, description: Option<String>) -> Result<Outcome, McpError> {
                let $value = self;
                Ok(filled($messages, description))
            }
        }
    )*};
}

messages! {
    []               String               => |text| vec![PromptMessage::user(text)];
    []               &'static str         => |text| vec![PromptMessage::user(text)];
    []               Cow<'static, str>    => |text| vec![PromptMessage::user(text.into_owned())];
    []               Content              => |content| vec![PromptMessage::user(content)];
    []               Vec<Content>         => |all| all.into_iter().map(PromptMessage::user).collect();
    []               PromptMessage        => |message| vec![message];
    []               Vec<PromptMessage>   => |messages| messages;
    [const N: usize] [PromptMessage; N]   => |messages| messages.into();
}

impl PromptOutput for GetPromptResult {
    fn into_prompt(mut self, description: Option<String>) -> Result<Outcome, McpError> {
        self.description = self.description.or(description);
        Ok(Outcome::of(self))
    }
}

impl PromptOutput for InputRequiredResult {
    fn into_prompt(self, _: Option<String>) -> Result<Outcome, McpError> {
        Ok(Outcome::of(self))
    }
}

impl PromptOutput for Reply<GetPromptResult> {
    fn into_prompt(self, _: Option<String>) -> Result<Outcome, McpError> {
        Ok(self.into_outcome())
    }
}

impl<T: PromptOutput, E: Into<McpError> + 'static> PromptOutput for Result<T, E> {
    fn into_prompt(self, description: Option<String>) -> Result<Outcome, McpError> {
        self.map_err(Into::into)?.into_prompt(description)
    }
}
