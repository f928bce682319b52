//! The target of a command: a URL, a program to start, or the name of a configured server, which is one of both.

mod configured;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use duplexer::transport::child::ChildCommand;

use crate::arguments::Request;
use crate::failure::Failure;
use crate::verbs::closest;

/// Location of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Url(Endpoint),
    Command(Program),
}

/// A server at a URL.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    /// Headers of its configuration.
    pub(crate) headers: Vec<(String, String)>,
}

/// A program that is a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) words: Vec<OsString>,
    /// Variables of its configuration.
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<PathBuf>,
}

impl Target {
    /// Splits the words into target and remaining words.
    pub(crate) fn of(request: &Request) -> Result<(Self, &[String]), Failure> {
        if !request.command.is_empty() {
            return match request.words.first().filter(|word| is_url(word)) {
                Some(url) => {
                    Err(Failure::usage(format!("both {url} and a command were given; one is enough")))
                }
                None => Ok((Self::command(&request.command), &request.words)),
            };
        }
        match request.words.split_first() {
            None => Err(Failure::usage(
                "which server? give its URL, its name in mcp.json, or `-- COMMAND` to start it",
            )),
            Some((word, rest)) => Ok((Self::parse(word)?, rest)),
        }
    }

    /// Returns the target of a verb that takes a URL or a name, or else a command.
    pub(crate) fn of_either(word: Option<&str>, command: &[OsString]) -> Result<Self, Failure> {
        match word {
            Some(word) => Self::parse(word),
            None => Ok(Self::command(command)),
        }
    }

    /// Returns the target that a word names: a URL, or a configured server.
    pub(crate) fn parse(word: &str) -> Result<Self, Failure> {
        if is_url(word) {
            return Ok(Self::Url(Endpoint { url: word.to_owned(), headers: Vec::new() }));
        }
        configured::find(word)?.ok_or_else(|| no_target(word))
    }

    /// Returns the URL that a word names.
    pub(crate) fn url(word: &str) -> Result<String, Failure> {
        match Self::parse(word)? {
            Self::Url(endpoint) => Ok(endpoint.url),
            Self::Command(_) => Err(Failure::usage(format!(
                "the configured server `{word}` is a program; this verb is for servers at a URL"
            ))),
        }
    }

    fn command(words: &[OsString]) -> Self {
        Self::Command(Program { words: words.to_owned(), env: Vec::new(), cwd: None })
    }
}

pub(crate) fn is_url(word: &str) -> bool {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

fn no_target(word: &str) -> Failure {
    let guess = if word.contains(':') && !word.contains("://") {
        format!("for a URL write http://{word}, for a program `-- {word}`")
    } else {
        match closest(word, &configured::names()) {
            Some(known) => format!("did you mean the configured server `{known}`?"),
            None => "a URL begins with http:// or https://, a name is in mcp.json, and a program goes to the end: \
                     `-- COMMAND`"
                .to_owned(),
        }
    };
    Failure::usage(format!("`{word}` is not where a server could be; {guess}"))
}

impl Endpoint {
    /// Returns whether the configuration has a token.
    pub(crate) fn has_token(&self) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
    }
}

impl Program {
    /// Returns the name of the program, for people.
    pub(crate) fn name(&self) -> Result<String, Failure> {
        let program = self.words.first().ok_or_else(no_command)?;
        Ok(program.to_string_lossy().into_owned())
    }

    /// Returns the command that starts it, with further variables of its environment.
    pub(crate) fn start(&self, env: &[(String, String)]) -> Result<ChildCommand, Failure> {
        let (program, rest) = self.words.split_first().ok_or_else(no_command)?;
        let mut command = ChildCommand::new(program).args(rest);
        if let Some(folder) = &self.cwd {
            command = command.current_dir(folder);
        }
        // An option counts more than the configuration.
        let env = self.env.iter().chain(env);
        Ok(env.fold(command, |command, (name, value)| command.env(name, value)))
    }
}

fn no_command() -> Failure {
    Failure::usage("there is no command behind `--`")
}

/// Formats the target as on a command line.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(endpoint) => f.write_str(&endpoint.url),
            Self::Command(program) => {
                let words: Vec<_> = program.words.iter().map(|word| word.to_string_lossy()).collect();
                write!(f, "-- {}", words.join(" "))
            }
        }
    }
}

/// Hides the values of headers, which may be secret.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Hides the values of variables, which may be secret.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("words", &self.words).finish_non_exhaustive()
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
