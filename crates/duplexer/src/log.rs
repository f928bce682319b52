//! Logs on standard error in one line, for programs that install no subscriber of their own.

use std::io;

use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Writes logs to standard error: warnings and more important events, or what the variable `RUST_LOG` says (`info`,
/// `warn,duplexer_http=debug`). Call it first in `main`. Does nothing if a subscriber is installed already.
///
/// ```
/// duplexer::log_to_stderr();
/// ```
pub fn log_to_stderr() {
    let wanted = std::env::var("RUST_LOG").unwrap_or_default();
    let lines = fmt::layer().with_writer(io::stderr).with_ansi(false).with_filter(filter(&wanted));
    // Another subscriber was installed on purpose, so it stays.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}

/// Reads a filter. Without one, or with one that cannot be read, warnings are shown.
fn filter(wanted: &str) -> Targets {
    match wanted.parse::<Targets>() {
        Ok(targets) if !wanted.is_empty() => targets,
        _ => Targets::new().with_default(LevelFilter::WARN),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn warnings_are_shown_unless_the_variable_says_otherwise() {
        assert!(filter("").would_enable("x", &Level::WARN) && !filter("").would_enable("x", &Level::INFO));
        assert!(filter("a=b=c").would_enable("x", &Level::ERROR), "a filter that cannot be read");
        let one = filter("error,x=debug");
        assert!(one.would_enable("x", &Level::DEBUG) && !one.would_enable("y", &Level::WARN));
    }

    #[test]
    fn a_second_call_keeps_the_subscriber() {
        log_to_stderr();
        log_to_stderr();
        assert!(tracing::enabled!(Level::ERROR));
    }
}
