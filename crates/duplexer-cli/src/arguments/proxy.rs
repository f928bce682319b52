//! The verbs that offer other servers.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{LoginArguments, header, seconds, variable};

/// A server, and how it is offered.
#[derive(Clone, Debug, Args)]
pub(crate) struct ProxyArguments {
    /// The URL of the server
    #[arg(value_name = "URL", hide = true)]
    pub(crate) url: Option<String>,
    /// Start this program as the server and connect to its standard input and output
    #[arg(last = true, conflicts_with = "url", required_unless_present = "url")]
    pub(crate) command: Vec<OsString>,
    /// Serve HTTP on this address, or on this port of this machine, instead of standard input and output
    #[arg(long, short, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Store messages for a while, so that clients can resume streams that have broken off; calls cost more then
    #[arg(long, requires = "listen")]
    pub(crate) resumable: bool,
    /// Use one session, or one program, for all clients; a server of the handshake era cannot ask them anything then
    #[arg(long)]
    pub(crate) shared: bool,
    /// Time limit for each call: an hour by default
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
}

/// A configuration, and how its servers are offered.
#[derive(Clone, Debug, Args)]
pub(crate) struct GatewayArguments {
    /// The file with the servers: `mcp.json` of Claude, Cursor or VS Code
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
    /// Serve HTTP on this address, or on this port of this machine, instead of standard input and output
    #[arg(long, short, value_name = "ADDR", value_parser = address)]
    pub(crate) listen: Option<SocketAddr>,
    /// Read the file once, and not again when it changes
    #[arg(long)]
    pub(crate) no_reload: bool,
}

/// Reads an address, or only a port.
pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix(':').or_else(|| text.strip_prefix("localhost:")).unwrap_or(text);
    let port = port.parse().map_err(|_| "an address is IP:PORT or PORT".to_owned())?;
    Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_can_be_a_port() {
        for (text, expected) in [
            ("8000", "127.0.0.1:8000"),
            (":0", "127.0.0.1:0"),
            ("localhost:9", "127.0.0.1:9"),
            ("0.0.0.0:80", "0.0.0.0:80"),
            ("[::1]:80", "[::1]:80"),
        ] {
            assert_eq!(address(text).map(|address| address.to_string()), Ok(expected.to_owned()));
        }
        assert!(address("here").is_err() && address("1.2.3.4").is_err() && address("70000").is_err());
    }
}
