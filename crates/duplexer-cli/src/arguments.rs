//! The command line.

mod values;

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use duplexer::types::logging::LoggingLevel;

pub(crate) use values::{Argument, arguments, texts};

const ABOUT: &str = "A demo server, and a client for the terminal, for the Model Context Protocol.";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the tool failed, 2 wrong usage, 3 no connection, 4 not authorized, 5 refused or not understood,
6 no answer in time.";

/// The command line. Without a verb it starts the demo.
#[derive(Debug, Parser)]
#[command(name = "duplexer", version, about = ABOUT, after_help = EXIT_CODES, args_conflicts_with_subcommands = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) demo: DemoArguments,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start the demo server (this is the default)
    Demo(DemoArguments),
    /// Show what a server offers
    #[command(
        override_usage = "duplexer list [OPTIONS] URL [KIND]\n       duplexer list [OPTIONS] [KIND] -- COMMAND...\n\n\
        KIND is tools, resources, templates or prompts"
    )]
    List(Request),
    /// Call a tool
    #[command(override_usage = "duplexer call [OPTIONS] URL TOOL [ARGUMENT]...\n       \
        duplexer call [OPTIONS] TOOL [ARGUMENT]... -- COMMAND...\n\n\
        An ARGUMENT is name=text, or name:=json for numbers, lists and all the rest")]
    Call(Request),
    /// Read a resource
    #[command(
        override_usage = "duplexer read [OPTIONS] URL RESOURCE\n       duplexer read [OPTIONS] RESOURCE -- COMMAND...\n\n\
        Bytes go to standard output as they are, unless that is a terminal"
    )]
    Read(Request),
    /// Fill a prompt
    #[command(override_usage = "duplexer prompt [OPTIONS] URL PROMPT [name=text]...\n       \
        duplexer prompt [OPTIONS] PROMPT [name=text]... -- COMMAND...")]
    Prompt(Request),
    /// Suggest values for an argument of a prompt or a variable of a resource template
    #[command(
        override_usage = "duplexer complete [OPTIONS] URL PROMPT-OR-TEMPLATE NAME=BEGINNING [known=text]...\n       \
        duplexer complete [OPTIONS] PROMPT-OR-TEMPLATE NAME=BEGINNING [known=text]... -- COMMAND..."
    )]
    Complete(Request),
    /// Show change notifications of a server, until Ctrl-C
    #[command(override_usage = "duplexer listen [OPTIONS] URL [RESOURCE]...\n       \
        duplexer listen [OPTIONS] [RESOURCE]... -- COMMAND...\n\n\
        Changes of lists are always shown, those of resources only for each given RESOURCE")]
    Listen(Request),
    /// Check whether a server responds, and which revision it uses
    #[command(override_usage = "duplexer ping [OPTIONS] URL\n       duplexer ping [OPTIONS] -- COMMAND...")]
    Ping(Request),
    /// Print the version and the supported protocol revisions
    Version,
}

/// Options of the demo.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct DemoArguments {
    /// Serve standard input and output instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port"])]
    pub(crate) stdio: bool,
    /// Listen on this address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) host: IpAddr,
    /// Listen on this port; 0 selects a free one
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Require tokens: `dev` runs an authorization server next to the demo, with the single user `ada`
    #[arg(long, value_enum, conflicts_with = "stdio")]
    pub(crate) auth: Option<AuthChoice>,
}

/// Authorization server of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthChoice {
    /// The demo itself
    Dev,
}

/// A request to a server.
#[derive(Debug, Args)]
pub(crate) struct Request {
    /// The URL of the server, and the words of the request
    #[arg(value_name = "URL, WORD", hide = true)]
    pub(crate) words: Vec<String>,
    /// Start this program as the server and connect to its standard input and output
    #[arg(last = true)]
    pub(crate) command: Vec<OsString>,
    /// Print the result as JSON, exactly as the server sent it
    #[arg(long)]
    pub(crate) json: bool,
    /// Read answers to questions of the server from standard input, line by line, even if it is no terminal
    #[arg(long)]
    pub(crate) interactive: bool,
    #[command(flatten)]
    pub(crate) session: SessionArguments,
}

/// Options of the session.
#[derive(Clone, Debug, Args)]
pub(crate) struct SessionArguments {
    /// Era: negotiated with the server, with a handshake, or with self-contained requests
    #[arg(long, value_enum, default_value_t = EraChoice::Auto)]
    pub(crate) era: EraChoice,
    /// Time limit for opening the session and for each response; time spent on questions of the server does not count
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Add a header to every HTTP request, such as 'Authorization: Bearer ...'
    #[arg(long = "header", short = 'H', value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Add a variable to the environment of the program, which otherwise gets little more than PATH and HOME
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Show log messages of the server from this level on
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log: Option<LoggingLevel>,
    /// Show all protocol messages on standard error
    #[arg(long)]
    pub(crate) trace: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EraChoice {
    Auto,
    Handshake,
    Envelope,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let duration = Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("must be longer than nothing".to_owned()) } else { Ok(duration) }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written NAME:VALUE")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("a variable is written NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn level(text: &str) -> Result<LoggingLevel, String> {
    let known = LoggingLevel::ALL.iter().copied().find(|level| level.as_str() == text);
    known.ok_or_else(|| {
        format!("a level is one of {}", LoggingLevel::ALL.map(LoggingLevel::as_str).join(", "))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_described() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn without_a_verb_it_is_the_demo() {
        let parse = |line: &str| CommandLine::try_parse_from(line.split_whitespace());
        let bare = parse("duplexer").unwrap();
        assert!(bare.verb.is_none() && bare.demo.port == 8000 && !bare.demo.stdio);
        assert!(parse("duplexer --stdio").unwrap().demo.stdio);
        assert_eq!(parse("duplexer --port 8001").unwrap().demo.port, 8001);
        assert!(matches!(parse("duplexer demo --stdio").unwrap().verb, Some(Verb::Demo(demo)) if demo.stdio));
        for wrong in
            ["duplexer --port x", "duplexer --stdio --port 1", "duplexer serve", "duplexer --port 1 list x"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_options_are_checked() {
        assert_eq!(seconds("0.5"), Ok(Duration::from_millis(500)));
        assert!(seconds("0").is_err() && seconds("-1").is_err() && seconds("soon").is_err());
        assert_eq!(header("A: b:c"), Ok(("A".to_owned(), "b:c".to_owned())));
        assert!(header("A").is_err() && variable("A").is_err());
        assert!(level("notice").is_ok() && level("loud").is_err());
        assert_eq!(variable("A=b=c"), Ok(("A".to_owned(), "b=c".to_owned())));
    }
}
