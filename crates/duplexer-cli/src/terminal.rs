//! The two ways out: results to standard output, everything else to standard error.
//!
//! What a server says is shown without control characters: a terminal obeys them.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer::dispatch::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// How fine a bar is.
const STEPS: u32 = 1000;
/// How often a spinner turns.
const TURN: Duration = Duration::from_millis(100);

/// Standard error, and the progress bar on it.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: Screen,
    bar: Mutex<Option<ProgressBar>>,
}

/// What standard error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Screen {
    Terminal,
    Plain,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        let screen = if io::stderr().is_terminal() { Screen::Terminal } else { Screen::Plain };
        Self { screen, bar: Mutex::new(None) }
    }

    /// One line for the person.
    pub(crate) fn note(&self, line: &str) {
        let line = clean(line);
        // Nobody is left to be told that nobody is left to be told.
        let write = || drop(writeln!(io::stderr().lock(), "{line}"));
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// The beginning of a line that the person ends.
    pub(crate) fn ask(&self, question: &str) {
        self.clear();
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{}", clean(question)).and_then(|()| stderr.flush());
    }

    /// How far a request has come: a bar for people, lines for logs.
    pub(crate) fn progress(&self, report: &Progress) {
        match self.screen {
            Screen::Plain => self.note(&format!("progress {}", described(report))),
            Screen::Terminal => {
                let mut bar = self.bar();
                let bar = bar.get_or_insert_with(|| new_bar(report));
                if let Some(share) = share(report) {
                    bar.set_position(share);
                }
                bar.set_message(clean(&described(report)).into_owned());
            }
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(bar) = self.bar().take() {
            bar.finish_and_clear();
        }
    }

    fn bar(&self) -> MutexGuard<'_, Option<ProgressBar>> {
        self.bar.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How much of the bar is full, where there is a total.
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

/// Text for a terminal: its control characters are made visible, line ends and tabs stay.
fn clean(text: &str) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.contains(is_command) {
        Cow::Owned(text.replace(is_command, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Prints a result. A reader that has gone away is no failure of ours.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { clean(text) } else { Cow::Borrowed(text) };
    let _ = writeln!(stdout, "{text}").and_then(|()| stdout.flush());
}

/// Prints bytes as they are; `false` if that would be a terminal.
pub(crate) fn print_bytes(bytes: &[u8]) -> bool {
    let mut stdout = io::stdout().lock();
    if stdout.is_terminal() {
        return false;
    }
    let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands_from_a_server() {
        assert_eq!(clean("a\tb\nc"), "a\tb\nc");
        assert_eq!(clean("\u{1b}[2Jgone\u{7}"), "\u{fffd}[2Jgone\u{fffd}");
    }
}
