//! Progress reports of a request: the builder that handlers await, and the check that reports grow.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task;

use duplexer_types::jsonrpc::{Body, RequestId};
use duplexer_types::methods::{self, Notification};
use duplexer_types::progress::ProgressParams;
use duplexer_types::version::ProtocolVersion;

use super::ask::TypedParams;
use super::{Context, Scope, meta_of};
use duplexer_core::dispatch::{Message, NotifyFuture};

impl<S> Context<S> {
    /// Reports progress with `notifications/progress` when the returned report is awaited. Does nothing if the request
    /// carries no progress token. The value must grow with every report.
    ///
    /// ```
    /// # async fn scan(cx: duplexer_server::Context) {
    /// for page in 1..=3 {
    ///     cx.progress(page).total(3).message("scanning").await;
    /// }
    /// # }
    /// ```
    #[doc(alias("report_progress", "notification"))]
    #[inline]
    pub fn progress(&self, progress: impl Amount) -> ProgressReport<'_> {
        ProgressReport {
            scope: &self.scope,
            request: self.message(),
            progress: progress.to_f64(),
            total: None,
            message: None,
        }
    }
}

/// A number of any type, for progress: JSON has only one.
///
/// The trait is sealed: it is implemented for the integers and floats of the language.
pub trait Amount: sealed::Sealed {
    #[doc(hidden)]
    fn to_f64(self) -> f64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! amounts {
    ($($number:ty)*) => {$(
        impl sealed::Sealed for $number {}

        impl Amount for $number {
            #[inline]
            #[allow(clippy::cast_precision_loss, clippy::cast_lossless, reason = "one macro for all numbers")]
            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}

amounts!(u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64);

/// One progress report, returned by [`Context::progress`]. It is sent when it is awaited.
///
/// ```
/// use duplexer::{Context, Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// async fn copy(cx: Context) {
///     for file in 1..=3 {
///         cx.progress(file).total(3).message("copying").await;
///     }
/// }
///
/// let server = Server::builder("files", "1.0.0").tool(Tool::new("copy", copy)).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # let (reports, seen) = std::sync::mpsc::channel();
/// # client.call_tool("copy", ()).on_progress(move |report| reports.send(report.progress).unwrap()).await?;
/// # assert_eq!(seen.iter().collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
/// # Ok(())
/// # }
/// ```
#[must_use = "a progress report is sent when it is awaited"]
pub struct ProgressReport<'a> {
    scope: &'a Arc<Scope>,
    request: &'a Message,
    progress: f64,
    total: Option<f64>,
    message: Option<&'a str>,
}

impl<'a> ProgressReport<'a> {
    /// Sets the value at which the work is complete.
    #[inline]
    pub fn total(mut self, total: impl Amount) -> Self {
        self.total = Some(total.to_f64());
        self
    }

    /// Sets a text for the user.
    #[inline]
    pub fn message(mut self, message: &'a str) -> Self {
        self.message = Some(message);
        self
    }

    /// Sends the report from a [blocking tool](crate::tool::Tool::blocking), which cannot await it. Waits while the client
    /// reads slowly, and returns at once when the request is cancelled.
    ///
    /// # Panics
    ///
    /// Panics in async code, where it would block the thread of the runtime: await the report there.
    pub fn blocking_send(self) {
        let channel = Arc::clone(&self.scope.call.channel);
        let mut sending = self.send();
        // Without a waker first: usually the queue has capacity.
        if Pin::new(&mut sending).poll(&mut task::Context::from_waker(task::Waker::noop())).is_ready() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.block_on(async {
                tokio::select! {
                    () = sending => {}
                    () = channel.cancellation().cancelled() => {}
                }
            });
        }
    }

    fn send(self) -> NotifyFuture {
        let Self { scope, request, progress, total, message } = self;
        if cfg!(debug_assertions) && scope.last_progress.falls_back(progress) {
            let method = request.method();
            tracing::warn!(?method, progress, "progress must grow with every report, and did not");
        }
        if let Some(task) = scope.task() {
            task.report(progress, total, message);
        }
        let token = scope.progress_token.get_or_init(|| meta_of(request).progress_token);
        let Some(token) = token else { return NotifyFuture::done() };
        let body = ProgressBody { token, progress, total, message, version: scope.version };
        scope.call.channel.notify(methods::Progress::METHOD.name(), Some(&body))
    }
}

impl IntoFuture for ProgressReport<'_> {
    type Output = ();
    type IntoFuture = NotifyFuture;

    #[inline]
    fn into_future(self) -> NotifyFuture {
        self.send()
    }
}

impl fmt::Debug for ProgressReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressReport")
            .field("progress", &self.progress)
            .field("total", &self.total)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}

/// The params of a report. They are built while they are written, because reports are frequent and often not sent.
struct ProgressBody<'a> {
    token: &'a RequestId,
    progress: f64,
    total: Option<f64>,
    message: Option<&'a str>,
    version: ProtocolVersion,
}

impl Body for ProgressBody<'_> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let mut params = ProgressParams::new(self.token.clone(), self.progress);
        params.total = self.total;
        params.message = self.message.map(Into::into);
        TypedParams(&params, self.version).write(out)
    }
}

/// The last value that a request reported, as the bits of an `f64`.
#[derive(Debug)]
pub(super) struct LastProgress(AtomicU64);

/// Set after the first warning, so that a request logs at most one.
const WARNED: u64 = f64::INFINITY.to_bits();

impl LastProgress {
    pub(super) fn none() -> Self {
        Self(AtomicU64::new(f64::NEG_INFINITY.to_bits()))
    }

    /// Stores a report. Returns true for the first report of a request that is not greater than the one before.
    pub(super) fn falls_back(&self, progress: f64) -> bool {
        let mut last = self.0.load(Ordering::Relaxed);
        loop {
            if last == WARNED {
                return false;
            }
            let grows = progress > f64::from_bits(last);
            let next = if grows { progress.to_bits() } else { WARNED };
            match self.0.compare_exchange_weak(last, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return !grows,
                Err(now) => last = now,
            }
        }
    }
}

#[cfg(test)]
mod tests;
