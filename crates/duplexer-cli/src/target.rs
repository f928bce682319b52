//! The target of a command: a URL, or a program to start.

use std::ffi::OsString;
use std::fmt;

use crate::arguments::Request;
use crate::failure::Failure;

/// Location of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Url(String),
    Command(Vec<OsString>),
}

impl Target {
    /// Splits the words into target and remaining words.
    pub(crate) fn of(request: &Request) -> Result<(Self, &[String]), Failure> {
        if !request.command.is_empty() {
            return match request.words.first().filter(|word| is_url(word)) {
                Some(url) => {
                    Err(Failure::usage(format!("both {url} and a command were given; one is enough")))
                }
                None => Ok((Self::Command(request.command.clone()), &request.words)),
            };
        }
        match request.words.split_first() {
            None => Err(Failure::usage("which server? give its URL, or `-- COMMAND` to start it")),
            Some((url, rest)) if is_url(url) => Ok((Self::Url(url.clone()), rest)),
            Some((other, _)) => Err(no_target(other)),
        }
    }
}

fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

fn no_target(word: &str) -> Failure {
    let guess = if word.contains(':') && !word.contains("://") {
        format!("for a URL write http://{word}, for a program `-- {word}`")
    } else {
        "a URL begins with http:// or https://, and a program goes to the end: `-- COMMAND`".to_owned()
    };
    Failure::usage(format!("`{word}` is not where a server could be; {guess}"))
}

/// Formats the target as on a command line.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Command(words) => {
                let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
                write!(f, "-- {}", words.join(" "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::arguments::{CommandLine, Verb};

    fn request(line: &str) -> Request {
        match CommandLine::try_parse_from(line.split_whitespace()).unwrap().verb {
            Some(Verb::Call(call)) => call.request,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_target_is_a_url_first_or_a_command_last() {
        let check = |line: &str, shown: &str, rest: &[&str]| {
            let request = request(line);
            let (target, words) = Target::of(&request).unwrap();
            assert_eq!(
                (target.to_string().as_str(), words),
                (shown, &rest.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()[..])
            );
        };
        check("duplexer call http://a/mcp add a:=1", "http://a/mcp", &["add", "a:=1"]);
        check("duplexer call add a:=1 -- server --stdio", "-- server --stdio", &["add", "a:=1"]);
        check("duplexer call HTTPS://a add", "HTTPS://a", &["add"]);
    }

    #[test]
    fn an_invalid_target_gets_a_hint() {
        let check = |line: &str, text: &str| {
            let failure = Target::of(&request(line)).unwrap_err().to_string();
            assert!(failure.contains(text), "{failure}");
        };
        check("duplexer call", "which server?");
        check("duplexer call localhost:8000/mcp add", "write http://localhost:8000/mcp");
        check("duplexer call add", "`-- COMMAND`");
        check("duplexer call ftp://a add", "begins with http://");
        check("duplexer call http://a add -- server", "one is enough");
    }
}
