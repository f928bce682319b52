//! Output: results to standard output, everything else to standard error.
//!
//! Control characters in texts of a server are escaped, because a terminal would interpret them.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use duplexer::dispatch::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Resolution of the progress bar.
const STEPS: u32 = 1000;
/// Interval of the spinner.
const TURN: Duration = Duration::from_millis(100);

/// Standard error with a progress bar.
#[derive(Debug)]
pub(crate) struct Terminal {
    screen: Screen,
    bar: Mutex<Option<ProgressBar>>,
}

/// Kind of standard error.
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

    /// Prints one line.
    pub(crate) fn note(&self, line: &str) {
        let line = clean(line);
        // A failure to write to standard error cannot be reported.
        let write = || drop(writeln!(io::stderr().lock(), "{line}"));
        match &*self.bar() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }

    /// Prints a prompt without a line end.
    pub(crate) fn ask(&self, question: &str) {
        self.clear();
        let mut stderr = io::stderr().lock();
        let _ = write!(stderr, "{}", clean(question)).and_then(|()| stderr.flush());
    }

    /// Shows the progress of a request: a bar on a terminal, lines otherwise.
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

    /// Removes the bar.
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

/// Replaces control characters, except line ends and tabs, and bidirectional controls.
fn clean(text: &str) -> Cow<'_, str> {
    let is_command = |c: char| c.is_control() && c != '\n' && c != '\t' || is_bidi_control(c);
    if text.contains(is_command) {
        Cow::Owned(text.replace(is_command, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// Returns whether a character changes the direction of the text after it, which can make a text read as another.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints a result. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { clean(text) } else { Cow::Borrowed(text) };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_commands_from_a_server() {
        assert_eq!(clean("a\tb\nc"), "a\tb\nc");
        for control in ["\u{61c}", "\u{200e}", "\u{200f}", "\u{202a}", "\u{202e}", "\u{2066}", "\u{2069}"] {
            assert_eq!(clean(&format!("safe{control}exe.txt")), "safe\u{fffd}exe.txt");
        }
        assert_eq!(clean("שלום é\u{200d}"), "שלום é\u{200d}");
        assert_eq!(clean("\u{1b}[2Jgone\u{7}"), "\u{fffd}[2Jgone\u{fffd}");
    }
}
