//! What servers of this program have in common: the HTTP service, and the failure to listen.

use std::io;
use std::net::{IpAddr, SocketAddr};

use duplexer::Server;
use duplexer_http::{ServeError, StreamableHttp};

use crate::failure::{Exit, Failure, chain};

/// Builds the service, reachable under the address it listens on.
pub(crate) fn service(server: Server, host: IpAddr) -> Result<StreamableHttp, Failure> {
    let service = StreamableHttp::builder(server);
    let service = match host {
        host if host.is_loopback() => service,
        // The host names of this machine are not known here.
        host if host.is_unspecified() => service.allow_any_host(),
        IpAddr::V4(host) => service.allow_host(&host.to_string()),
        IpAddr::V6(host) => service.allow_host(&format!("[{host}]")),
    };
    service.build().map_err(|error| Failure::usage(chain(&error)))
}

/// Converts the error of listening. `verb` is the one that listens.
pub(crate) fn not_listening(address: SocketAddr, error: &ServeError, verb: &str) -> Failure {
    match error {
        ServeError::Bind(cause) if cause.kind() == io::ErrorKind::AddrInUse => {
            let other = address.port().checked_add(1).unwrap_or(0);
            Failure::new(Exit::Connect, format!("{address} is taken by another program"))
                .hint(&format!("try `duplexer {verb} --port {other}`, or 0 for any that is free"))
        }
        other => Failure::new(Exit::Connect, format!("cannot listen on {address}: {}", chain(other))),
    }
}
