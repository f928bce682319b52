//! The verb that checks a server.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use super::{header, seconds, variable};

/// A server to check, and how the result is printed.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorArguments {
    /// The URL of the server, or its name in mcp.json
    #[arg(value_name = "URL", hide = true)]
    pub(crate) target: Option<String>,
    /// Check this program, which serves its standard input and output; it is started several times
    #[arg(last = true, conflicts_with = "target", required_unless_present = "target")]
    pub(crate) command: Vec<OsString>,
    /// Print the result as JSON, on one line
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the result as JUnit XML, with one test case per rule
    #[arg(long, conflicts_with = "json")]
    pub(crate) junit: bool,
    /// Fail for warnings too
    #[arg(long)]
    pub(crate) strict: bool,
    /// Time limit for each answer, and for the end of the program: 10 seconds by default
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,
    /// Add a header to every HTTP request
    #[arg(long = "header", short = 'H', value_name = "NAME:VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// Send this token, to check what is behind a login
    #[arg(long, value_name = "TOKEN")]
    pub(crate) token: Option<String>,
    /// Add a variable to the environment of the program, which otherwise gets little more than PATH and HOME
    #[arg(long = "env", short = 'e', value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
}
