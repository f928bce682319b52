//! Elicitation in the terminal: forms field by field, and URLs to open.

mod field;

use std::io::{self, BufRead, IsTerminal};
use std::sync::Arc;

use duplexer::types::elicitation::{ElicitFormParams, ElicitParams, ElicitResult, ElicitUrlParams};
use duplexer::types::json::JsonObject;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use self::field::Field;
use crate::arguments::Request;
use crate::terminal::Terminal;
use crate::text::{Style, Text};

/// Input that declines a form.
const DECLINE: &str = "/decline";
const CANCEL: &str = "/cancel";

/// Asks the user on behalf of the server.
pub(crate) struct Questions {
    answers: Answers,
    terminal: Arc<Terminal>,
    /// Serializes concurrent questions.
    turn: Semaphore,
}

/// Source of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answers {
    Person,
    /// Standard input that is no terminal.
    Piped,
    Unavailable,
}

/// Reason why a form was not filled in.
enum Unfilled {
    Declined,
    Cancelled,
}

fn asks(message: &str) -> Text {
    Text::new().then(Style::Heading, "The server asks:").then(Style::Plain, format!(" {message}"))
}

impl Questions {
    pub(crate) fn new(request: &Request, terminal: Arc<Terminal>) -> Self {
        let answers = if io::stdin().is_terminal() && io::stderr().is_terminal() {
            Answers::Person
        } else if request.interactive {
            Answers::Piped
        } else {
            Answers::Unavailable
        };
        Self { answers, terminal, turn: Semaphore::new(1) }
    }

    /// Asks the user and returns the answer.
    pub(crate) async fn answer(&self, asked: ElicitParams) -> ElicitResult {
        // The semaphore is never closed.
        let _turn = self.turn.acquire().await.ok();
        self.terminal.clear();
        match &asked {
            ElicitParams::Form(form) if self.answers != Answers::Unavailable => self.fill(form).await,
            ElicitParams::Url(url) if self.answers != Answers::Unavailable => self.visit(url).await,
            ElicitParams::Form(ElicitFormParams { message, .. })
            | ElicitParams::Url(ElicitUrlParams { message, .. }) => {
                self.terminal.note(&format!("the server asks: {message}"));
                self.terminal.note(
                    "declined: there is no terminal to answer at (--interactive reads answers from standard input)",
                );
                ElicitResult::decline()
            }
            _ => {
                self.terminal.note("declined: the server asks in a way that is not known here");
                ElicitResult::decline()
            }
        }
    }

    async fn fill(&self, form: &ElicitFormParams) -> ElicitResult {
        self.terminal.show(&asks(&form.message));
        self.terminal.show(&Text::new().then(Style::Faint, format!("({DECLINE} refuses, {CANCEL} leaves)")));
        let required = form.requested_schema.required.as_deref().unwrap_or_default();
        let mut content = JsonObject::new();
        for (name, schema) in form.requested_schema.properties.iter() {
            let field = Field { name, schema, required: required.iter().any(|one| one == name) };
            match self.one(&field).await {
                Ok(Some(value)) => drop(content.insert(name, value)),
                Ok(None) => {}
                Err(Unfilled::Declined) => return ElicitResult::decline(),
                Err(Unfilled::Cancelled) => return ElicitResult::cancel(),
            }
        }
        ElicitResult::accept(content)
    }

    /// Asks for a field until the answer is valid.
    async fn one(&self, field: &Field<'_>) -> Result<Option<duplexer::Json>, Unfilled> {
        for line in field.explanation().into_iter().chain(field.choices()) {
            self.terminal.note(&format!("    {line}"));
        }
        let (label, limits) = field.label();
        let question = Text::plain("  ")
            .then(Style::Name, label)
            .then(Style::Faint, format!(" {limits}"))
            .then(Style::Plain, ": ");
        loop {
            let typed = self.line(&question).await?;
            match field.read(&typed) {
                Ok(value) => return Ok(value),
                Err(reason) => self.terminal.note(&format!("    {reason}")),
            }
        }
    }

    async fn visit(&self, asked: &ElicitUrlParams) -> ElicitResult {
        self.terminal.show(&asks(&asked.message));
        self.terminal.note(&format!("It wants you to open {}", asked.url));
        loop {
            match self.line(&Text::plain("  Will you? (y/n): ")).await {
                Ok(typed) => match typed.to_lowercase().as_str() {
                    "y" | "yes" => return ElicitResult::agree(),
                    "n" | "no" => return ElicitResult::decline(),
                    _ => self.terminal.note("    y or n"),
                },
                Err(Unfilled::Declined) => return ElicitResult::decline(),
                Err(Unfilled::Cancelled) => return ElicitResult::cancel(),
            }
        }
    }

    /// Reads the next line of standard input. Its end cancels the form.
    async fn line(&self, question: &Text) -> Result<String, Unfilled> {
        self.terminal.ask(question);
        let read = spawn_blocking(|| {
            let mut line = String::new();
            io::stdin().lock().read_line(&mut line).map(|length| (length, line))
        });
        if self.answers == Answers::Piped {
            self.terminal.note("");
        }
        let read = read.await;
        self.terminal.answered();
        match read {
            Ok(Ok((1.., line))) => match line.trim() {
                DECLINE => Err(Unfilled::Declined),
                CANCEL => Err(Unfilled::Cancelled),
                typed => Ok(typed.to_owned()),
            },
            _ => Err(Unfilled::Cancelled),
        }
    }
}
