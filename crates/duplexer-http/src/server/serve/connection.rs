//! One connection: its limits, its version of HTTP, and its end.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use duplexer_core::tasks::TaskTracker;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::time::{sleep, timeout};

use super::LATE_TIMEOUT;
use super::connection_service::ConnectionService;
use super::http_version::{HttpVersion, recognize};
use super::io::{Limits, TimedIo};
use super::listener::Io;
use crate::server::service_state::ServiceState;

/// Time within which a peer must send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that an idle connection stays open: longer than most clients keep theirs.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Maximum number of headers of a request.
const MAX_HEADERS: usize = 100;
/// Maximum size of the head of a request.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Maximum size of the buffer that the body of an HTTP/1 request is read into. The head is read by itself, up to its limit;
/// with this buffer a body of 1 MiB takes no more reads than with a server without that limit.
const MAX_BUFFER_BYTES: usize = 512 * 1024;
/// Maximum number of concurrent requests on one HTTP/2 connection.
const MAX_STREAMS: u32 = 256;

/// Serves one connection until it ends, or until the service shuts down.
pub(super) async fn connection<I: Io>(io: I, state: Arc<ServiceState>, service: ConnectionService) {
    let limits = Limits {
        head_bytes: MAX_HEAD_BYTES,
        head: HEADER_TIMEOUT,
        idle: IDLE_TIMEOUT,
        write: state.config.timing.unread,
    };
    let io = TimedIo::new(io, limits, Arc::clone(&service.state));
    let silent = async {
        state.closing.cancelled().await;
        if state.accepts_until_the_end() {
            // Its first request can be on the way, and gets a response that says when to come back.
            sleep(LATE_TIMEOUT).await;
        }
    };
    let recognized = tokio::select! {
        biased;
        recognized = recognize(io) => recognized,
        () = silent => return,
    };
    let (version, io) = match recognized {
        Ok(recognized) => recognized,
        Err(error) => return tracing::debug!(%error, "a connection broke before its first request"),
    };
    let (io, service) = (TokioIo::new(io), service_fn(move |request| service.call(request)));
    match version {
        HttpVersion::Http1 => {
            let connection = pin!(http1_builder().serve_connection(io, service));
            // A balancer that keeps the connection open may have sent a request on it, and does not repeat it.
            let rest = if state.accepts_until_the_end() { LATE_TIMEOUT } else { Duration::ZERO };
            drive(connection, http1::Connection::graceful_shutdown, &state, rest).await;
        }
        // Boxed, because the tasks of other connections should not have its size.
        HttpVersion::Http2 => {
            let mut connection = Box::pin(http2_builder().serve_connection(io, service));
            let shut_down = http2::Connection::graceful_shutdown;
            // The peer learns which requests are not served.
            drive(connection.as_mut(), shut_down, &state, Duration::ZERO).await;
        }
    }
}

/// Drives a connection of either version. `shut_down` ends it after its requests in flight, when the service has been closing
/// for as long as `rest`. The connection is borrowed: a future that owns what it pins has room for it twice.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    mut connection: Pin<&mut C>,
    shut_down: impl FnOnce(Pin<&mut C>),
    state: &ServiceState,
    rest: Duration,
) {
    // A connection that arrives during the shutdown gets a response that says so.
    let is_late = state.closing.is_cancelled();
    let closing = async {
        if is_late {
            sleep(LATE_TIMEOUT).await;
        } else {
            state.closing.cancelled().await;
        }
    };
    let mut closing = pin!(closing);
    let mut waits_for_closing = false;
    let ended = poll_fn(|cx| {
        if let Poll::Ready(ended) = connection.as_mut().poll(cx) {
            return Poll::Ready(Some(ended));
        }
        // Waiting takes a lock that all connections share. The waker of a task does not change, so it is registered
        // once.
        let is_closing = if waits_for_closing && !is_late {
            state.closing.is_cancelled()
        } else {
            closing.as_mut().poll(cx).is_ready()
        };
        waits_for_closing = true;
        if is_closing { Poll::Ready(None) } else { Poll::Pending }
    });
    let ended = if let Some(ended) = ended.await {
        ended
    } else {
        let rest = if is_late { Duration::ZERO } else { rest };
        if let Ok(ended) = timeout(rest, connection.as_mut()).await {
            ended
        } else {
            shut_down(connection.as_mut());
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

/// Executor of the HTTP library, for the requests of HTTP/2 connections.
#[derive(Clone, Default)]
struct Executor(TaskTracker);

impl<F> hyper::rt::Executor<F> for Executor
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, work: F) {
        self.0.spawn(work);
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    // The limits on heads are in `TimedIo`.
    builder.header_read_timeout(None).max_headers(MAX_HEADERS).max_buf_size(MAX_BUFFER_BYTES);
    builder
}

fn http2_builder() -> http2::Builder<Executor> {
    let mut builder = http2::Builder::new(Executor::default());
    builder
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(HEADER_TIMEOUT)
        .keep_alive_timeout(HEADER_TIMEOUT);
    builder
}
