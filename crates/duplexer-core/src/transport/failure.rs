//! Why a transport could not carry one request, although the connection goes on.
//!
//! Such a failure never travels as a JSON-RPC error: a peer could have sent that too.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::text::shown;

/// Maximum length of the `error` of a challenge that a message repeats.
const MAX_ERROR: usize = 200;
/// Maximum number of challenges that a refusal keeps, and the maximum length of each.
const MAX_CHALLENGES: usize = 16;
const MAX_CHALLENGE: usize = 8192;

/// Failure of the transport to carry one request and its response.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportFailure {
    /// The peer was not reached: the request did not run. The text is the innermost cause.
    #[error("the server could not be reached: {0}")]
    Unreachable(String),
    /// The peer was reached, and refused the request by its HTTP status.
    #[error("{0}")]
    Http(Arc<HttpRefusal>),
    /// The [authorization](Self::Authorization) of requests failed before or after the peer was reached.
    #[error("{0}")]
    Authorization(#[source] Arc<dyn Error + Send + Sync>),
    /// The peer no longer knows the session: the request did not run.
    #[error("the server has ended the session")]
    SessionEnded,
    /// The connection broke after the request was sent. It may have run.
    #[error("the connection was lost before the response: {0}")]
    Interrupted(Cow<'static, str>),
    /// The response violates the protocol.
    #[error("the server's response is not valid: {0}")]
    Protocol(Cow<'static, str>),
    /// The request cannot be sent: this text says why.
    #[error("the request cannot be sent: {0}")]
    Unsendable(Cow<'static, str>),
}

impl TransportFailure {
    /// Returns the HTTP response that refused the request, if there was one.
    pub fn refusal(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Http(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// An HTTP response that refused a request.
///
/// ```
/// use duplexer_core::transport::HttpRefusal;
///
/// let refusal = HttpRefusal::new(401, "Unauthorized").challenges(["Bearer"]);
/// assert_eq!((refusal.status, refusal.is_temporary()), (401, false));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HttpRefusal {
    /// The status, such as 401.
    pub status: u16,
    /// The standard phrase of the status, such as `Unauthorized`.
    pub phrase: &'static str,
    /// All values of `WWW-Authenticate`, in order.
    pub challenges: Vec<String>,
    /// The delay of `Retry-After`, if it is a number of seconds.
    pub retry_after: Option<Duration>,
    /// The value of `Location`: where a redirect points that was not followed.
    pub location: Option<String>,
    /// The first 200 characters of a text body, or of the message of a JSON-RPC error, in the form of
    /// [`shown`].
    pub body: String,
}

impl HttpRefusal {
    /// Creates a refusal with a status and its standard phrase.
    pub fn new(status: u16, phrase: &'static str) -> Self {
        Self { status, phrase, ..Self::default() }
    }

    /// Adds the values of `WWW-Authenticate`: at most 16, of at most 8192 bytes each.
    #[must_use]
    pub fn challenges<'a>(mut self, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values = values.into_iter().filter(|value| value.len() <= MAX_CHALLENGE);
        self.challenges = values.take(MAX_CHALLENGES).map(str::to_owned).collect();
        self
    }

    /// Sets the delay of `Retry-After`.
    #[must_use]
    pub fn retry_after(mut self, delay: Option<Duration>) -> Self {
        self.retry_after = delay;
        self
    }

    /// Sets where a redirect points, if the address is not longer than 8192 bytes.
    #[must_use]
    pub fn location(mut self, location: Option<&str>) -> Self {
        self.location = location.filter(|location| location.len() <= MAX_CHALLENGE).map(str::to_owned);
        self
    }

    /// Sets the body: its first 200 characters, as [`shown`] writes them.
    #[must_use]
    pub fn body(mut self, text: &str) -> Self {
        self.body = shown(text.trim());
        self
    }

    /// Returns whether the server certainly did not run the request, and may accept it later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status, 429 | 503)
    }

    /// Returns the `error` of the first challenge that has one.
    fn challenge_error(&self) -> Option<&str> {
        self.challenges.iter().find_map(|challenge| parameter(challenge, "error"))
    }
}

/// `401 Unauthorized: invalid_token`: the status, and the most specific fact of the response.
impl fmt::Display for HttpRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        if !self.phrase.is_empty() {
            write!(f, " {}", self.phrase)?;
        }
        match self.challenge_error() {
            Some(error) => write!(f, ": {error}"),
            None if self.body.is_empty() => Ok(()),
            None => write!(f, ": {}", self.body),
        }
    }
}

/// Finds a parameter of a challenge, for messages. Text inside quotes is not searched.
fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = challenge;
    loop {
        let (word, value) = rest.split_once('=')?;
        let found = word.rsplit([' ', ',', '\t']).next().is_some_and(|word| word.eq_ignore_ascii_case(name));
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => value.split_once([',', ' ']).unwrap_or((value, "")),
        };
        if found {
            let is_plain = !value.is_empty() && value.len() <= MAX_ERROR && value == shown(value);
            return is_plain.then_some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_ends_in_its_most_specific_fact() {
        let refusal = HttpRefusal::new(401, "Unauthorized");
        assert_eq!(refusal.to_string(), "401 Unauthorized");
        assert_eq!(refusal.clone().body(" <b>\u{7}no\n").to_string(), r"401 Unauthorized: <b>\u{7}no");
        let challenged = refusal.body("no").challenges([
            "Basic realm=\"error=x\"",
            "Bearer resource_metadata=\"https://a/?error=1\", error=\"invalid_token\"",
        ]);
        assert_eq!(challenged.to_string(), "401 Unauthorized: invalid_token");
        assert_eq!(challenged.challenges.len(), 2);
        assert_eq!(HttpRefusal::new(599, "").to_string(), "599");
    }

    #[test]
    fn a_refusal_keeps_a_bounded_part_of_the_response() {
        let long = "x".repeat(100_000);
        let refusal = HttpRefusal::new(500, "Internal Server Error").body(&"\u{e4}".repeat(1000));
        assert_eq!(refusal.body.chars().count(), 201);
        assert!(refusal.body.ends_with('…'));
        let refusal = refusal.challenges(std::iter::repeat_n("Bearer", 1000).chain([&*long]));
        assert_eq!(refusal.challenges.len(), 16);
        assert!(HttpRefusal::default().challenges([&*long]).challenges.is_empty());
    }

    #[test]
    fn a_parameter_of_a_challenge_is_found_outside_quotes() {
        for (challenge, found) in [
            ("Bearer error=invalid_token, scope=\"a b\"", Some("invalid_token")),
            ("Bearer scope=\"error=no\", ERROR=\"yes\"", Some("yes")),
            ("Bearer error_description=\"no\"", None),
            ("Bearer error=\"unterminated", None),
            ("Bearer error=\"\"", None),
            ("Negotiate", None),
        ] {
            assert_eq!(parameter(challenge, "error"), found, "{challenge}");
        }
    }
}
