//! The audit log: who called what, when, with what outcome. One line of JSON per request, written before its response is.
//!
//! A line is written by the call itself, without a queue, so that none is lost between a call and the end of the process. A
//! line that cannot be written is counted, and the next line that can be written says how many are missing.

mod line;
mod output;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use self::line::{Ended, Facts};
use self::output::Output;
use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Default size at which a file is rotated.
const ROTATE_AT: u64 = 64 << 20;
/// Default number of rotated files.
const KEEP: usize = 9;

/// Writes one line of JSON per request: time, caller, method, name, outcome, duration, and a SHA-256 of the arguments. The
/// arguments themselves are written only if [`AuditLogBuilder::with_arguments`] says so.
///
/// ```
/// use duplexer::middleware::AuditLog;
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// # let path = std::env::temp_dir().join(format!("duplexer-audit-{}.jsonl", std::process::id()));
/// let audit = AuditLog::file(&path).rotate_at(16 << 20).keep(20).open()?;
/// let server = Server::builder("archive", "1.0.0")
///     .middleware(audit.clone())
///     .tool(Tool::new("open", || async { "opened" }))
///     .build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # client.call_tool("open", ()).await?;
/// # let line = std::fs::read_to_string(&path)?;
/// # assert!(line.contains(r#""method":"tools/call","name":"open""#), "{line}");
/// # assert_eq!(audit.lost(), 0);
/// # std::fs::remove_file(path)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AuditLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    output: Output,
    arguments: Arguments,
}

/// What a line has of the arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arguments {
    Hash,
    Text,
}

impl AuditLog {
    /// Writes to a file, which is rotated: `audit.jsonl` becomes `audit.jsonl.1`, and that `audit.jsonl.2`. Only one process can
    /// write to it.
    pub fn file(path: impl Into<PathBuf>) -> AuditLogBuilder {
        AuditLogBuilder { path: path.into(), rotate_at: ROTATE_AT, keep: KEEP, arguments: Arguments::Hash }
    }

    /// Writes to a stream, such as standard error or a pipe. Each line is one write. A slow reader delays requests.
    pub fn stream(stream: impl io::Write + Send + 'static) -> Self {
        Self(Arc::new(Shared { output: Output::stream(stream), arguments: Arguments::Hash }))
    }

    /// Returns how many lines could not be written since the start.
    pub fn lost(&self) -> u64 {
        self.0.output.lost()
    }
}

/// Settings of an [`AuditLog`] that writes to a file.
///
/// ```no_run
/// use duplexer::middleware::AuditLog;
///
/// let audit = AuditLog::file("/var/log/archive/audit.jsonl").with_arguments().open()?;
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is written until the file is opened"]
pub struct AuditLogBuilder {
    path: PathBuf,
    rotate_at: u64,
    keep: usize,
    arguments: Arguments,
}

impl AuditLogBuilder {
    /// Sets the size, in bytes, at which the file is rotated. Default: 64 MiB.
    pub fn rotate_at(mut self, bytes: u64) -> Self {
        self.rotate_at = bytes.max(1);
        self
    }

    /// Sets how many rotated files are kept beside the current one. Default: 9.
    pub fn keep(mut self, files: usize) -> Self {
        self.keep = files;
        self
    }

    /// Writes the arguments too. They can contain secrets and personal data.
    pub fn with_arguments(mut self) -> Self {
        self.arguments = Arguments::Text;
        self
    }

    /// Opens the file, and appends to it if it exists.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened for appending; its folder must exist. The text names the file.
    pub fn open(self) -> io::Result<AuditLog> {
        let name = self.path.display().to_string();
        let output = Output::file(self.path, self.rotate_at, self.keep)
            .map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
        Ok(AuditLog(Arc::new(Shared { output, arguments: self.arguments })))
    }
}

impl Middleware for AuditLog {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if cx.request_id().is_none() {
            return next.run(cx, message);
        }
        let entry = Entry {
            log: Some(Arc::clone(&self.0)),
            cx: cx.clone(),
            message: message.clone(),
            time: SystemTime::now(),
            start: Instant::now(),
        };
        Box::pin(async move {
            let outcome = next.run(cx, message).await;
            entry.end(&outcome);
            outcome
        })
    }
}

/// A request that has begun. It is written once, also if it is dropped.
struct Entry {
    log: Option<Arc<Shared>>,
    cx: Context,
    message: Message,
    time: SystemTime,
    start: Instant,
}

impl Entry {
    fn end(mut self, outcome: &Result<Outcome, McpError>) {
        self.write(Ended::of(outcome));
    }

    fn write(&mut self, result: Ended) {
        let Some(log) = self.log.take() else { return };
        let facts =
            Facts { cx: &self.cx, message: &self.message, time: self.time, elapsed: self.start.elapsed() };
        log.output.write(&facts.line(result, log.arguments));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.write(Ended::dropped());
    }
}
