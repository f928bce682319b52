//! The verbs of transcripts.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::proxy::address;
use super::{LoginArguments, header, variable};

/// A server, and where its messages are written.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArguments {
    /// The URL of the server, or its name in mcp.json
    #[arg(value_name = "URL", hide = true)]
    pub(crate) target: Option<String>,
    /// Start this program as the server and connect to its standard input and output
    #[arg(last = true, conflicts_with = "target", required_unless_present = "target")]
    pub(crate) command: Vec<OsString>,
    /// Write the transcript into this file, which must not exist
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    pub(crate) force: bool,
    /// Serve HTTP on this address, or on this port of this machine, instead of standard input and output
    #[arg(long, short, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Add a header to every HTTP request, such as 'Authorization: Bearer ...'
    #[arg(long = "header", short = 'H', value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) login: LoginArguments,
    /// Add a variable to the environment of the program, which otherwise gets little more than PATH and HOME
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}

/// A transcript, and how it is served.
#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The transcript
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Serve HTTP on this address, or on this port of this machine, instead of standard input and output
    #[arg(long, short, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
}
