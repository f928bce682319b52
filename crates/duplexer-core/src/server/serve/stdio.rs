//! Serving the standard streams of this process.

use std::time::Duration;

use tokio::runtime::Builder;
use tokio::time::{Instant, sleep, timeout};

use super::StreamServer;
use crate::dispatch::{DispatchOptions, Peer, RunError};
use crate::server::registry::{Running, Server, StartError};
use crate::transport::TransportError;
use crate::transport::signal::ShutdownSignals;
use crate::transport::stdio::Stdio;

/// From the end of input, or the first signal, to the end of everything.
const END_BUDGET: Duration = Duration::from_secs(5);

/// Why a server on the standard streams ended otherwise than in order.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// There is no runtime to serve with.
    #[error("the runtime could not be started")]
    Runtime(#[source] std::io::Error),
    /// The standard streams cannot be used.
    #[error(transparent)]
    Claim(#[from] TransportError),
    /// A lifespan could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The connection broke.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Serves this process's standard streams until the client closes them or a signal asks for the end. The whole `main` of
/// most servers.
///
/// Owns its runtime and its signal handlers, so it returns within five seconds of the end of input, SIGTERM or SIGINT even
/// if a handler is stuck. Needs `panic = "unwind"`, the default: a panicking handler is then one failed request.
pub fn run_stdio(server: &Server) -> Result<(), StdioError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One more than there are cores: a handler that blocks its thread leaves enough to serve the others.
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores.max(2) + 1)
        .thread_name("duplexer")
        .enable_all()
        .build()
        .map_err(StdioError::Runtime)?;
    // On a worker, where the connection's own task runs beside its handlers without waking another thread.
    let server = server.clone();
    let serving = runtime.spawn(async move { serve_stdio(&server).await });
    let ended =
        runtime.block_on(serving).unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()));
    // Threads that are stuck in a handler are left to the end of the process.
    runtime.shutdown_background();
    ended
}

/// The same for those who own a multi-thread runtime. Catches SIGTERM and SIGINT while it serves.
pub async fn serve_stdio(server: &Server) -> Result<(), StdioError> {
    let transport = Stdio::claim()?;
    let mut signals = ShutdownSignals::listen().map_err(TransportError::Io)?;
    let running = server.start().await?;
    let (stream, peer) = StreamServer::new(&running, transport, DispatchOptions::default());
    let stop_on_signals = async {
        loop {
            signals.next().await;
            peer.stop();
        }
    };
    let result = tokio::select! {
        result = stream.run() => result,
        () = stop_on_signals => Ok(()),
        () = overdue(&peer) => {
            tracing::warn!("the connection did not end in time and was cut");
            Ok(())
        }
    };
    finish(&running).await;
    result.map_err(Into::into)
}

/// Resolves when the end has taken too long.
async fn overdue(peer: &Peer) {
    peer.closing().await;
    sleep(END_BUDGET).await;
}

async fn finish(running: &Running) {
    let start = Instant::now();
    let rest = END_BUDGET / 5;
    if timeout(rest, running.shutdown_within(rest)).await.is_err() {
        tracing::warn!(elapsed = ?start.elapsed(), "the server's lifespans were cut");
    }
}
