//! A process of the program that is checked, and the lines that it writes.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::dispatch::lock;
use duplexer::transport::child::{Child, Stderr};
use duplexer::transport::{FrameReader, FrameWriter, Frames, Incoming, Transport as _};
use duplexer::types::methods::Method;
use duplexer::types::text::shown;
use duplexer::types::version::Era;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::super::messages::{self, Answer};
use super::super::offers::Channel;
use super::super::report::Report;
use super::super::rules;
use crate::failure::Failure;
use crate::target::Program;

/// Maximum lines of standard error that are kept.
const LAST_LINES: usize = 3;
/// Maximum violations that are kept per process.
const MAX_VIOLATIONS: usize = 8;
/// A line that is no JSON.
const GARBAGE: &[u8] = b"{\"jsonrpc\": \"2.0\", ";

/// What was wrong with the output of a process.
enum Violation {
    Noise(String),
    Message(String),
    Id(String),
}

/// A running process.
pub(super) struct Process {
    reader: Box<dyn FrameReader>,
    writer: Box<dyn FrameWriter>,
    child: Child,
    era: Era,
    limit: Duration,
    next: u64,
    state: State,
}

#[derive(Default)]
struct State {
    violations: Vec<Violation>,
    /// The output has ended.
    has_ended: bool,
    /// The last lines of standard error.
    last: Arc<Mutex<VecDeque<String>>>,
}

impl Process {
    /// Starts a process. Returns why it cannot be started, if so.
    pub(super) fn start(
        program: &Program,
        env: &[(String, String)],
        era: Era,
        limit: Duration,
    ) -> Result<Result<Self, String>, Failure> {
        let state = State::default();
        let last = Arc::clone(&state.last);
        let command = program.start(env)?.stderr(Stderr::lines(move |line| {
            let mut last = lock(&last);
            last.push_back(shown(line));
            if last.len() > LAST_LINES {
                last.pop_front();
            }
        }));
        Ok(match command.spawn() {
            Ok((transport, child)) => {
                let (reader, writer) = transport.split();
                Ok(Self { reader, writer, child, era, limit, next: 1, state })
            }
            Err(error) => Err(error.to_string()),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.has_ended
    }

    /// Opens a session of the handshake era.
    pub(super) async fn initialize(&mut self, version: &str) -> Answer {
        let id = self.id();
        let answer = self.exchange(&id, &messages::initialize(&id, version)).await;
        if matches!(answer, Answer::Result(_)) {
            self.write(messages::initialized().to_string().as_bytes()).await;
        }
        answer
    }

    /// Sends a request of a method that does not exist.
    pub(super) async fn ask_unknown(&mut self) -> Answer {
        let id = self.id();
        self.exchange(&id, &messages::request(self.era, &id, None, json!({}))).await
    }

    /// Writes a line that is no JSON.
    pub(super) async fn garbage(&mut self) {
        self.write(GARBAGE).await;
    }

    /// Returns an id: numbers and texts alternate.
    fn id(&mut self) -> Value {
        let number = self.next;
        self.next += 1;
        if number.is_multiple_of(2) { json!(format!("doctor-{number}")) } else { json!(number) }
    }

    async fn write(&mut self, line: &[u8]) {
        let mut frames = Frames::default();
        frames.push(line, None);
        let written = poll_fn(|cx| self.writer.poll_write(cx, &mut frames));
        // A process that does not read has ended, or does not answer either.
        let _ = timeout(self.limit, written).await;
    }

    async fn exchange(&mut self, id: &Value, request: &Value) -> Answer {
        self.write(request.to_string().as_bytes()).await;
        let limit = self.limit;
        match timeout(limit, self.response(id)).await {
            Ok(Some(response)) => Answer::of(&response),
            Ok(None) => Answer::Nothing(format!("the program has ended{}", self.said())),
            Err(_) => Answer::Nothing(format!("no answer within {} s{}", limit.as_secs_f64(), self.said())),
        }
    }

    /// Returns what the program has written to standard error.
    fn said(&self) -> String {
        let last = lock(&self.state.last);
        let lines: Vec<&str> = last.iter().map(String::as_str).collect();
        if lines.is_empty() { String::new() } else { format!("; its last words: {}", lines.join(" / ")) }
    }

    /// Reads up to the response to a request.
    async fn response(&mut self, id: &Value) -> Option<Value> {
        loop {
            let message = self.message().await?;
            let Some(message) = message.filter(messages::is_response) else { continue };
            match message.get("id") {
                Some(answered) if answered == id => return Some(message),
                Some(answered) if twins(answered, id) => {
                    self.violation(Violation::Id(format!("the request {id} was answered as {answered}")));
                    return Some(message);
                }
                // The answer to a line that is no JSON, or a late one.
                _ => {}
            }
        }
    }

    /// Reads one line. Returns `None` at the end, and `Some(None)` for a line that is no message.
    async fn message(&mut self) -> Option<Option<Value>> {
        if self.state.has_ended {
            return None;
        }
        let incoming = poll_fn(|cx| self.reader.poll_next(cx)).await;
        Some(match incoming {
            Some(Ok(Incoming::Message(message))) => self.line(&message.text),
            Some(Ok(Incoming::Unreadable(reason))) => {
                self.violation(Violation::Noise(format!("a line that cannot be read: {reason}")));
                None
            }
            Some(Ok(_)) => None,
            Some(Err(_)) | None => {
                self.state.has_ended = true;
                return None;
            }
        })
    }

    fn line(&mut self, line: &str) -> Option<Value> {
        match messages::parse(line) {
            Ok(message) if message.is_object() => {
                if let Some(fault) = messages::fault(&message) {
                    self.violation(Violation::Message(fault));
                }
                Some(message)
            }
            Ok(_) | Err(_) => {
                self.violation(Violation::Noise(format!("the line `{}`", shown(line))));
                None
            }
        }
    }

    fn violation(&mut self, violation: Violation) {
        if self.state.violations.len() < MAX_VIOLATIONS {
            self.state.violations.push(violation);
        }
    }

    /// Reads the rest of the output. Returns whether it ended in time.
    async fn drain(&mut self) -> bool {
        let limit = self.limit;
        let rest = async { while self.message().await.is_some() {} };
        timeout(limit, rest).await.is_ok()
    }

    /// Ends the input, and checks that the program ends with it.
    pub(super) async fn end_input(mut self, report: &mut Report) {
        let close = poll_fn(|cx| self.writer.poll_close(cx));
        let _ = timeout(self.limit, close).await;
        let limit = self.limit;
        let has_ended = self.drain().await;
        self.report(report);
        report.expect(rules::EXIT_ON_EOF, has_ended, || {
            format!("the program still runs {} s after the end of its input", limit.as_secs_f64())
        });
        if has_ended && let Ok(status) = self.child.shutdown().await {
            report.expect(rules::EXIT_STATUS, status.success(), || format!("it ended with {status}"));
        }
    }

    /// Sends SIGTERM, and checks that the program ends.
    pub(super) async fn end_by_signal(mut self, report: &mut Report) {
        if !terminate(self.child.id()) {
            self.discard(report).await;
            return;
        }
        let limit = self.limit;
        let has_ended = self.drain().await;
        self.report(report);
        report.expect(rules::SIGTERM, has_ended, || {
            format!("the program still runs {} s after SIGTERM", limit.as_secs_f64())
        });
    }

    /// Ends the process in any way. Returns how it ended.
    pub(super) async fn discard(self, report: &mut Report) -> String {
        self.report(report);
        drop((self.reader, self.writer));
        match self.child.shutdown().await {
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn report(&self, report: &mut Report) {
        report.pass(rules::STDOUT);
        report.pass(rules::JSONRPC);
        report.pass(rules::RESPONSE_ID);
        for violation in &self.state.violations {
            match violation {
                Violation::Noise(what) => report.find(rules::STDOUT, what),
                Violation::Message(what) => report.find(rules::JSONRPC, what),
                Violation::Id(what) => report.find(rules::RESPONSE_ID, what),
            }
        }
    }
}

impl Channel for Process {
    fn era(&self) -> Era {
        self.era
    }

    async fn ask(&mut self, method: Method, params: Value) -> Answer {
        let id = self.id();
        self.exchange(&id, &messages::request(self.era, &id, Some(method), params)).await
    }
}

/// Returns whether two ids have the same text, and different types.
fn twins(one: &Value, other: &Value) -> bool {
    let text = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
    one != other && text(one) == text(other)
}

/// Sends SIGTERM to the group of a process. Returns whether there is such a thing here.
#[cfg(unix)]
fn terminate(id: u32) -> bool {
    use rustix::process::{Pid, Signal, kill_process_group};
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| kill_process_group(pid, Signal::TERM).is_ok())
}

#[cfg(not(unix))]
fn terminate(_: u32) -> bool {
    false
}
