//! One line per request on standard error, for `demo --verbose`.

use std::sync::Arc;

use duplexer::Context;
use duplexer::McpError;
use duplexer::dispatch::BoxFuture;
use duplexer::middleware::{Message, Middleware, Next, Outcome};
use tokio::time::Instant;

use crate::terminal::Terminal;
use crate::text::{Style, Text};

/// Columns of method and name together, so that the outcomes of most requests line up.
const COLUMNS: usize = 36;

/// Prints method, name, outcome and time of each request.
pub(super) struct RequestLog(Arc<Terminal>);

impl RequestLog {
    pub(super) fn new() -> Self {
        Self(Arc::new(Terminal::new()))
    }
}

impl Middleware for RequestLog {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if cx.request_id().is_none() {
            return next.run(cx, message);
        }
        let mut entry = Entry {
            method: message.method().to_owned(),
            name: name_of(&message),
            begun: Instant::now(),
            outcome: Ended::Cancelled,
            terminal: Arc::clone(&self.0),
        };
        Box::pin(async move {
            let outcome = next.run(cx, message).await;
            entry.end(&outcome);
            outcome
        })
    }
}

/// Returns the tool, the prompt or the resource that a request is about.
fn name_of(message: &Message) -> String {
    let params = message.params().and_then(|params| duplexer::Json::parse(params).ok());
    let member = |name: &str| serde_json::from_str::<String>(params.as_ref()?.member(name)?).ok();
    member("name").or_else(|| member("uri")).unwrap_or_default()
}

/// How a request ended.
enum Ended {
    Ok,
    ToolError,
    /// The response asks the client for input, which comes with a further request.
    Asks,
    Error(String),
    /// The handler was dropped: the client has cancelled the request or is gone.
    Cancelled,
}

/// A line, printed when it is dropped: a cancelled request has no other end.
struct Entry {
    method: String,
    name: String,
    begun: Instant,
    outcome: Ended,
    terminal: Arc<Terminal>,
}

impl Entry {
    fn end(&mut self, outcome: &Result<Outcome, McpError>) {
        self.outcome = match outcome {
            Ok(outcome) if outcome.is_error() => Ended::ToolError,
            Ok(outcome) if outcome.result_type() == "input_required" => Ended::Asks,
            Ok(_) => Ended::Ok,
            Err(error) => {
                let error = error.to_wire(&self.method);
                Ended::Error(format!("error {}: {}", error.code, error.message))
            }
        };
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let (style, outcome) = match &self.outcome {
            Ended::Ok => (Style::Quoted, "ok"),
            Ended::ToolError => (Style::Error, "tool error"),
            Ended::Asks => (Style::Literal, "asks for input"),
            Ended::Error(error) => (Style::Error, error.as_str()),
            Ended::Cancelled => (Style::Literal, "cancelled"),
        };
        let milliseconds = self.begun.elapsed().as_secs_f64() * 1000.0;
        let gap = COLUMNS.saturating_sub(self.method.chars().count() + 1 + self.name.chars().count());
        let line = Text::plain(format!("{} ", self.method))
            .then(Style::Name, &self.name)
            .then(Style::Plain, format!("{:gap$}  ", ""))
            .then(style, outcome)
            .then(Style::Faint, format!("  {milliseconds:.1} ms"));
        self.terminal.show(&one_line(&line));
    }
}

/// A name is the client's: it must not begin a line that looks like another request.
fn one_line(line: &Text) -> Text {
    if line.as_str().contains('\n') {
        Text::plain(line.as_str().replace('\n', "\u{fffd}"))
    } else {
        line.clone()
    }
}
