//! Errors of handlers on standard error, for programs that have not installed a `tracing` subscriber.
//!
//! Entry points that own the process enable it. Any subscriber takes over, also one that discards everything. The total
//! output is limited to less than a pipe holds, because a host that starts a server may never read its standard error.

use std::fmt;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use duplexer_types::text::is_invisible;

/// Maximum number of lines, and of bytes in each: together less than the 64 KiB of a pipe.
const MAX_LINES: usize = 100;
const MAX_BYTES: usize = 500;

static ENABLED: AtomicBool = AtomicBool::new(false);
static LINES: AtomicUsize = AtomicUsize::new(0);

/// Prints further errors to standard error, as long as no subscriber is installed.
pub fn enable() {
    ENABLED.store(true, Ordering::Relaxed);
}

/// Prints an error as one line, if this is enabled and no subscriber is installed.
pub fn error(text: fmt::Arguments<'_>) {
    if !ENABLED.load(Ordering::Relaxed) || tracing::dispatcher::has_been_set() {
        return;
    }
    let printed = match LINES.fetch_add(1, Ordering::Relaxed) {
        before if before + 1 < MAX_LINES => line(&text.to_string()),
        before if before + 1 == MAX_LINES => {
            line("further errors are not printed; install a `tracing` subscriber to see all of them")
        }
        _ => return,
    };
    // There is nowhere to report a failure to.
    let _ = std::io::stderr().lock().write_all(printed.as_bytes());
}

fn line(text: &str) -> String {
    let mut line = String::from("duplexer: error: ");
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
        assert_eq!(line("a\nb\u{1b}[31m"), "duplexer: error: a b [31m\n");
        assert_eq!(line("a\u{202e}b\u{ad}"), "duplexer: error: a\u{fffd}b\u{fffd}\n");
        let long = line(&"é".repeat(10_000));
        assert!(long.len() <= MAX_BYTES && long.ends_with("é…\n"), "{}", long.len());
        const { assert!(MAX_LINES * MAX_BYTES < 64 * 1024) };
    }
}
