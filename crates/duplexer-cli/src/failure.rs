//! Why a command failed: one line for the person, one number for the script.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use duplexer::client::{ClientError, ConnectError};
use duplexer::error::CallError;
use duplexer::types::error::{ErrorCode, ErrorObject};

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The tool said that it failed.
    Tool = 1,
    /// The command line makes no sense.
    Usage = 2,
    /// There is nobody to speak to, or nothing to listen on.
    Connect = 3,
    /// The server wants to know who is asking, or does not let them in.
    Auth = 4,
    /// The server refused, or what it said was not understood.
    Protocol = 5,
    /// The server took too long.
    Timeout = 6,
    /// Ctrl-C, as shells count it.
    Interrupted = 130,
}

/// What is told on the way out.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    /// Nothing, if everything has been said already.
    line: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, line: impl Into<String>) -> Self {
        Self { exit, line: Some(line.into()) }
    }

    pub(crate) fn usage(line: impl Into<String>) -> Self {
        Self::new(Exit::Usage, line)
    }

    /// Ends with this code and says nothing more.
    pub(crate) fn silent(exit: Exit) -> Self {
        Self { exit, line: None }
    }

    /// Says also what to do about it.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        self.line = self.line.map(|line| format!("{line}; {hint}"));
        self
    }

    /// A refusal that better credentials would turn.
    pub(crate) fn for_want_of_rights(self) -> Self {
        match self.exit {
            Exit::Protocol => {
                Self { exit: Exit::Auth, ..self }.hint("the token given with --header does not reach so far")
            }
            _ => self,
        }
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

/// Why a request failed.
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
        match error {
            CallError::Timeout(_) => {
                Self::new(Exit::Timeout, "the server did not answer in time; --timeout gives it more")
            }
            CallError::Closed => lost(),
            CallError::Peer(error) if error.code == ErrorCode::CONNECTION_CLOSED => lost(),
            CallError::Peer(error) => Self::new(Exit::Protocol, refused(&error)),
            other => Self::new(Exit::Protocol, chain(&other)),
        }
    }
}

/// Why there is no session.
impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Call(error) => error.into(),
            other => Self::new(Exit::Protocol, chain(&other)),
        }
    }
}

fn lost() -> Failure {
    Failure::new(Exit::Connect, "the connection ended before there was an answer")
}

fn refused(error: &ErrorObject) -> String {
    format!("the server refused: {} ({})", error.message, error.code)
}

/// An error with its causes, on one line.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        // Some errors repeat their cause.
        if !text.ends_with(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_number() {
        let check = |failure: Failure, exit: Exit| assert_eq!(failure.exit, exit, "{failure}");
        let peer = |code| CallError::Peer(ErrorObject::new(code, "no"));
        check(CallError::timeout("x").into(), Exit::Timeout);
        check(CallError::Closed.into(), Exit::Connect);
        check(peer(ErrorCode::CONNECTION_CLOSED).into(), Exit::Connect);
        check(peer(ErrorCode::INVALID_PARAMS).into(), Exit::Protocol);
        check(ConnectError::NoCommonVersion(Vec::new()).into(), Exit::Protocol);
        check(ConnectError::Call(CallError::Closed).into(), Exit::Connect);
    }

    #[test]
    fn a_refusal_is_told_with_its_code_and_a_hint() {
        let refusal = CallError::Peer(ErrorObject::new(ErrorCode::INVALID_PARAMS, "Unknown tool: x"));
        let failure = Failure::from(refusal).hint("look");
        assert_eq!(failure.to_string(), "the server refused: Unknown tool: x (-32602); look");
        assert_eq!(Failure::silent(Exit::Tool).hint("look").line(), None);
    }
}
