//! The progress bar.
//!
//! A bar usually fills its line with spaces. Here the cursor stays behind the text: the `^C` that a terminal shows for Ctrl-C
//! then stands on the line of the bar and is removed with it.

use std::io::{self, Write};
use std::time::Duration;

use anstream::AutoStream;
use duplexer::dispatch::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::text::clean;

/// Resolution of the progress bar.
const STEPS: u32 = 1000;
/// Interval of the spinner.
const TURN: Duration = Duration::from_millis(100);
/// Frames per second.
const RATE: u8 = 20;
/// Columns that stay free for `^C`.
const FREE_COLUMNS: u16 = 3;
/// Columns of a terminal that does not say how many it has.
const DEFAULT_COLUMNS: u16 = 80;

/// A bar, or a spinner if there is no total.
#[derive(Debug)]
pub(super) struct Bar(ProgressBar);

impl Bar {
    pub(super) fn new(report: &Progress) -> Self {
        let (bar, look) = if report.total.is_some() {
            (ProgressBar::new(STEPS.into()), "{bar:32} {msg}")
        } else {
            (ProgressBar::new_spinner(), "{spinner} {msg}")
        };
        bar.set_draw_target(ProgressDrawTarget::term_like_with_hz(Box::new(StandardError), RATE));
        if let Ok(style) = ProgressStyle::with_template(look) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TURN);
        Self(bar)
    }

    pub(super) fn show(&self, report: &Progress) {
        if let Some(share) = share(report) {
            self.0.set_position(share);
        }
        self.0.set_message(clean(&described(report)).into_owned());
    }

    /// Shows a text without a number.
    pub(super) fn show_text(&self, text: &str) {
        self.0.set_message(clean(text).into_owned());
    }

    /// Prints something else above the bar.
    pub(super) fn suspend(&self, print: impl FnOnce()) {
        self.0.suspend(print);
    }

    pub(super) fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Returns the position of the bar, if there is a total.
fn share(report: &Progress) -> Option<u64> {
    let total = report.total.filter(|total| *total > 0.0)?;
    let share = (report.progress / total).clamp(0.0, 1.0) * f64::from(STEPS);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and STEPS")]
    Some(share as u64)
}

/// Reads a status text that counts, `3 of 10`, as a report.
pub(super) fn counted(text: &str) -> Option<Progress> {
    let (progress, total) = text.split_once(" of ")?;
    Some(Progress::new(progress.trim().parse().ok()?, Some(total.trim().parse().ok()?), None))
}

/// Formats a report as text.
pub(super) fn described(report: &Progress) -> String {
    let mut text = report.progress.to_string();
    if let Some(total) = report.total {
        text = format!("{text}/{total}");
    }
    if let Some(message) = &report.message {
        text = format!("{text} {message}");
    }
    text
}

/// Standard error as the bar draws on it.
#[derive(Debug)]
struct StandardError;

impl StandardError {
    fn put(text: &str) -> io::Result<()> {
        AutoStream::always(io::stderr()).write_all(text.as_bytes())
    }

    fn moved(columns_or_lines: usize, command: char) -> io::Result<()> {
        if columns_or_lines == 0 { Ok(()) } else { Self::put(&format!("\x1b[{columns_or_lines}{command}")) }
    }
}

impl TermLike for StandardError {
    fn width(&self) -> u16 {
        let size = terminal_size::terminal_size_of(io::stderr());
        size.map_or(DEFAULT_COLUMNS, |(width, _)| width.0).saturating_sub(FREE_COLUMNS).max(1)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        Self::moved(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        Self::moved(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        Self::moved(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        Self::moved(columns, 'D')
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        Self::put(&format!("{line}\n"))
    }

    /// Leaves out the spaces that would fill the line.
    fn write_str(&self, text: &str) -> io::Result<()> {
        if text.chars().all(|c| c == ' ') { Ok(()) } else { Self::put(text) }
    }

    fn clear_line(&self) -> io::Result<()> {
        Self::put("\r\x1b[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}
