//! Serves the standard streams of this process.

use std::convert::Infallible;
use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep};

use super::StreamServer;
use crate::registry::{Server, StartError};
use duplexer_core::dispatch::{AnnouncedWatchdog, DispatchOptions, Peer, RunError};
use duplexer_core::error::Chain;
use duplexer_core::shutdown_signal::ShutdownSignals;
use duplexer_core::stderr_log;
use duplexer_core::transport::TransportError;
use duplexer_core::transport::stdio::Stdio;

/// Maximum time from the end of the drain to the end of the process.
const END_BUDGET: Duration = Duration::from_secs(5);
/// A longer drain counts as this, so that a deadline can be computed.
const MAX_DRAIN: Duration = Duration::from_secs(24 * 3600);
/// Part of that time that is reserved for the end of the process itself.
const MARGIN: Duration = Duration::from_millis(100);
/// The watchdog's thread starts this much later than the server, so that it does not delay the first response.
const WATCHDOG_DELAY: Duration = Duration::from_millis(5);

/// Error of a server on the standard streams.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StdioError {
    /// The runtime could not be started.
    #[error("the runtime could not be started")]
    Runtime(#[source] std::io::Error),
    /// The standard streams cannot be used.
    #[error(transparent)]
    Claim(#[from] TransportError),
    /// A lifespan could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The connection failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// The text with its causes, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for StdioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}

/// Serves the standard streams of this process until the client closes them or a signal arrives. It is the whole `main`
/// of most servers.
///
/// It owns its runtime and its signal handlers, so it returns within 15 seconds of SIGTERM or SIGINT whatever the
/// handlers do, and within 15 seconds of the end of input as long as handlers do not block every thread: 10 for requests
/// in flight ([`DispatchLimits::drain`](duplexer_core::dispatch::DispatchLimits::drain)), which a second signal ends, and 5
/// for the teardown. It needs `panic = "unwind"`, the default: a panicking handler is then one failed request.
///
/// If no `tracing` subscriber is installed, errors and panics of handlers are printed to standard error, one line each.
/// Install any subscriber to replace that; `tracing::subscriber::NoSubscriber` prints nothing.
///
/// Handlers that block or compute without awaiting occupy the threads of the runtime. While they occupy all of them, no
/// response is written and the end of input is not noticed; only a signal ends the process then. Make such tools
/// [blocking](crate::tool::Tool::blocking): they run on threads of their own.
///
/// # Errors
///
/// Fails if the runtime, the streams or a lifespan cannot be set up, and if the connection fails.
#[doc(alias("stdin", "stdout", "run"))]
pub fn run_stdio(server: &Server) -> Result<(), StdioError> {
    run_stdio_with(server, DispatchOptions::default())
}

/// Does the same as [`run_stdio`] with options, for example a hook that traces requests to the client.
///
/// # Errors
///
/// Fails like [`run_stdio`].
pub fn run_stdio_with(server: &Server, options: DispatchOptions) -> Result<(), StdioError> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // One more than there are cores: a handler that blocks its thread leaves enough threads for the others.
    let workers = Builder::new_multi_thread()
        .worker_threads(cores.max(2) + 1)
        .thread_name("duplexer")
        .enable_all()
        .build()
        .map_err(StdioError::Runtime)?;
    stderr_log::enable();
    let budget = shutdown_budget(&options);
    let (stop, stops) = watch::channel(());
    // Signals and the last deadline are watched on this thread, which no handler can block; before anything is served, because
    // a signal without a handler would end the process in the middle of a request.
    let front = Builder::new_current_thread().enable_all().build().map_err(StdioError::Runtime)?;
    let signals = front.block_on(async { ShutdownSignals::listen() }).map_err(TransportError::Io)?;
    let watchdog = AnnouncedWatchdog::announce();
    // On a worker thread, where the connection's task runs beside its handlers without waking another thread.
    let (mut serving, server) = (JoinSet::new(), server.clone());
    serving.spawn_on(async move { serve_until(&server, options, stops).await }, workers.handle());
    let ended = front.block_on(watch_serving(serving, signals, stop, budget, &watchdog));
    // Threads that are stuck in a handler end with the process.
    workers.shutdown_background();
    ended
}

/// Passes signals on to the task that serves, and waits for its end, after the first signal for no longer than `budget`.
async fn watch_serving(
    mut serving: JoinSet<Result<(), StdioError>>,
    signals: ShutdownSignals,
    stop: watch::Sender<()>,
    budget: Duration,
    watchdog: &AnnouncedWatchdog,
) -> Result<(), StdioError> {
    let mut asked = stop.subscribe();
    let overdue = async {
        let _ = asked.changed().await;
        sleep(budget).await;
    };
    let watched = async {
        sleep(WATCHDOG_DELAY).await;
        watchdog.start();
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        biased;
        ended = serving.join_next() => match ended.map(|ended| ended.map_err(JoinError::try_into_panic)) {
            Some(Ok(ended)) => ended,
            Some(Err(Ok(panic))) => std::panic::resume_unwind(panic),
            Some(Err(Err(_))) | None => Ok(()),
        },
        () = overdue => {
            tracing::warn!("handlers block every thread: the process ends without them");
            Ok(())
        }
        never = pass_on(signals, stop) => match never {},
        never = watched => match never {},
    }
}

/// Does the same as [`run_stdio`] on the caller's multi-thread runtime. Catches SIGTERM and SIGINT while it serves.
///
/// # Errors
///
/// Fails like [`run_stdio`].
pub async fn serve_stdio(server: &Server) -> Result<(), StdioError> {
    serve_stdio_with(server, DispatchOptions::default()).await
}

/// Does the same as [`serve_stdio`] with options.
///
/// # Errors
///
/// Fails like [`run_stdio`].
pub async fn serve_stdio_with(server: &Server, options: DispatchOptions) -> Result<(), StdioError> {
    stderr_log::enable();
    let signals = ShutdownSignals::listen().map_err(TransportError::Io)?;
    let (stop, stops) = watch::channel(());
    tokio::select! {
        biased;
        ended = serve_until(server, options, stops) => ended,
        never = pass_on(signals, stop) => match never {},
    }
}

async fn pass_on(mut signals: ShutdownSignals, stop: watch::Sender<()>) -> Infallible {
    loop {
        signals.next().await;
        // There is no receiver only when everything has ended.
        let _ = stop.send(());
    }
}

/// Serves until the end of input or the first stop. A second stop ends the drain.
async fn serve_until(
    server: &Server,
    options: DispatchOptions,
    mut stops: watch::Receiver<()>,
) -> Result<(), StdioError> {
    let transport = Stdio::claim()?;
    let running = tokio::select! {
        running = server.start() => running?,
        // Nothing has been accepted yet, so no response is pending.
        _ = stops.changed() => return Ok(()),
    };
    let end = End::within(shutdown_budget(&options));
    let (stream, peer) = StreamServer::new(&running, transport, options);
    let stop_when_asked = async {
        while stops.changed().await.is_ok() {
            peer.stop();
        }
        std::future::pending::<()>().await;
    };
    let result = tokio::select! {
        // The hooks leave half of the time for the lifespans.
        result = stream.run_and_close_within(|| end.left() / 2) => result,
        () = stop_when_asked => Ok(()),
        () = overdue(&peer, &end) => {
            tracing::warn!("the connection did not end in time and was cut");
            Ok(())
        }
    };
    running.shutdown_within(end.left()).await;
    result.map_err(Into::into)
}

/// Resolves when the shutdown has taken too long.
async fn overdue(peer: &Peer, end: &End) {
    peer.closing().await;
    sleep(end.left()).await;
}

/// Returns the maximum time from the end of input, or the first signal, to the end of the process.
fn shutdown_budget(options: &DispatchOptions) -> Duration {
    options.drain().min(MAX_DRAIN) + END_BUDGET
}

/// The deadline of the shutdown, set when the shutdown begins.
struct End {
    deadline: OnceLock<Instant>,
    budget: Duration,
}

impl End {
    fn within(budget: Duration) -> Self {
        Self { deadline: OnceLock::new(), budget: budget.saturating_sub(MARGIN) }
    }

    fn left(&self) -> Duration {
        let deadline = self.deadline.get_or_init(|| Instant::now() + self.budget);
        deadline.saturating_duration_since(Instant::now())
    }
}
