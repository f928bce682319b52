//! The verb that opens the inspector page.

use std::ffi::OsString;

use clap::Args;

use super::{LoginArguments, header, variable};

/// A server, and where the page is served.
#[derive(Clone, Debug, Args)]
pub(crate) struct InspectArguments {
    /// The URL of the server, or its name in `mcp.json`
    #[arg(value_name = "URL|NAME", hide = true)]
    pub(crate) target: Option<String>,
    /// Start this program as the server and connect to its standard input and output
    #[arg(last = true, conflicts_with = "target", required_unless_present = "target")]
    pub(crate) command: Vec<OsString>,
    /// Serve the page on this port of this machine; 0 selects a free one
    #[arg(long, short, default_value_t = 0)]
    pub(crate) port: u16,
    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Add a header to every HTTP request, such as 'Authorization: Bearer ...'
    #[arg(long = "header", short = 'H', value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    #[command(flatten)]
    pub(crate) login: LoginArguments,
    /// Add a variable to the environment of the program, which otherwise gets little more than PATH and HOME
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}
