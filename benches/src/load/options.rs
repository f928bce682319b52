//! The command line: servers, scenarios and duration.

use std::path::PathBuf;

use super::scenario::{Kind, ONLY_NAMED, SCENARIOS, Scenario};

/// Options of the command line.
#[derive(Debug)]
pub(super) struct Options {
    pub(super) scenarios: Vec<Scenario>,
    /// Duration of a scenario, all servers together.
    pub(super) seconds: u32,
    /// How often all scenarios are run.
    pub(super) runs: u32,
    /// File for the table of the medians of all runs.
    pub(super) write: Option<PathBuf>,
    servers: Vec<Command>,
}

/// A command of a server, and the scenarios it serves.
#[derive(Debug)]
struct Command {
    name: String,
    serves: Serves,
    line: String,
}

/// Scenarios of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    Exactly(Kind),
    /// All over HTTP without a more specific command.
    Http,
}

const SECONDS: u32 = 8;

impl Options {
    pub(super) fn read(arguments: &[String]) -> Result<Self, String> {
        let mut options =
            Self { scenarios: Vec::new(), seconds: SECONDS, runs: 1, write: None, servers: Vec::new() };
        let mut names = Vec::new();
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} requires a value\n{}", usage()));
            match word.as_str() {
                "--seconds" => options.seconds = number(value()?, "seconds")?,
                "--runs" => options.runs = number(value()?, "runs")?.max(1),
                "--write" => options.write = Some(value()?.into()),
                "--beside" => options.servers.push(Command::read(value()?)?),
                name if name.starts_with('-') => return Err(format!("unknown option {name}\n{}", usage())),
                name => names.push(name),
            }
        }
        options.scenarios = chosen(&names)?;
        if options.servers.is_empty() {
            return Err(format!("no server is named\n{}", usage()));
        }
        Ok(options)
    }

    /// Returns the servers with a command for this kind, with the command, in the given order.
    pub(super) fn servers_for(&self, kind: Kind) -> Vec<(&str, &str)> {
        let kind = if kind == Kind::Start { Kind::Stdio } else { kind };
        let mut found: Vec<(&str, &str)> = Vec::new();
        for command in &self.servers {
            let exactly = command.serves == Serves::Exactly(kind);
            let over_http = command.serves == Serves::Http && kind != Kind::Stdio;
            match found.iter_mut().find(|(name, _)| *name == command.name) {
                Some(known) if exactly => known.1 = &command.line,
                None if exactly || over_http => found.push((&command.name, &command.line)),
                _ => {}
            }
        }
        found
    }
}

impl Command {
    /// Parses `NAME=COMMAND` or `NAME:KIND=COMMAND`.
    fn read(text: &str) -> Result<Self, String> {
        let odd = || format!("'{text}' is not NAME=COMMAND or NAME:KIND=COMMAND\n{}", usage());
        let (name, line) = text.split_once('=').ok_or_else(odd)?;
        let (name, serves) = match name.split_once(':') {
            Some((name, "stdio")) => (name, Serves::Exactly(Kind::Stdio)),
            Some((name, "envelope")) => (name, Serves::Exactly(Kind::Envelope)),
            Some((name, "sessions")) => (name, Serves::Exactly(Kind::Sessions)),
            Some((name, "stateless")) => (name, Serves::Exactly(Kind::Stateless)),
            Some((name, "http")) => (name, Serves::Http),
            Some(_) => return Err(odd()),
            None if line.contains("{port}") => (name, Serves::Http),
            None => (name, Serves::Exactly(Kind::Stdio)),
        };
        if name.is_empty() || line.trim().is_empty() {
            return Err(odd());
        }
        Ok(Self { name: name.to_owned(), serves, line: line.to_owned() })
    }
}

fn number(text: &str, what: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is not a number of {what}"))
}

/// Returns the scenarios whose names begin with one of these; if the list is empty, all that need not be named.
fn chosen(names: &[&str]) -> Result<Vec<Scenario>, String> {
    for name in names {
        if !SCENARIOS.iter().any(|scenario| scenario.name.starts_with(name)) {
            return Err(format!("there is no scenario '{name}'\n{}", usage()));
        }
    }
    let wanted = |scenario: &&Scenario| {
        let is_named = names.iter().any(|name| scenario.name.starts_with(name));
        is_named || (names.is_empty() && !scenario.name.starts_with(ONLY_NAMED))
    };
    Ok(SCENARIOS.iter().filter(wanted).copied().collect())
}

fn usage() -> String {
    let names: Vec<&str> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
    format!(
        "usage: load [--seconds N] [--runs N] [--write FILE] [--beside NAME[:KIND]=COMMAND].. [scenario..]\n\
         KIND: stdio, http, envelope, sessions or stateless; a COMMAND over HTTP has {{port}} in it\n\
         scenarios, or how their names begin: {}",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        Options::read(&words)
    }

    #[test]
    fn a_command_serves_what_it_looks_like_or_what_it_is_said_to() {
        let options = read("--beside|a=x stdio|--beside|a=x {port}|--beside|b:sessions=y {port} s").unwrap();
        assert_eq!(options.servers_for(Kind::Stdio), [("a", "x stdio")]);
        assert_eq!(options.servers_for(Kind::Start), [("a", "x stdio")]);
        assert_eq!(options.servers_for(Kind::Envelope), [("a", "x {port}")]);
        assert_eq!(options.servers_for(Kind::Sessions), [("a", "x {port}"), ("b", "y {port} s")]);
        assert_eq!(options.seconds, SECONDS);
        let unnamed = SCENARIOS.iter().filter(|scenario| !scenario.name.starts_with(ONLY_NAMED));
        assert_eq!(options.scenarios.len(), unnamed.count());
        assert!(read("--beside|a=x|http-connections-4").unwrap().scenarios.len() == 2);
    }

    #[test]
    fn a_command_for_one_kind_goes_before_one_for_all() {
        for line in ["--beside|a:http=h|--beside|a:stateless=s", "--beside|a:stateless=s|--beside|a:http=h"] {
            let options = read(line).unwrap();
            assert_eq!(options.servers_for(Kind::Stateless), [("a", "s")], "{line}");
            assert_eq!(options.servers_for(Kind::Sessions), [("a", "h")], "{line}");
        }
    }

    #[test]
    fn scenarios_are_chosen_by_how_they_begin() {
        let options = read("--beside|a=x|stdio-echo|http-envelope-1|--seconds|2").unwrap();
        let names: Vec<&str> = options.scenarios.iter().map(|scenario| scenario.name).collect();
        assert!(names.contains(&"stdio-echo-1m") && names.contains(&"http-envelope-16"), "{names:?}");
        assert!(!names.contains(&"stdio-add"), "{names:?}");
        assert_eq!(options.seconds, 2);
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, named) in [
            ("--beside|a=x|nothing", "'nothing'"),
            ("--beside|a", "'a'"),
            ("--beside|a:other=x", "'a:other=x'"),
            ("--seconds", "--seconds"),
            ("--seconds|soon", "'soon'"),
            ("--runs|often", "'often' is not a number of runs"),
            ("--fast", "--fast"),
            ("stdio", "no server"),
        ] {
            assert!(read(line).unwrap_err().contains(named), "{line}");
        }
    }
}
