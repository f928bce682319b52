//! Failures of commands: one line for the user, and an exit code for scripts.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use duplexer::client::{ClientError, ConnectError};
use duplexer::error::{CallError, Chain, ErrorKind};
use duplexer::oauth::OAuthError;
use duplexer::types::error::{ErrorCode, ErrorObject};

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The tool reported an error.
    Tool = 1,
    /// Wrong usage of the command line.
    Usage = 2,
    /// The server is unreachable, or the address cannot be bound.
    Connect = 3,
    /// The server rejected the request with 401 or 403.
    Auth = 4,
    /// The server returned an error, or its response was invalid.
    Protocol = 5,
    /// No response in time.
    Timeout = 6,
    /// Ctrl-C, with the code that shells use.
    Interrupted = 130,
}

/// Exit code with its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Empty if the error has been printed already.
    line: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, line: Some(line.into()) }
    }

    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// Exits with this code without a message.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, line: None }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.line = self.line.map(|line| format!("{line}; {hint}"));
        self
    }

    pub(crate) fn line(&self) -> Option<&str> {
        self.line.as_deref()
    }

    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.exit as u8)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.line().unwrap_or_default())
    }
}

/// Converts the error of a request.
impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Call(error) => error.into(),
            ClientError::Unavailable { .. } => {
                Self::new(Exit::Protocol, error.to_string()).hint("another --era may have it")
            }
            other => Self::new(Exit::Protocol, chain(&other)),
        }
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        if let Some(error) = OAuthError::find(&error) {
            return crate::login::failure(error.clone());
        }
        match error {
            CallError::Timeout(_) => {
                Self::new(Exit::Timeout, "the server did not answer in time; --timeout gives it more")
            }
            CallError::Rpc(error) if error.code != ErrorCode::CONNECTION_CLOSED => {
                Self::new(Exit::Protocol, refused(&error))
            }
            other => match other.kind() {
                ErrorKind::Unauthorized => Self::new(Exit::Auth, denied(&other))
                    .hint("`duplexer login URL` stores a token, --token gives one"),
                ErrorKind::Forbidden => {
                    Self::new(Exit::Auth, denied(&other)).hint("the token does not reach so far")
                }
                ErrorKind::Unreachable => Self::new(Exit::Connect, other.to_string()),
                ErrorKind::Closed => lost(),
                _ => Self::new(Exit::Protocol, chain(&other)),
            },
        }
    }
}

/// Converts the error of opening a session.
impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Call(CallError::Timeout(_)) => {
                Self::new(Exit::Timeout, "the session did not open in time").hint("--timeout gives it more")
            }
            ConnectError::Call(error) => error.into(),
            other => Self::new(Exit::Protocol, chain(&other)),
        }
    }
}

fn lost() -> Failure {
    Failure::new(Exit::Connect, "the connection ended before there was an answer")
}

/// Describes a refusal for want of rights.
fn denied(error: &CallError) -> String {
    match error.refusal() {
        Some(refusal) if !refusal.body.is_empty() => {
            format!("the server refused: {} ({} {})", refusal.body, refusal.status, refusal.phrase)
        }
        _ => format!("the server refused: {error}"),
    }
}

fn refused(error: &ErrorObject) -> String {
    format!("the server refused: {} ({})", error.message, error.code)
}

/// Formats an error with its causes on one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    Chain(error).to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use duplexer::transport::{HttpRefusal, TransportFailure};

    use super::*;

    #[test]
    fn every_failure_has_its_number() {
        let check = |failure: Failure, exit: Exit| assert_eq!(failure.exit, exit, "{failure}");
        let peer = |code| CallError::Rpc(ErrorObject::new(code, "no"));
        check(CallError::timeout("x").into(), Exit::Timeout);
        check(CallError::Closed.into(), Exit::Connect);
        check(peer(ErrorCode::CONNECTION_CLOSED).into(), Exit::Connect);
        check(peer(ErrorCode::INVALID_PARAMS).into(), Exit::Protocol);
        let http = |status| {
            let refusal = HttpRefusal::new(status, "").body("no");
            CallError::Transport(TransportFailure::Http(Arc::new(refusal)))
        };
        check(http(401).into(), Exit::Auth);
        check(http(403).into(), Exit::Auth);
        check(http(500).into(), Exit::Protocol);
        check(CallError::Transport(TransportFailure::Unreachable("no".into())).into(), Exit::Connect);
        check(CallError::Transport(TransportFailure::Interrupted("no".into())).into(), Exit::Connect);
        check(CallError::Transport(TransportFailure::Protocol("no".into())).into(), Exit::Protocol);
        check(ConnectError::NoCommonVersion(Vec::new()).into(), Exit::Protocol);
        check(ConnectError::Call(CallError::Closed).into(), Exit::Connect);
        check(ConnectError::Call(CallError::timeout("x")).into(), Exit::Timeout);
    }

    #[test]
    fn an_error_shows_its_code_and_a_hint() {
        let refusal = CallError::Rpc(ErrorObject::new(ErrorCode::INVALID_PARAMS, "Unknown tool: x"));
        let failure = Failure::from(refusal).hint("look");
        assert_eq!(failure.to_string(), "the server refused: Unknown tool: x (-32602); look");
        assert_eq!(Failure::silent(Exit::Tool).hint("look").line(), None);
    }
}
