//! The verbs for people who write servers.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::proxy::address;
use super::variable;

/// A server that is being written.
#[derive(Clone, Debug, Args)]
pub(crate) struct DevArguments {
    /// The program that is the server, with its arguments
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
    /// Build with this shell command before the program is started again. Default: `cargo build` for `cargo run`
    #[arg(long, value_name = "COMMAND")]
    pub(crate) build: Option<String>,
    /// Watch this file or directory; can be given several times. Default: the directory of cargo's --manifest-path, or the current one
    #[arg(long = "watch", value_name = "PATH")]
    pub(crate) watched: Vec<PathBuf>,
    /// Serve HTTP on this address, or on this port of this machine, instead of standard input and output
    #[arg(long, short, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Add a variable to the environment of the program, which has those of this command too
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

/// A new project.
#[derive(Clone, Debug, Args)]
pub(crate) struct NewArguments {
    /// The directory of the project; its last part is the name of the package
    #[arg(value_name = "NAME")]
    pub(crate) directory: PathBuf,
    /// A server that hosts start, over standard input and output (this is the default)
    #[arg(long, group = "kind")]
    pub(crate) stdio: bool,
    /// A server on the network
    #[arg(long, group = "kind")]
    pub(crate) http: bool,
    /// A server on the network that requires a login, with an authorization server to try it
    #[arg(long, group = "kind")]
    pub(crate) auth: bool,
    /// Depend on the clone of Duplexer in this directory, and not on the one that this command was built from
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

/// A shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shell {
    Bash,
    Zsh,
    Fish,
    #[value(name = "powershell", alias = "pwsh")]
    Powershell,
}

/// Which script is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: Shell,
}

/// A command line that is being typed.
#[derive(Clone, Debug, Args)]
pub(crate) struct LineArguments {
    /// The shell that asks
    #[arg(value_enum)]
    pub(crate) shell: Shell,
    /// The words up to the cursor, the name of this command first; one word that holds the whole line in some shells
    #[arg(last = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Where manual pages go.
#[derive(Clone, Debug, Args)]
pub(crate) struct ManArguments {
    /// Write a page for each verb into this directory, such as ~/.local/share/man/man1
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
}
