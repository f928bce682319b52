//! Output: results to standard output, everything else to standard error.
//!
//! Control characters in texts of a server are escaped, because a terminal would interpret them.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use duplexer::dispatch::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::text::{Colour, Style, Text, clean};

/// Resolution of the progress bar.
const STEPS: u32 = 1000;
/// Interval of the spinner.
const TURN: Duration = Duration::from_millis(100);

/// Standard error with a progress bar.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: Screen,
    colour: Colour,
    line: Mutex<Line>,
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
    Bar(ProgressBar),
    /// A question that waits for its answer.
    Question,
    /// The user has ended the command: nothing is drawn any more.
    Ended,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let stderr = io::stderr();
        let screen = if stderr.is_terminal() { Screen::Terminal } else { Screen::Plain };
        Self { screen, colour: colour_of(&stderr), line: Mutex::new(Line::Empty) }
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
            *line = Line::Bar(new_bar(report));
        }
        if let Line::Bar(bar) = &*line {
            if let Some(share) = share(report) {
                bar.set_position(share);
            }
            bar.set_message(clean(&described(report)).into_owned());
        }
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
            bar.finish_and_clear();
            *line = Line::Empty;
        }
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns standard error, which on old consoles needs to be told of styles.
    fn stderr(&self) -> AutoStream<io::Stderr> {
        match self.colour {
            Colour::On => AutoStream::always(io::stderr()),
            Colour::Off => AutoStream::always_ansi(io::stderr()),
        }
    }
}

fn new_bar(report: &Progress) -> ProgressBar {
    let (bar, look) = if report.total.is_some() {
        (ProgressBar::new(STEPS.into()), "{bar:32} {msg}")
    } else {
        (ProgressBar::new_spinner(), "{spinner} {msg}")
    };
    bar.set_draw_target(ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template(look) {
        bar.set_style(style);
    }
    bar.enable_steady_tick(TURN);
    bar
}

/// Returns the position of the bar, if there is a total.
fn share(report: &Progress) -> Option<u64> {
    let total = report.total.filter(|total| *total > 0.0)?;
    let share = (report.progress / total).clamp(0.0, 1.0) * f64::from(STEPS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and STEPS")]
    Some(share as u64)
}

fn described(report: &Progress) -> String {
    let mut text = report.progress.to_string();
    if let Some(total) = report.total {
        text = format!("{text}/{total}");
    }
    if let Some(message) = &report.message {
        text = format!("{text} {message}");
    }
    text
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
