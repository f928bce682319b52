//! `WWW-Authenticate` challenges (RFC 6750, RFC 9728): the error, the required scopes and the metadata URL.

use std::fmt::Write;

use http::StatusCode;

use super::Auth;
use crate::error::OAuthError;

impl Auth {
    /// Builds the challenge of an error, with the scopes that the request requires.
    pub(super) fn challenge(&self, error: &OAuthError, scopes: &[&str]) -> String {
        let mut text = String::from("Bearer ");
        parameter(&mut text, "error", &error.error);
        parameter(&mut text, ", error_description", &error.error_description);
        parameter(&mut text, ", resource_metadata", &self.0.site.metadata_url);
        if !scopes.is_empty() {
            parameter(&mut text, ", scope", &scopes.join(" "));
        }
        text
    }
}

/// Writes a parameter as an HTTP quoted string. Leaves out characters that are invalid in a header.
fn parameter(to: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = write!(to, "{name}=\"");
    for character in value.chars().filter(|character| matches!(character, ' '..='~')) {
        if matches!(character, '"' | '\\') {
            to.push('\\');
        }
        to.push(character);
    }
    to.push('"');
}

pub(super) fn unauthenticated() -> OAuthError {
    OAuthError::new("invalid_token", "Authentication required").with_status(StatusCode::UNAUTHORIZED)
}

pub(super) fn insufficient(missing: &str) -> OAuthError {
    OAuthError::new("insufficient_scope", format!("Required scope: {missing}"))
        .with_status(StatusCode::FORBIDDEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quoted_text_stays_in_its_quotes() {
        let mut text = String::new();
        parameter(&mut text, "a", "x\"y\\z\r\n\u{e9}");
        assert_eq!(text, r#"a="x\"y\\z""#);
    }
}
