//! Revision-specific error codes. Handlers do not know the revision of their request.

use crate::error::{ErrorCode, ErrorObject};
use crate::version::{ProtocolVersion, feature};

/// Returns the error with a code that exists in `version`.
///
/// A missing resource becomes "invalid params". A required URL elicitation cannot be expressed: it becomes an internal
/// error with the same message.
#[must_use]
pub fn error_in(mut error: ErrorObject, version: ProtocolVersion) -> ErrorObject {
    match error.code {
        ErrorCode::RESOURCE_NOT_FOUND if !version.has(feature::RESOURCE_NOT_FOUND_CODE) => {
            error.code = ErrorCode::INVALID_PARAMS;
        }
        ErrorCode::URL_ELICITATION_REQUIRED if !version.has(feature::ELICITATION_ID) => {
            error.code = ErrorCode::INTERNAL_ERROR;
            error.data = None;
        }
        _ => {}
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P-RPC-14, P-ELI-11: the codes of one revision are not sent in another.
    #[test]
    fn codes_stay_in_their_revisions() {
        let check = |code: i64, version: ProtocolVersion, expected: i64| {
            let error = ErrorObject::new(ErrorCode(code), "text").with_data("data");
            let converted = error_in(error.clone(), version);
            assert_eq!(
                (converted.code.0, &converted.message),
                (expected, &error.message),
                "{code} {version}"
            );
            assert_eq!(converted.data.is_none(), expected == -32603, "{code} {version}");
        };
        for version in ProtocolVersion::ALL {
            let enveloped = version.has(feature::ENVELOPE);
            check(-32002, *version, if enveloped { -32602 } else { -32002 });
            let has_code = *version == ProtocolVersion::V2025_11_25;
            check(-32042, *version, if has_code { -32042 } else { -32603 });
            check(-32602, *version, -32602);
            check(7, *version, 7);
        }
    }
}
