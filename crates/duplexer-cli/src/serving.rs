//! What servers of this program have in common: the HTTP service, the failure to listen, and memory after a peak.

use std::hint::black_box;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use duplexer::Server;
use duplexer_http::{HttpConfigError, ServeError, SharedStores, StreamableHttp, StreamableHttpBuilder};

use crate::failure::{Exit, Failure, chain};

const SECRET: &str = "set DUPLEXER_SECRET to at least 32 random bytes, the same for all nodes, such as the output of \
    `openssl rand -hex 32`, or name a file that has them with `--secret-file`";

/// Time between two calls of the allocator while a server is idle. mimalloc returns free memory after one second.
const MEMORY_TICK: Duration = Duration::from_secs(1);
/// A block that mimalloc does not take from its small pages.
const LARGE_BLOCK: usize = 1 << 20;

/// Awaits the end of a server and allocates a large block now and then.
///
/// mimalloc returns the memory that a peak has left only when the program allocates or frees a page after its delay. An idle
/// server does neither.
pub(crate) async fn returning_memory<T>(end: impl Future<Output = T>) -> T {
    let mut end = std::pin::pin!(end);
    loop {
        if let Ok(ended) = tokio::time::timeout(MEMORY_TICK, &mut end).await {
            return ended;
        }
        drop(black_box(Vec::<u8>::with_capacity(LARGE_BLOCK)));
    }
}

/// Builds the service, reachable under the address it listens on. With stores it is one node of several.
pub(crate) fn service(
    server: Server,
    host: IpAddr,
    stores: Option<SharedStores>,
) -> Result<StreamableHttp, Failure> {
    let service = configured(server, host);
    let service = match stores {
        Some(stores) => service.scale_out(stores),
        None => service,
    };
    service.build().map_err(|error| {
        let failure = Failure::usage(chain(&error));
        match error {
            HttpConfigError::RandomStateKey => failure.hint(SECRET),
            _ => failure,
        }
    })
}

/// Returns the builder of a service that is reachable under the address it listens on.
pub(crate) fn configured(server: Server, host: IpAddr) -> StreamableHttpBuilder {
    let service = StreamableHttp::builder(server);
    match host {
        host if host.is_loopback() => service,
        // The host names of this machine are not known here.
        host if host.is_unspecified() => service.allow_any_host(),
        IpAddr::V4(host) => service.allow_host(&host.to_string()),
        IpAddr::V6(host) => service.allow_host(&format!("[{host}]")),
    }
}

/// Converts the error of listening. `option` is the verb with the option that sets the port.
pub(crate) fn not_listening(address: SocketAddr, error: &ServeError, option: &str) -> Failure {
    match error {
        ServeError::Bind(cause) if cause.kind() == io::ErrorKind::AddrInUse => {
            let other = address.port().checked_add(1).unwrap_or(0);
            Failure::new(Exit::Connect, format!("{address} is taken by another program"))
                .hint(&format!("try `duplexer {option} {other}`, or 0 for any that is free"))
        }
        other => Failure::new(Exit::Connect, format!("cannot listen on {address}: {}", chain(other))),
    }
}
