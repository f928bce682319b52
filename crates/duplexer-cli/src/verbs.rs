//! The verbs that send requests to a server, one file per family.
//!
//! A [`Job`] is parsed before a connection is opened, so that wrong usage fails at once.

mod call;
mod list;
mod listen;
mod ping;
mod prompt;
mod read;
mod skills;
mod task;
mod unknown;

use std::sync::Arc;

use duplexer::error::CallError;
use duplexer::shutdown_signal::ShutdownSignals;

use crate::arguments::Request;
use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::session::Session;
use crate::show::Details;
use crate::target::Target;
use crate::terminal::Terminal;

pub(crate) use call::Ending;
pub(crate) use list::Kind;
pub(crate) use task::Action;
pub(crate) use unknown::closest;
use unknown::unknown;

/// Kind of a verb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    List(Details),
    Call(Ending),
    Task(Action),
    Read,
    Prompt,
    Complete,
    Listen,
    Ping,
    ListSkills,
    ShowSkill,
    FetchSkill,
}

/// A parsed verb with its arguments.
enum Job {
    List(list::List),
    Call(call::Call),
    Task(task::Task),
    Read(read::Read),
    Prompt(prompt::Prompt),
    Complete(prompt::Complete),
    Listen(listen::Listen),
    Ping,
    Skills(skills::Skills),
}

impl Job {
    fn parse(word: Word, words: &[String]) -> Result<Self, Failure> {
        Ok(match word {
            Word::List(details) => Self::List(list::List::parse(words, details)?),
            Word::Call(ending) => Self::Call(call::Call::parse(words, ending)?),
            Word::Task(action) => Self::Task(task::Task::parse(words, action)?),
            Word::Read => Self::Read(read::Read::parse(words)?),
            Word::Prompt => Self::Prompt(prompt::Prompt::parse(words)?),
            Word::Complete => Self::Complete(prompt::Complete::parse(words)?),
            Word::Listen => Self::Listen(listen::Listen::parse(words)),
            Word::Ping => {
                no_more(words)?;
                Self::Ping
            }
            Word::ListSkills => Self::Skills(skills::Skills::list(words)?),
            Word::ShowSkill => Self::Skills(skills::Skills::show(words)?),
            Word::FetchSkill => Self::Skills(skills::Skills::fetch(words)?),
        })
    }

    async fn run(&self, session: &mut Session, output: &Output) -> Result<(), Failure> {
        match self {
            Self::List(job) => job.run(session, output).await,
            Self::Call(job) => job.run(session, output).await,
            Self::Task(job) => job.run(session, output).await,
            Self::Read(job) => job.run(session, output).await,
            Self::Prompt(job) => job.run(session, output).await,
            Self::Complete(job) => job.run(session, output).await,
            Self::Listen(job) => job.run(session, output).await,
            Self::Ping => ping::run(session, output).await,
            Self::Skills(job) => job.run(session, output).await,
        }
    }

    /// Returns the exit code of Ctrl-C: success for `listen`, interruption for all others.
    fn interrupted(&self) -> Result<(), Failure> {
        match self {
            Self::Listen(_) => Ok(()),
            _ => Err(Failure::silent(Exit::Interrupted)),
        }
    }
}

/// Runs a verb, from opening the session to closing it.
pub(crate) async fn run(word: Word, request: &Request) -> Result<(), Failure> {
    let (target, words) = Target::of(request)?;
    let job = Job::parse(word, words)?;
    let output = Output::of(request);
    if word == Word::Listen && output.is_file() {
        return Err(Failure::usage("`listen` prints each change as it comes; `> FILE` keeps them"));
    }
    let signals = ShutdownSignals::listen();
    let mut signals = signals.map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let terminal = Arc::new(Terminal::new());
    // Dropping the future of an opening session ends its program.
    let mut session = tokio::select! {
        session = Session::open(&target, request, &terminal) => session?,
        () = signals.next() => {
            terminal.interrupted();
            return job.interrupted();
        }
    };
    let done = tokio::select! {
        done = job.run(&mut session, &output) => done,
        () = signals.next() => {
            terminal.interrupted();
            session.cancel_awaited_task().await;
            job.interrupted()
        }
    };
    session.close().await;
    done
}

/// Rejects surplus words.
fn no_more(words: &[String]) -> Result<(), Failure> {
    match words.first() {
        Some(word) => Err(Failure::usage(format!("what is `{word}` for? This verb takes nothing like it"))),
        None => Ok(()),
    }
}

/// Failure for a result that does not match the method.
fn unreadable(error: serde_json::Error) -> Failure {
    CallError::Unexpected(error).into()
}
