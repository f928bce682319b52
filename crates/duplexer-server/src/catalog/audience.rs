//! Errors of other crates in handlers: who sees them is chosen where they occur.

use duplexer_core::error::{BoxError, CallError, Chain, McpError};
use duplexer_types::error::{ErrorCode, ErrorObject};

use super::resource::ResourceError;
use super::tool::ToolError;

/// Methods of `Result` that choose who sees an error of another crate: the model (or the client), or only the log.
///
/// An error type such as `rusqlite::Error` or `anyhow::Error` cannot implement `Into<ToolError>` in your crate, because
/// neither type is yours (the orphan rule). The compiler then reports:
/// `?` couldn't convert the error to `ToolError`. Call one of these methods before the `?`. They work in tools, resources,
/// prompts and handlers of custom methods.
///
/// ```
/// # use duplexer_server::ResultExt;
/// # use duplexer_server::tool::{Tool, ToolError};
/// # fn load() -> Result<u32, std::net::AddrParseError> { "::1".parse::<std::net::IpAddr>().map(|_| 7) }
/// let tool: Tool<()> = Tool::new("load", || async {
///     let shown = load().or_show()?; // The model reads the text of the error.
///     let other = load().or_show_text("The store is busy; try again.")?; // The model reads this text.
///     let hidden = load().or_hide()?; // Logged; the client gets an internal error without details.
///     Ok::<_, ToolError>(shown + other + hidden)
/// });
/// # let _ = tool;
/// ```
pub trait ResultExt<T> {
    /// Shows the text of the error: to the model in a tool, to the client elsewhere. Its sources are not shown.
    ///
    /// # Errors
    ///
    /// Returns the error for the handler to return.
    fn or_show(self) -> Result<T, HandlerError>;

    /// Shows `text` instead of the error, which is logged as a warning.
    ///
    /// # Errors
    ///
    /// Returns the error for the handler to return.
    fn or_show_text(self, text: impl Into<String>) -> Result<T, HandlerError>;

    /// Hides the error: it is logged in full, and the client gets an internal error without details.
    ///
    /// # Errors
    ///
    /// Returns the error for the handler to return.
    fn or_hide(self) -> Result<T, HandlerError>;
}

impl<T, E: Into<BoxError>> ResultExt<T> for Result<T, E> {
    fn or_show(self) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError(Audience::Client(error.into())))
    }

    fn or_show_text(self, text: impl Into<String>) -> Result<T, HandlerError> {
        self.map_err(|error| {
            let text = text.into();
            tracing::warn!(cause = %Chain(&*error.into()), shown = text, "a handler failed");
            HandlerError(Audience::Client(text.into()))
        })
    }

    fn or_hide(self) -> Result<T, HandlerError> {
        self.map_err(|error| HandlerError(Audience::Log(error.into())))
    }
}

/// Failure of a handler with its audience, from [`ResultExt`]. `?` converts it into the error type of the handler.
///
/// ```
/// use duplexer::{HandlerError, ResultExt, ToolError};
///
/// /// For helpers of several handlers, which can be tools, resources and prompts.
/// fn read(path: &str) -> Result<String, HandlerError> {
///     std::fs::read_to_string(path).or_show_text("There is no such page.")
/// }
///
/// fn handler() -> Result<String, ToolError> {
///     Ok(read("/no/such/file")?)
/// }
/// assert_eq!(handler().unwrap_err().to_string(), "There is no such page.");
/// ```
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct HandlerError(Audience);

#[derive(Debug, thiserror::Error)]
enum Audience {
    #[error("{0}")]
    Client(BoxError),
    #[error("internal error")]
    Log(#[source] BoxError),
}

impl From<HandlerError> for ToolError {
    fn from(HandlerError(audience): HandlerError) -> Self {
        match audience {
            Audience::Client(error) => error.into(),
            Audience::Log(error) => Self::internal(error),
        }
    }
}

impl From<HandlerError> for ResourceError {
    fn from(HandlerError(audience): HandlerError) -> Self {
        match audience {
            Audience::Client(error) => match error.downcast::<Self>() {
                Ok(own) => *own,
                Err(error) => match protocol_error(error) {
                    Ok(error) => Self::Protocol(error),
                    Err(error) => Self::new(error.to_string()),
                },
            },
            Audience::Log(error) => Self::Internal(error),
        }
    }
}

impl From<HandlerError> for McpError {
    fn from(HandlerError(audience): HandlerError) -> Self {
        match audience {
            Audience::Client(error) => protocol_error(error).unwrap_or_else(|error| {
                ErrorObject::new(ErrorCode::INTERNAL_ERROR, error.to_string()).into()
            }),
            Audience::Log(error) => Self::internal(error),
        }
    }
}

/// Returns an error of this SDK unchanged: it has an audience of its own.
fn protocol_error(error: BoxError) -> Result<McpError, BoxError> {
    let error = match error.downcast::<McpError>() {
        Ok(own) => return Ok(*own),
        Err(error) => error,
    };
    error.downcast::<CallError>().map(|call| McpError::from(*call))
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("no such column: colour")]
    struct Foreign;

    fn failed() -> Result<(), Foreign> {
        Err(Foreign)
    }

    /// The text that a client of a prompt or custom method sees.
    fn on_the_wire(failed: Result<(), HandlerError>) -> String {
        McpError::from(failed.unwrap_err()).to_wire("m").message.into_owned()
    }

    #[test]
    fn an_error_is_shown_replaced_or_hidden_in_every_kind_of_handler() {
        let shown = ToolError::from(failed().or_show().unwrap_err());
        assert_eq!(shown.to_string(), "no such column: colour");
        let replaced = ToolError::from(failed().or_show_text("Busy.").unwrap_err());
        assert_eq!(replaced.to_string(), "Busy.");
        let hidden = ToolError::from(failed().or_hide().unwrap_err());
        assert_eq!(hidden.to_string(), "internal error");

        assert_eq!(on_the_wire(failed().or_show()), "no such column: colour");
        assert_eq!(on_the_wire(failed().or_show_text("Busy.")), "Busy.");
        assert_eq!(on_the_wire(failed().or_hide()), "Internal server error");

        let shown = ResourceError::from(failed().or_show().unwrap_err());
        assert!(matches!(shown, ResourceError::ClientMessage(text) if text == "no such column: colour"));
        let hidden = ResourceError::from(failed().or_hide().unwrap_err());
        assert!(matches!(hidden, ResourceError::Internal(cause) if cause.is::<Foreign>()));
    }

    #[test]
    fn text_and_boxed_errors_have_the_methods_too() {
        let boxed: Result<(), BoxError> = Err("a reason".into());
        assert_eq!(on_the_wire(boxed.or_show()), "a reason");
        assert_eq!(on_the_wire(Err::<(), _>("a reason").or_hide()), "Internal server error");
    }

    /// A protocol error is not shown as text, and an internal one stays hidden.
    #[test]
    fn an_error_of_this_sdk_keeps_its_meaning() {
        let secret = || Err::<(), _>(McpError::internal("secret"));
        assert_eq!(on_the_wire(secret().or_show()), "Internal server error");
        assert_eq!(ToolError::from(secret().or_show().unwrap_err()).to_string(), "internal error");
        let kept = McpError::from(Err::<(), _>(McpError::new(ErrorCode(7), "no")).or_show().unwrap_err());
        assert_eq!(kept.to_wire("m").code, ErrorCode(7));
        let missing = Err::<(), _>(ResourceError::NotFound).or_show().unwrap_err();
        assert!(matches!(missing.into(), ResourceError::NotFound));
    }

    #[test]
    fn the_cause_of_a_hidden_error_is_its_source() {
        let hidden = failed().or_hide().unwrap_err();
        assert_eq!(hidden.to_string(), "internal error");
        assert!(hidden.source().is_some_and(<dyn Error>::is::<Foreign>));
    }
}
