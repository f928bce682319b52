//! `WWW-Authenticate` challenges (RFC 6750, RFC 9728): the error, the required scopes and the metadata URL.

use std::fmt::Write;

use http::StatusCode;

use super::Auth;
use crate::dpop;
use crate::error::OAuthError;

impl Auth {
    /// Builds the challenge of an error, with the scopes that the request requires.
    ///
    /// A request without a token has no error (RFC 6750, section 3.1). Tokens that no authorization server issues have no
    /// metadata: it would send clients to look for one.
    pub(super) fn challenge(&self, error: &OAuthError, scopes: &[&str]) -> String {
        if self.0.dpop.is_required() {
            return self.dpop_challenge(error, scopes);
        }
        self.challenge_of("Bearer", error, scopes, None)
    }

    /// Builds the challenge for tokens that are bound to a key (RFC 9449, section 7.1).
    pub(super) fn dpop_challenge(&self, error: &OAuthError, scopes: &[&str]) -> String {
        self.challenge_of("DPoP", error, scopes, Some(&dpop::ALGORITHMS.join(" ")))
    }

    fn challenge_of(
        &self,
        scheme: &str,
        error: &OAuthError,
        scopes: &[&str],
        algorithms: Option<&str>,
    ) -> String {
        let scope = scopes.join(" ");
        let given = (error.error != NO_TOKEN).then_some(error);
        let parameters = [
            ("error", given.map(|error| &*error.error)),
            ("error_description", given.map(|error| &*error.error_description)),
            ("resource_metadata", self.0.site.metadata_url.as_deref()),
            ("scope", Some(&*scope).filter(|scope| !scope.is_empty())),
            ("algs", algorithms),
        ];
        let mut text = String::from(scheme);
        let mut separator = ' ';
        for (name, value) in parameters {
            let Some(value) = value else { continue };
            text.push(separator);
            if separator == ',' {
                text.push(' ');
            }
            parameter(&mut text, name, value);
            separator = ',';
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

/// Code of [`no_token`] in the body of a response. It is not a code of RFC 6750 and never part of a challenge.
const NO_TOKEN: &str = "unauthorized";

/// Error of a request that brings no token.
pub(super) fn no_token() -> OAuthError {
    let text = "Authentication required: send an access token as `Authorization: Bearer ..`";
    OAuthError::new(NO_TOKEN, text).with_status(StatusCode::UNAUTHORIZED)
}

/// Error of a token that is not accepted.
pub(super) fn invalid_token(reason: &'static str) -> OAuthError {
    OAuthError::new("invalid_token", reason).with_status(StatusCode::UNAUTHORIZED)
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
