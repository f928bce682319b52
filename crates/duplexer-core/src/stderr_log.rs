//! Errors of handlers on standard error, for programs that have not installed a `tracing` subscriber.
//!
//! Entry points that own the process enable it. Any subscriber takes over, also one that discards everything. The total
//! output is limited to less than a pipe holds, because a host that starts a server may never read its standard error.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use duplexer_types::text::is_invisible;

/// Maximum number of lines, and of bytes in each: together less than the 64 KiB of a pipe.
const MAX_LINES: usize = 100;
const MAX_BYTES: usize = 500;

static ENABLED: AtomicBool = AtomicBool::new(false);
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Maximum number of warnings that wait.
const MAX_WAITING: usize = 8;

/// Warnings from before this was enabled.
static WAITING: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Prints further errors to standard error, as long as no subscriber is installed, and the warnings that wait for it.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
    let waiting = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    for text in waiting {
        print(&Kind::Warning.line(&text));
    }
}

/// Prints a warning of the configuration as one line, if no subscriber is installed: when this is enabled, if it is not yet.
pub fn warning(text: &str) {
    if ENABLED.load(Ordering::Relaxed) {
        print(&Kind::Warning.line(text));
        return;
    }
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    if waiting.len() < MAX_WAITING && !waiting.iter().any(|other| other == text) {
        waiting.push(text.to_owned());
    }
}

/// Prints an error as one line, if this is enabled and no subscriber is installed.
pub fn error(text: fmt::Arguments<'_>) {
    if ENABLED.load(Ordering::Relaxed) && !tracing::dispatcher::has_been_set() {
        print(&Kind::Error.line(&text.to_string()));
    }
}

fn print(line: &str) {
    if tracing::dispatcher::has_been_set() {
        return;
    }
    let last = "further errors are not printed; install a `tracing` subscriber to see all of them";
    // There is nowhere to report a failure to.
    let _ = match LINES.fetch_add(1, Ordering::Relaxed) {
        before if before + 1 < MAX_LINES => std::io::stderr().lock().write_all(line.as_bytes()),
        before if before + 1 == MAX_LINES => {
            std::io::stderr().lock().write_all(Kind::Error.line(last).as_bytes())
        }
        _ => Ok(()),
    };
}

/// What a line reports.
#[derive(Clone, Copy)]
enum Kind {
    Error,
    Warning,
}

impl Kind {
    fn line(self, text: &str) -> String {
        line(
            text,
            match self {
                Self::Error => "duplexer: error: ",
                Self::Warning => "duplexer: warning: ",
            },
        )
    }
}

fn line(text: &str, kind: &str) -> String {
    let mut line = String::from(kind);
    for character in text.chars() {
        if line.len()
            > MAX_BYTES - "…\n".len() - character.len_utf8().max(char::REPLACEMENT_CHARACTER.len_utf8())
        {
            line.push('…');
            break;
        }
        line.push(match character {
            control if control.is_control() => ' ',
            hidden if is_invisible(hidden) => char::REPLACEMENT_CHARACTER,
            visible => visible,
        });
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_of_bounded_length() {
        let line = |text: &str| Kind::Error.line(text);
        assert_eq!(line("a\nb\u{1b}[31m"), "duplexer: error: a b [31m\n");
        assert_eq!(line("a\u{202e}b\u{ad}"), "duplexer: error: a\u{fffd}b\u{fffd}\n");
        let long = line(&"é".repeat(10_000));
        assert!(long.len() <= MAX_BYTES && long.ends_with("é…\n"), "{}", long.len());
        const { assert!(MAX_LINES * MAX_BYTES < 64 * 1024) };
        assert_eq!(Kind::Warning.line("a"), "duplexer: warning: a\n");
    }
}
