//! Return types of a prompt's function.

use std::borrow::Cow;

use crate::catalog::function::Seal;
use crate::kernel::handler::{IntoReply, Reply};
use crate::kernel::outcome::Outcome;
use duplexer_core::error::McpError;
use duplexer_types::content::Content;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::prompt::{GetPromptResult, PromptMessage};

/// Return types of a prompt's function: text or content (a message of the user), messages, a [`GetPromptResult`], or a
/// `Result` of these.
///
/// The trait is sealed: it cannot be implemented outside this crate.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the messages of a prompt",
    label = "not messages",
    note = "a prompt's function returns text, `Content`, `PromptMessage`, `Vec<PromptMessage>` or `GetPromptResult`",
    note = "it may return `Result<T, E>` of these, where `E: Into<McpError>`; for errors of other crates write `.or_show()?` or `.or_hide()?` (`ResultExt` of the prelude)"
)]
pub trait PromptOutput: Sized + 'static {
    #[doc(hidden)]
    fn into_messages(self, description: Option<String>, seal: Seal) -> Result<Outcome, McpError>;
}

fn filled(messages: Vec<PromptMessage>, description: Option<String>) -> Outcome {
    let mut result = GetPromptResult::new(messages);
    result.description = description;
    Outcome::of(result)
}

macro_rules! messages {
    ($([$($generic:tt)*] $type:ty => |$value:ident| $messages:expr;)*) => {$(
        impl<$($generic)*> PromptOutput for $type {
            fn into_messages(self, description: Option<String>, _: Seal) -> Result<Outcome, McpError> {
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
    fn into_messages(mut self, description: Option<String>, _: Seal) -> Result<Outcome, McpError> {
        self.description = self.description.or(description);
        Ok(Outcome::of(self))
    }
}

impl PromptOutput for InputRequiredResult {
    fn into_messages(self, _: Option<String>, _: Seal) -> Result<Outcome, McpError> {
        Ok(Outcome::of(self))
    }
}

impl PromptOutput for Reply<GetPromptResult> {
    fn into_messages(self, _: Option<String>, _: Seal) -> Result<Outcome, McpError> {
        Ok(self.into_outcome())
    }
}

impl<T: PromptOutput, E: Into<McpError> + 'static> PromptOutput for Result<T, E> {
    fn into_messages(self, description: Option<String>, seal: Seal) -> Result<Outcome, McpError> {
        self.map_err(Into::into)?.into_messages(description, seal)
    }
}
