//! Serves a fixture on the standard streams in a separate process: `stdio-server`, or `stdio-server authored`.

use std::process::ExitCode;
use std::time::Duration;

use duplexer_core::dispatch::{DispatchLimits, DispatchOptions};

fn main() -> ExitCode {
    let server = match std::env::args().nth(1).as_deref() {
        Some("authored") => duplexer_tests::authored::server(),
        _ => duplexer_tests::server(),
    };
    // Shorter than the default, so that tests of the shutdown are short too.
    let limits = DispatchLimits::default().drain(Duration::from_secs(1));
    match duplexer_server::run_stdio_with(&server, DispatchOptions::default().limits(limits)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
