//! Kinds of errors: the values of `error.type`, a closed set.

use duplexer_core::error::McpError;
use duplexer_server::middleware::Ending;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;

/// How a message ended, as a label. The first kind is no error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ErrorKind(usize);

/// Codes of the protocol and of this library. Those of applications are counted together.
const CODES: [(i64, &str); 14] = [
    (ErrorCode::PARSE_ERROR.0, "-32700"),
    (ErrorCode::INVALID_REQUEST.0, "-32600"),
    (ErrorCode::METHOD_NOT_FOUND.0, "-32601"),
    (ErrorCode::INVALID_PARAMS.0, "-32602"),
    (ErrorCode::INTERNAL_ERROR.0, "-32603"),
    (ErrorCode::CONNECTION_CLOSED.0, "-32000"),
    (ErrorCode::REQUEST_TIMEOUT.0, "-32001"),
    (ErrorCode::RESOURCE_NOT_FOUND.0, "-32002"),
    (ErrorCode::LIMIT_EXCEEDED.0, "-32005"),
    (ErrorCode::HEADER_MISMATCH.0, "-32020"),
    (ErrorCode::MISSING_CLIENT_CAPABILITY.0, "-32021"),
    (ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0, "-32022"),
    (ErrorCode::URL_ELICITATION_REQUIRED.0, "-32042"),
    (ErrorCode::REQUEST_CANCELLED.0, "-32800"),
];

/// Kinds before those of codes: no error, and the fallback value of the semantic conventions.
const OTHERS: [Option<&str>; 4] = [None, Some("tool_error"), Some("dropped"), Some("_OTHER")];

impl ErrorKind {
    pub(super) const COUNT: usize = OTHERS.len() + CODES.len();
    const NONE: Self = Self(0);
    const TOOL_ERROR: Self = Self(1);
    const DROPPED: Self = Self(2);
    const OTHER: Self = Self(3);

    pub(super) fn of(method: Option<Method>, ending: &Ending<'_>) -> Self {
        match ending {
            // Finished text would have to be read: only that of a tool can be an error.
            Ending::Done(outcome)
                if (outcome.is_typed() || method == Some(Method::ToolsCall)) && outcome.is_error() =>
            {
                Self::TOOL_ERROR
            }
            Ending::Done(_) => Self::NONE,
            Ending::Failed(error) => Self::code(match error {
                McpError::Rpc(error) => error.code,
                McpError::Forbidden(challenge) => challenge.error.code,
                McpError::Busy(busy) => busy.error.code,
                McpError::InvalidParams(_) => ErrorCode::INVALID_PARAMS,
                _ => ErrorCode::INTERNAL_ERROR,
            }),
            _ => Self::DROPPED,
        }
    }

    fn code(code: ErrorCode) -> Self {
        let known = CODES.iter().position(|(known, _)| *known == code.0);
        known.map_or(Self::OTHER, |at| Self(OTHERS.len() + at))
    }

    pub(super) const fn index(self) -> usize {
        self.0
    }

    /// Returns the label of the kind with this index; `None` for no error.
    pub(super) fn label(index: usize) -> Option<&'static str> {
        match OTHERS.get(index) {
            Some(label) => *label,
            None => CODES.get(index - OTHERS.len()).map(|(_, label)| *label),
        }
    }

    /// Returns whether the index is that of a code, which is then the status of the response too.
    pub(super) fn is_code(index: usize) -> bool {
        index >= OTHERS.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_its_number_as_label_and_unknown_ones_share_a_label() {
        for (code, label) in CODES {
            assert_eq!(code.to_string(), label);
            assert_eq!(ErrorKind::label(ErrorKind::code(ErrorCode(code)).index()), Some(label));
        }
        assert_eq!(ErrorKind::label(ErrorKind::code(ErrorCode(-32050)).index()), Some("_OTHER"));
        assert_eq!(ErrorKind::label(0), None);
        assert_eq!(ErrorKind::label(ErrorKind::COUNT), None);
        assert!(ErrorKind::is_code(ErrorKind::COUNT - 1) && !ErrorKind::is_code(3));
    }
}
