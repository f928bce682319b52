//! The verbs about programs that use servers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::{header, variable};
use crate::hosts::Host;

/// A server, and where it is installed.
#[derive(Clone, Debug, Args)]
pub(crate) struct InstallArguments {
    /// The name of the server: letters, digits, - and _
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The URL of the server
    #[arg(value_name = "URL", hide = true)]
    pub(crate) url: Option<String>,
    /// The program that is the server, with its arguments
    #[arg(last = true, conflicts_with = "url", required_unless_present = "url")]
    pub(crate) command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) files: FileArguments,
    /// Print the entries instead of writing them
    #[arg(long)]
    pub(crate) print: bool,
    /// Replace an entry of this name
    #[arg(long)]
    pub(crate) force: bool,
    /// Add a variable to the environment of the program
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable, requires = "command")]
    pub(crate) env: Vec<(String, String)>,
    /// Add a header to every HTTP request, such as 'Authorization: Bearer ...'
    #[arg(long = "header", short = 'H', value_name = "NAME:VALUE", value_parser = header, requires = "url")]
    pub(crate) headers: Vec<(String, String)>,
}

/// A server, and where it is removed.
#[derive(Clone, Debug, Args)]
pub(crate) struct UninstallArguments {
    /// The name of the server
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) files: FileArguments,
}

/// Files of hosts.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FileArguments {
    /// Only this host; can be given several times. Default: all that are found on this machine
    #[arg(long = "host", value_name = "HOST", value_enum)]
    pub(crate) hosts: Vec<Host>,
    /// Use the files of the project in the current directory, such as .mcp.json and .vscode/mcp.json
    #[arg(long)]
    pub(crate) project: bool,
    /// Use this file of the one host that --host names
    #[arg(long, value_name = "FILE", requires = "hosts", conflicts_with = "project")]
    pub(crate) config: Option<PathBuf>,
}

/// What is listed.
#[derive(Clone, Debug, Args)]
pub(crate) struct ServersArguments {
    /// Only this host; can be given several times
    #[arg(long = "host", value_name = "HOST", value_enum)]
    pub(crate) hosts: Vec<Host>,
    /// Print one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A program, and the bundle that is made from it.
#[derive(Clone, Debug, Args)]
pub(crate) struct BundleArguments {
    /// The program that is the server, with its arguments; it is started once, to ask for its name, version and tools
    #[arg(last = true, required = true)]
    pub(crate) command: Vec<OsString>,
    /// Write the bundle here. Default: NAME.mcpb
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The author, whom hosts show
    #[arg(long, value_name = "NAME")]
    pub(crate) author: String,
    /// Describe the server in one sentence. Default: its instructions or title
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    /// The picture that hosts show, a PNG file
    #[arg(long, value_name = "FILE")]
    pub(crate) icon: Option<PathBuf>,
    /// Add a file or a folder; the program finds it next to itself. A path within the current directory keeps its folders
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<PathBuf>,
    /// Add a variable to the environment of the program, here and in hosts
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The version of the bundle. Default: the one of the server
    #[arg(long, value_name = "VERSION")]
    pub(crate) bundle_version: Option<String>,
    /// Replace a bundle that exists
    #[arg(long)]
    pub(crate) force: bool,
}
