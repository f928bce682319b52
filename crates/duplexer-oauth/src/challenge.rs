//! `WWW-Authenticate` challenges (RFC 9110, section 11): every value, each with any number of challenges.

use std::collections::BTreeSet;

/// Maximum bytes of all values that are read.
const MAX_LENGTH: usize = 16 * 1024;

/// One challenge: a scheme and its parameters. A `token68` is skipped.
///
/// ```
/// use duplexer_oauth::Challenge;
///
/// let header = r#"Bearer error="invalid_token", scope="mcp""#;
/// let challenge = Challenge::select([header]);
/// assert_eq!(challenge.parameter("error"), Some("invalid_token"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    /// Reads all challenges of these header values, in order. What cannot be read is skipped.
    pub fn parse<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<Self> {
        let mut challenges = Vec::new();
        let mut left = MAX_LENGTH;
        for value in values {
            if value.len() > left {
                break;
            }
            left -= value.len();
            Parser { rest: value }.read(&mut challenges);
        }
        challenges
    }

    /// Returns the challenge that this client answers: the first of `Bearer` or `DPoP`, or an empty one.
    pub fn select<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let is_known = |challenge: &Self| matches!(challenge.scheme(), "bearer" | "dpop");
        Self::parse(values).into_iter().find(is_known).unwrap_or_default()
    }

    /// Returns the scheme in lower case, or an empty text.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns a parameter by its name in lower case. The first of equal names counts.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the error code.
    pub(crate) fn error(&self) -> Option<&str> {
        self.parameter("error")
    }

    /// Returns the scopes, without repetitions.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let scopes = self.parameter("scope").unwrap_or_default().split_ascii_whitespace();
        scopes.filter(|scope| seen.insert(*scope)).map(str::to_owned).collect()
    }
}

struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn read(mut self, challenges: &mut Vec<Challenge>) {
        // A parameter before the first scheme of a value belongs to no challenge.
        let mut has_scheme = false;
        loop {
            self.skip(|byte| matches!(byte, b' ' | b'\t' | b','));
            if self.rest.is_empty() {
                return;
            }
            let Some(name) = self.token() else {
                self.skip_to_comma();
                continue;
            };
            let name = name.to_ascii_lowercase();
            if self.equals() {
                let value = self.value();
                if let (Some(challenge), Some(value), true) = (challenges.last_mut(), value, has_scheme) {
                    challenge.parameters.push((name, value));
                }
            } else {
                challenges.push(Challenge { scheme: name, parameters: Vec::new() });
                has_scheme = true;
                self.skip_token68();
            }
        }
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        let end = self.rest.bytes().position(|byte| !skipped(byte)).unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    fn take(&mut self, taken: impl Fn(u8) -> bool) -> &'a str {
        let before = self.rest;
        self.skip(taken);
        &before[..before.len() - self.rest.len()]
    }

    fn token(&mut self) -> Option<&'a str> {
        Some(self.take(is_token)).filter(|token| !token.is_empty())
    }

    /// Consumes `=` and the white space around it.
    fn equals(&mut self) -> bool {
        let after = self.rest.trim_start_matches([' ', '\t']);
        let Some(after) = after.strip_prefix('=') else { return false };
        self.rest = after.trim_start_matches([' ', '\t']);
        true
    }

    fn value(&mut self) -> Option<String> {
        if !self.rest.starts_with('"') {
            return self.token().map(str::to_owned);
        }
        let mut value = String::new();
        let mut characters = self.rest.char_indices().skip(1);
        while let Some((at, character)) = characters.next() {
            match character {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Some(value);
                }
                '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
                other => value.push(other),
            }
        }
        self.rest = "";
        None
    }

    /// Skips a `token68` behind a scheme: it is followed by the end or a comma, not by a value.
    fn skip_token68(&mut self) {
        let mut ahead = Self { rest: self.rest.trim_start_matches([' ', '\t']) };
        let text = ahead.take(|byte| is_token(byte) || byte == b'/');
        ahead.skip(|byte| byte == b'=');
        ahead.skip(|byte| matches!(byte, b' ' | b'\t'));
        if !text.is_empty() && (ahead.rest.is_empty() || ahead.rest.starts_with(',')) {
            self.rest = ahead.rest;
        }
    }

    /// Skips what cannot be read, up to a comma outside of quotes.
    fn skip_to_comma(&mut self) {
        let mut quoted = false;
        let end = self.rest.bytes().position(|byte| {
            quoted ^= byte == b'"';
            byte == b',' && !quoted
        });
        self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
    }
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &str, expected: &[(&str, &[(&str, &str)])]) {
        let found = Challenge::parse([value]);
        let found: Vec<_> = found
            .iter()
            .map(|one| {
                let parameters: Vec<_> =
                    one.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                (one.scheme.as_str(), parameters)
            })
            .collect();
        let expected: Vec<_> = expected.iter().map(|(scheme, rest)| (*scheme, rest.to_vec())).collect();
        assert_eq!(found, expected, "{value:?}");
    }

    /// OAC-08
    #[test]
    fn challenges_are_read_as_the_specification_defines_them() {
        check("Bearer", &[("bearer", &[])]);
        check(
            r#"bEARER realm="a, \"b\" = c", Scope = "x y",error=invalid_token"#,
            &[("bearer", &[("realm", "a, \"b\" = c"), ("scope", "x y"), ("error", "invalid_token")])],
        );
        check(
            r#"Basic realm="x", Bearer resource_metadata="https://h/m", Negotiate"#,
            &[
                ("basic", &[("realm", "x")]),
                ("bearer", &[("resource_metadata", "https://h/m")]),
                ("negotiate", &[]),
            ],
        );
        check(
            "Negotiate YWJj/+==, DPoP algs=\"ES256\"",
            &[("negotiate", &[]), ("dpop", &[("algs", "ES256")])],
        );
        check(", ,Bearer\t ,,a=b", &[("bearer", &[("a", "b")])]);
        check("Bearer a=\"never closed", &[("bearer", &[])]);
        check("a=b, Bearer", &[("bearer", &[])]);
        check("Bearer \u{1}\"x,y\", scope=z", &[("bearer", &[("scope", "z")])]);
        check("", &[]);
    }

    /// OAC-09
    #[test]
    fn the_first_challenge_that_can_be_answered_counts() {
        let chosen =
            Challenge::select(["Basic realm=\"x\"", "DPoP scope=\"a b a\", scope=c", "Bearer scope=d"]);
        assert_eq!((chosen.scheme(), chosen.scopes()), ("dpop", vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(Challenge::select(["Basic realm=x"]), Challenge::default());
        assert!(Challenge::select([]).scopes().is_empty());
    }

    /// OAC-08: the cost of a value is limited.
    #[test]
    fn values_beyond_the_limit_are_not_read() {
        let long = format!("Bearer scope=\"{}\"", "x".repeat(MAX_LENGTH));
        assert!(Challenge::parse([long.as_str()]).is_empty());
        let many = "a,".repeat(MAX_LENGTH / 2);
        assert_eq!(Challenge::parse([many.as_str()]).len(), MAX_LENGTH / 2);
    }
}
