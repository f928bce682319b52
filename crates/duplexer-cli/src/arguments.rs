//! The command line.

mod bench;
mod demo;
mod doctor;
mod hosts;
mod inspect;
mod login;
mod project;
mod proxy;
mod record;
mod skills;
mod task;
mod values;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ColorChoice, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use duplexer::types::logging::LoggingLevel;

pub(crate) use bench::BenchArguments;
#[cfg(feature = "redis")]
pub(crate) use demo::SharedArguments;
pub(crate) use demo::{AuthChoice, DemoArguments};
pub(crate) use doctor::DoctorArguments;
pub(crate) use hosts::{
    BundleArguments, FileArguments, InstallArguments, ServersArguments, UninstallArguments,
};
pub(crate) use inspect::InspectArguments;
pub(crate) use login::{AccountArguments, LoginArguments};
pub(crate) use project::{
    CompletionsArguments, DevArguments, LineArguments, ManArguments, NewArguments, Shell,
};
pub(crate) use proxy::{GatewayArguments, ProxyArguments};
pub(crate) use record::{RecordArguments, ReplayArguments};
pub(crate) use skills::{ServeArguments, SkillsVerb};
pub(crate) use task::TaskVerb;
pub(crate) use values::{Argument, arguments, texts};

const ABOUT: &str = "A demo server, and a client for the terminal, for the Model Context Protocol.";

const AFTER_HELP: &str = "\
Without a verb the demo starts; `duplexer demo --help` lists its options, and `duplexer call --help` how to call a tool.

Exit codes: 0 done, 1 the tool failed or `doctor` found errors, 2 wrong usage, 3 no connection, 4 not authorized, 5 refused or not understood, \
6 no answer in time, 130 ended by Ctrl-C.";

/// The command line. Without a verb it starts the demo.
#[derive(Debug, Parser)]
#[command(name = "duplexer", version, about = ABOUT, after_help = AFTER_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) demo: DemoArguments,
    /// Use colours; `auto` means on terminals, unless `NO_COLOR` or `CLICOLOR=0` is set
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t = ColorChoice::Auto)]
    color: ColorChoice,
}

impl CommandLine {
    /// Reads the command line of this process. Exits on wrong usage.
    pub(crate) fn read() -> Self {
        let matches = described().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Sets whether this process uses colours.
    pub(crate) fn choose_colour(&self) {
        match self.color {
            ColorChoice::Auto => anstream::ColorChoice::Auto,
            ColorChoice::Always => anstream::ColorChoice::Always,
            ColorChoice::Never => anstream::ColorChoice::Never,
        }
        .write_global();
    }
}

/// Returns the description of the command line. The help of the whole program is about the verbs, so the options of the demo
/// are only in the help of `demo`.
pub(crate) fn described() -> Command {
    let of_demo: Vec<_> = DemoArguments::augment_args(Command::new("demo"))
        .get_arguments()
        .map(|argument| argument.get_id().clone())
        .collect();
    CommandLine::command().mut_args(move |argument| {
        let hidden = of_demo.contains(argument.get_id());
        if hidden { argument.hide(true) } else { argument }
    })
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start the demo server (this is the default)
    Demo(DemoArguments),
    /// Show what a server offers
    #[command(
        override_usage = "duplexer list [OPTIONS] URL [KIND|NAME]\n       \
        duplexer list [OPTIONS] [KIND|NAME] -- COMMAND...",
        after_help = "KIND is tools, resources, templates or prompts; NAME is one of them."
    )]
    List(ListArguments),
    /// Call a tool
    #[command(
        override_usage = "duplexer call [OPTIONS] URL TOOL [ARGUMENT]...\n       \
        duplexer call [OPTIONS] TOOL [ARGUMENT]... -- COMMAND...",
        after_help = "An ARGUMENT is name=text, or name:=json for numbers, lists and all the rest. name=@file and \
        name:=@file take the text or the JSON from a file; name=@@text is a text that begins with @."
    )]
    Call(CallArguments),
    /// Look at a task, wait for it, or cancel it
    #[command(subcommand)]
    Task(TaskVerb),
    /// Read a resource
    #[command(
        override_usage = "duplexer read [OPTIONS] URL RESOURCE\n       duplexer read [OPTIONS] RESOURCE -- COMMAND...",
        after_help = "Bytes go to standard output as they are, unless that is a terminal."
    )]
    Read(Request),
    /// Fill a prompt
    #[command(override_usage = "duplexer prompt [OPTIONS] URL PROMPT [name=text]...\n       \
        duplexer prompt [OPTIONS] PROMPT [name=text]... -- COMMAND...")]
    Prompt(Request),
    /// Suggest values for an argument of a prompt or a variable of a resource template
    #[command(
        override_usage = "duplexer complete [OPTIONS] URL OF NAME=PART [known=text]...\n       \
        duplexer complete [OPTIONS] OF NAME=PART [known=text]... -- COMMAND...",
        after_help = "OF is the name of a prompt, or a resource template; PART is the begin of the value."
    )]
    Complete(Request),
    /// Show change notifications of a server, until Ctrl-C
    #[command(
        override_usage = "duplexer listen [OPTIONS] URL [RESOURCE]...\n       \
        duplexer listen [OPTIONS] [RESOURCE]... -- COMMAND...",
        after_help = "Changes of lists are always shown, those of resources only for each given RESOURCE."
    )]
    Listen(Request),
    /// Check whether a server responds, and which revision it uses
    #[command(override_usage = "duplexer ping [OPTIONS] URL\n       duplexer ping [OPTIONS] -- COMMAND...")]
    Ping(Request),
    /// Check a server for faults that hosts and users meet
    #[command(
        override_usage = "duplexer doctor [OPTIONS] URL\n       duplexer doctor [OPTIONS] -- COMMAND...",
        after_help = "Exits with 1 if there are errors; with --strict also if there are warnings."
    )]
    Doctor(DoctorArguments),
    /// Measure rate and latency of a server
    #[command(
        override_usage = "duplexer bench [OPTIONS] URL [TOOL [ARGUMENT]...]\n       \
        duplexer bench [OPTIONS] [TOOL [ARGUMENT]...] -- COMMAND...",
        after_help = "Without a TOOL it requests the list of tools, or sends pings to a server that has none."
    )]
    Bench(BenchArguments),
    /// Pass messages on and write them into a file
    #[command(override_usage = "duplexer record [OPTIONS] -o FILE URL\n       \
        duplexer record [OPTIONS] -o FILE -- COMMAND...")]
    Record(RecordArguments),
    /// Serve the answers of a recorded file
    Replay(ReplayArguments),
    /// Show a server on a page in the browser: what it offers, calls, and every message
    #[command(
        override_usage = "duplexer inspect [OPTIONS] URL|NAME\n       duplexer inspect [OPTIONS] -- COMMAND...",
        after_help = "The page is for this machine only, and its address contains a token of this start."
    )]
    Inspect(InspectArguments),
    /// List, show and fetch skills of a server, or serve a directory of them
    #[command(subcommand)]
    Skills(SkillsVerb),
    /// Offer a server over another transport, and in both eras of the protocol
    #[command(
        override_usage = "duplexer proxy [OPTIONS] URL\n       duplexer proxy [OPTIONS] -- COMMAND...",
        after_help = "Without --listen it serves standard input and output, as hosts start it. A lost connection is opened \
        again, a program that ends is started again; the client's own connection stays."
    )]
    Proxy(ProxyArguments),
    /// Offer all servers of an `mcp.json` as one
    #[command(
        after_help = "A tool `read` of the server `files` is called `files__read`. In the file, a server can have `prefix`, \
        `allow` and `deny`; the last two are lists of names, which can end in *. Changes of the file are applied at once."
    )]
    Gateway(GatewayArguments),
    /// Add a server to the programs that use servers: Claude, Cursor, VS Code, Codex, Gemini CLI, Goose, Zed
    #[command(
        override_usage = "duplexer install [OPTIONS] NAME URL\n       duplexer install [OPTIONS] NAME -- COMMAND...",
        after_help = "Only the entry is written; all other bytes of a file stay, and a copy of it is made. Paths become \
        absolute. `duplexer uninstall NAME` removes the entry."
    )]
    Install(InstallArguments),
    /// Remove a server from the programs that use it
    Uninstall(UninstallArguments),
    /// Show which servers are configured, in which program
    Servers(ServersArguments),
    /// Pack a server into an MCPB bundle, which hosts install with a click
    #[command(override_usage = "duplexer bundle --author NAME [OPTIONS] -- COMMAND...")]
    Bundle(BundleArguments),
    /// Build and start a server again when its sources change, and keep its clients connected
    #[command(
        override_usage = "duplexer dev [OPTIONS] -- COMMAND...",
        after_help = "Without --listen it serves standard input and output, as hosts start it. While a build fails, the \
        earlier server goes on. After one that succeeds, clients are notified that lists have changed. For `cargo run` the \
        build is `cargo build`; other programs are only started again, unless --build is given."
    )]
    Dev(DevArguments),
    /// Create a project of a server that builds and whose tests pass
    New(NewArguments),
    /// Print the script that completes command lines in a shell
    #[command(after_help = "The first lines of each script say how it is used.")]
    Completions(CompletionsArguments),
    /// Answer the script of a shell
    #[command(hide = true)]
    CompleteLine(LineArguments),
    /// Print the manual page, or write the pages of all verbs
    Man(ManArguments),
    /// Log in at a server that requires it; other verbs do so when they run in a terminal
    Login(AccountArguments),
    /// Revoke the tokens of a server and forget them
    Logout(AccountArguments),
    /// Show whether there is a token for a server
    Status(AccountArguments),
    /// Print the version and the supported protocol revisions
    Version,
}

/// A request for lists.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// Show the schemas of tools, as the server sent them
    #[arg(long, conflicts_with = "json")]
    pub(crate) schema: bool,
    #[command(flatten)]
    pub(crate) request: Request,
}

/// A call of a tool.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// Print the id of the task and leave it alone, if the server runs the call as a task
    #[arg(long)]
    pub(crate) detach: bool,
    #[command(flatten)]
    pub(crate) request: Request,
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
    /// Write the result into a file: pictures, sounds and blobs as bytes (several get numbers), anything else as text
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
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
    #[command(flatten)]
    pub(crate) login: LoginArguments,
    /// Add a variable to the environment of the program, which otherwise gets little more than PATH and HOME
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Tell the server that it may work on this folder; can be given several times
    #[arg(long = "root", value_name = "DIR")]
    pub(crate) roots: Vec<PathBuf>,
    /// Answer requests for a model by this shell command: it reads the request as JSON and prints the answer
    #[arg(long, value_name = "COMMAND")]
    pub(crate) sample: Option<String>,
    /// Show log messages of the server from this level on
    #[arg(long, value_name = "LEVEL", value_parser = level)]
    pub(crate) log: Option<LoggingLevel>,
    /// Show all protocol messages on standard error
    #[arg(long)]
    pub(crate) trace: bool,
}

impl SessionArguments {
    /// Returns the name of the option that gives a token.
    pub(crate) fn token_option(&self) -> Option<&'static str> {
        let in_header = || self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if self.login.token.is_some() {
            return Some("--token");
        }
        in_header().then_some("--header")
    }
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
    use super::*;

    #[test]
    fn the_command_line_is_well_described() {
        described().debug_assert();
    }

    #[test]
    fn the_help_of_the_program_is_about_the_verbs() {
        let top = described().render_long_help().to_string();
        assert!(top.contains("listen") && !top.contains("--port"), "{top}");
        let verbs = top.find("Commands:").unwrap();
        assert!(verbs < top.find("Options:").unwrap(), "{top}");
        let mut all = described();
        let demo = all.find_subcommand_mut("demo").unwrap().render_long_help().to_string();
        assert!(demo.contains("--port") && demo.contains("--verbose"), "{demo}");
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
