//! Output: results to standard output, everything else to standard error.
//!
//! Control characters in texts of a server are escaped, because a terminal would interpret them.

mod bar;

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use duplexer::dispatch::Progress;
use duplexer::types::task::{Task, TaskStatus};

use self::bar::{Bar, counted, described};
use crate::text::{Colour, Style, Text};

/// Standard error with a progress bar.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: Screen,
    colour: Colour,
    line: Mutex<Line>,
    /// The last state of a task that was printed as a line.
    task_text: Mutex<Option<String>>,
}

/// Kind of standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Screen {
    Terminal,
    Plain,
}

/// What the last line of the terminal holds.
#[derive(Debug)]
enum Line {
    Empty,
    Bar(Bar),
    /// A question that waits for its answer.
    Question,
    /// The user has ended the command: nothing is drawn any more.
    Ended,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let stderr = io::stderr();
        let screen = if stderr.is_terminal() { Screen::Terminal } else { Screen::Plain };
        let (line, task_text) = (Mutex::new(Line::Empty), Mutex::default());
        Self { screen, colour: colour_of(&stderr), line, task_text }
    }

    /// Prints one line without styles.
    pub(crate) fn note(&self, line: &str) {
        self.show(&Text::plain(line));
    }

    /// Prints the reason why the command failed.
    pub(crate) fn error(&self, reason: &str) {
        self.show(&Text::new().then(Style::Error, "duplexer:").then(Style::Plain, format!(" {reason}")));
    }

    /// Prints one line.
    pub(crate) fn show(&self, line: &Text) {
        let line = line.for_terminal(self.colour);
        // A failure to write to standard error cannot be reported.
        let write = || drop(writeln!(self.stderr(), "{line}"));
        match &*self.line() {
            Line::Bar(bar) => bar.suspend(write),
            _ => write(),
        }
    }

    /// Prints a question without a line end.
    pub(crate) fn ask(&self, question: &Text) {
        self.clear();
        let mut line = self.line();
        let mut stderr = self.stderr();
        let _ = write!(stderr, "{}", question.for_terminal(self.colour)).and_then(|()| stderr.flush());
        if !matches!(*line, Line::Ended) {
            *line = Line::Question;
        }
    }

    /// Notes that the question has been answered.
    pub(crate) fn answered(&self) {
        let mut line = self.line();
        if matches!(*line, Line::Question) {
            *line = Line::Empty;
        }
    }

    /// Shows the progress of a request: a bar on a terminal, lines otherwise.
    pub(crate) fn progress(&self, report: &Progress) {
        if self.screen == Screen::Plain {
            return self.note(&format!("progress {}", described(report)));
        }
        let mut line = self.line();
        if matches!(*line, Line::Empty) {
            *line = Line::Bar(Bar::new(report));
        }
        if let Line::Bar(bar) = &*line {
            bar.show(report);
        }
    }

    /// Shows the state of a task that is waited for: a bar if its text counts, its text otherwise.
    pub(crate) fn task(&self, task: &Task) {
        if task.status.is_final() || task.status == TaskStatus::InputRequired {
            return self.clear();
        }
        let text = task.status_message.as_deref().unwrap_or("working");
        if self.screen == Screen::Plain {
            let mut last = self.last_task_text();
            if last.as_deref() != Some(text) {
                self.note(&format!("task {text}"));
                *last = Some(text.to_owned());
            }
            return;
        }
        let report = counted(text).unwrap_or_else(|| Progress::new(0.0, None, Some(text.to_owned())));
        let mut line = self.line();
        if matches!(*line, Line::Empty) {
            *line = Line::Bar(Bar::new(&report));
        }
        match &*line {
            Line::Bar(bar) if report.total.is_some() => bar.show(&report),
            Line::Bar(bar) => bar.show_text(text),
            _ => {}
        }
    }

    fn last_task_text(&self) -> MutexGuard<'_, Option<String>> {
        self.task_text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a clean line after Ctrl-C, which a terminal shows as `^C` behind what is on the line already. Nothing is drawn
    /// afterwards.
    pub(crate) fn interrupted(&self) {
        self.clear();
        let mut line = self.line();
        if self.screen == Screen::Terminal || matches!(*line, Line::Question) {
            let _ = writeln!(io::stderr());
        }
        *line = Line::Ended;
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        let mut line = self.line();
        if let Line::Bar(bar) = &*line {
            bar.clear();
            *line = Line::Empty;
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns standard error; an old console gets styles by system calls.
    fn stderr(&self) -> AutoStream<io::Stderr> {
        match self.colour {
            Colour::On => AutoStream::always(io::stderr()),
            Colour::Off => AutoStream::always_ansi(io::stderr()),
        }
    }
}

/// Returns whether styles are shown on a stream, by `--color`, `NO_COLOR`, `CLICOLOR`, `CLICOLOR_FORCE` and `TERM`.
fn colour_of(stream: &impl RawStream) -> Colour {
    match AutoStream::choice(stream) {
        ColorChoice::Never => Colour::Off,
        _ => Colour::On,
    }
}

/// Returns the number of columns of standard output, if it is a terminal.
pub(crate) fn columns() -> Option<usize> {
    let stdout = io::stdout();
    let (width, _) = terminal_size::terminal_size_of(&stdout).filter(|_| stdout.is_terminal())?;
    Some(usize::from(width.0))
}

/// Prints a result. A closed pipe is not an error.
pub(crate) fn print(text: &Text) {
    let stdout = io::stdout();
    let colour = colour_of(&stdout);
    let text = if colour == Colour::On || stdout.is_terminal() {
        Cow::Owned(text.for_terminal(colour))
    } else {
        Cow::Borrowed(text.as_str())
    };
    let mut stdout = match colour {
        Colour::On => AutoStream::always(stdout),
        // Unchanged: a stream that takes styles away would also change texts of a server.
        Colour::Off => AutoStream::always_ansi(stdout),
    };
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Prints bytes unchanged. Returns `false` if standard output is a terminal.
pub(crate) fn print_bytes(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return false;
    }
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    true
}
