//! Finds secrets in texts, and in the strings of JSON texts.

use std::borrow::Cow;

use duplexer_types::json::Json;
use regex::{Regex, RegexBuilder};

/// Shorter secrets would be found in ordinary words.
const SHORTEST: usize = 6;
/// Maximum size of the compiled patterns, in bytes.
const MAX_COMPILED: usize = 8 << 20;
const REPLACEMENT: &str = "[redacted]";

/// All secrets and patterns, as one expression.
#[derive(Debug)]
pub(super) struct Secrets(Option<Regex>);

/// Why secrets cannot be redacted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RedactionError {
    /// A secret is too short.
    #[error("a secret has fewer than {SHORTEST} bytes")]
    TooShort,
    /// A pattern matches an empty text.
    #[error("the pattern `{0}` matches an empty text")]
    Empty(String),
    /// A pattern is invalid, or the patterns are too large.
    #[error("the patterns cannot be used")]
    Pattern(#[source] regex::Error),
}

impl Secrets {
    pub(super) fn new(secrets: &[String], patterns: &[String]) -> Result<Self, RedactionError> {
        if secrets.iter().any(|secret| secret.len() < SHORTEST) {
            return Err(RedactionError::TooShort);
        }
        for pattern in patterns {
            if Regex::new(pattern).map_err(RedactionError::Pattern)?.is_match("") {
                return Err(RedactionError::Empty(pattern.clone()));
            }
        }
        let mut secrets: Vec<String> = secrets.iter().map(|secret| regex::escape(secret)).collect();
        // The first alternative that matches counts: of two secrets, one a prefix of the other, the longer one.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let all: Vec<String> =
            secrets.iter().chain(patterns).map(|pattern| format!("(?:{pattern})")).collect();
        if all.is_empty() {
            return Ok(Self(None));
        }
        let regex = RegexBuilder::new(&all.join("|")).size_limit(MAX_COMPILED).build();
        Ok(Self(Some(regex.map_err(RedactionError::Pattern)?)))
    }

    /// Returns the text without secrets.
    pub(super) fn redacted<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.0 {
            Some(regex) => regex.replace_all(text, REPLACEMENT),
            None => Cow::Borrowed(text),
        }
    }

    /// Returns the JSON with strings without secrets; `None` if it has none.
    pub(super) fn redacted_json(&self, json: &Json) -> Option<Json> {
        self.redacted_strings(json.as_str()).and_then(|text| Json::parse(&text).ok())
    }

    /// Returns a valid JSON text with strings, names included, without secrets; `None` if they have none. The rest is verbatim.
    pub(super) fn redacted_strings(&self, json: &str) -> Option<String> {
        let mut out = String::new();
        let (mut copied, mut at) = (0, 0);
        while let Some(start) = json.get(at..).and_then(|rest| rest.find('"')).map(|found| at + found) {
            let end = end_of_string(json, start)?;
            let string = json.get(start..end)?;
            at = end;
            let value: Cow<'_, str> = if string.contains('\\') {
                serde_json::from_str::<String>(string).ok()?.into()
            } else {
                string.get(1..string.len() - 1)?.into()
            };
            if let Cow::Owned(redacted) = self.redacted(&value) {
                out.push_str(json.get(copied..start)?);
                out.push_str(&serde_json::to_string(&redacted).ok()?);
                copied = end;
            }
        }
        if copied == 0 {
            return None;
        }
        out.push_str(json.get(copied..)?);
        Some(out)
    }
}

/// Returns the position after the string that begins at `start`.
fn end_of_string(json: &str, start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match json.as_bytes().get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Redaction, TOKENS};
    use super::*;

    fn secrets(secrets: &[&str], patterns: &[&str]) -> Result<Secrets, RedactionError> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Secrets::new(&owned(secrets), &owned(patterns))
    }

    #[test]
    fn strings_are_redacted_wherever_they_are_and_the_rest_stays() {
        let secrets = secrets(&["hunter-2", "say \"friend\""], &[r"\d{4}-\d{4}"]).unwrap();
        let check = |json: &str, expected: Option<&str>| {
            assert_eq!(secrets.redacted_strings(json).as_deref(), expected, "{json}");
        };
        check(
            r#"{"a": "hunter-2", "b":[1.50, "x hunter-2 y"]}"#,
            Some(r#"{"a": "[redacted]", "b":[1.50, "x [redacted] y"]}"#),
        );
        check(r#"{"hunter-2":12345678}"#, Some(r#"{"[redacted]":12345678}"#));
        check(r#"["hunt\u0065r-2"]"#, Some(r#"["[redacted]"]"#));
        check(r#"["say \"friend\"", "\\"]"#, Some(r#"["[redacted]", "\\"]"#));
        check(r#"{"a":"1234-5678"}"#, Some(r#"{"a":"[redacted]"}"#));
        check(r#"{"a":"hunter","n":-1234}"#, None);
    }

    #[test]
    fn of_two_secrets_the_longer_one_is_redacted_whole() {
        let secrets = secrets(&["secret", "secret-of-ada"], &[]).unwrap();
        assert_eq!(secrets.redacted("a secret-of-ada, a secret"), "a [redacted], a [redacted]");
    }

    #[test]
    fn texts_that_have_the_form_of_a_secret_are_found() {
        let redaction = Redaction::builder().tokens().build().unwrap();
        for secret in [
            "Bearer abcdefghijklmnop.qrst",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
            "-----BEGIN RSA PRIVATE KEY-----\nMIIB\n-----END RSA PRIVATE KEY-----",
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_0123456789abcdefghij0123456789abcdef",
            "xoxb-123456789012-abcdef",
            "sk-proj-0123456789abcdefghijklmn",
            "AIzaSyA0123456789abcdefghijABCDEFGHIJ01",
        ] {
            assert_eq!(redaction.apply(&format!("key: {secret}.")), "key: [redacted].", "{secret}");
        }
        for plain in ["Bearer of news", "skeleton-key", "AKIA", "eyJ", "a bearer token is needed"] {
            assert_eq!(redaction.apply(plain), plain);
        }
        assert_eq!(
            TOKENS.len(),
            10,
            "every pattern has a sample above, but for two spellings of GitHub and GitLab"
        );
    }

    #[test]
    fn unusable_secrets_are_found_when_they_are_built() {
        assert_eq!(secrets(&["short"], &[]).unwrap_err(), RedactionError::TooShort);
        assert_eq!(secrets(&[], &["a*"]).unwrap_err(), RedactionError::Empty("a*".to_owned()));
        assert!(matches!(secrets(&[], &["("]), Err(RedactionError::Pattern(_))));
        assert_eq!(secrets(&[], &[]).unwrap().redacted("anything"), "anything");
    }
}
