//! The options of `duplexer demo`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
#[cfg(feature = "redis")]
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of the demo.
#[derive(Clone, Debug, Args)]
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
    /// Serve metrics as the text of Prometheus, at `/metrics` of this address
    #[arg(long, value_name = "IP:PORT", conflicts_with = "stdio")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Print a line on standard error for each request: method, name, outcome and time
    #[arg(long, short)]
    pub(crate) verbose: bool,
    /// Do not serve the inspector page at `/`
    #[arg(long)]
    pub(crate) no_inspector: bool,
    #[cfg(feature = "redis")]
    #[command(flatten)]
    pub(crate) shared: SharedArguments,
}

/// Options of a demo that is one node of several.
#[cfg(feature = "redis")]
#[derive(Clone, Debug, Args)]
pub(crate) struct SharedArguments {
    /// Share sessions, changes and tasks with other nodes on a Redis or Valkey. All nodes need the same secret, in
    /// `DUPLEXER_SECRET` or `--secret-file`
    #[arg(long, value_name = "URL", conflicts_with = "stdio")]
    pub(crate) redis: Option<String>,
    /// Name of this node, for people
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub(crate) node: Option<String>,
    /// Namespace of the keys in the store
    #[arg(long, value_name = "NAME", requires = "redis")]
    pub(crate) namespace: Option<String>,
    /// File with the secret that seals request states, at least 32 random bytes
    #[arg(long, value_name = "PATH", requires = "redis")]
    pub(crate) secret_file: Option<PathBuf>,
}

/// Authorization server of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuthChoice {
    /// The demo itself
    Dev,
}
