//! The verbs of skills.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::Request;

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsVerb {
    /// Show which skills a server offers
    #[command(
        override_usage = "duplexer skills list [OPTIONS] URL\n       duplexer skills list [OPTIONS] -- COMMAND..."
    )]
    List(Request),
    /// Show the entry and the instructions of a skill
    #[command(
        override_usage = "duplexer skills show [OPTIONS] URL SKILL\n       \
        duplexer skills show [OPTIONS] SKILL -- COMMAND...",
        after_help = "SKILL is a name, or the URI of a SKILL.md. What is shown has been verified against the entry."
    )]
    Show(Request),
    /// Write the files of a skill into a new directory, each verified
    #[command(
        override_usage = "duplexer skills fetch [OPTIONS] URL SKILL\n       \
        duplexer skills fetch [OPTIONS] SKILL -- COMMAND...",
        after_help = "The directory has the name of the skill; --output gives another one. Nothing is written unless \
        every file is the one that the entry lists."
    )]
    Fetch(Request),
    /// Serve the skills below a directory
    Serve(ServeArguments),
}

/// A directory of skills, and where it is served.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServeArguments {
    /// The directory: each directory in it with a SKILL.md is a skill
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Serve standard input and output instead of HTTP
    #[arg(long, conflicts_with_all = ["host", "port"])]
    pub(crate) stdio: bool,
    /// Listen on this address
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) host: IpAddr,
    /// Listen on this port; 0 selects a free one
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
}
