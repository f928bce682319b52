//! The fixture on the standard streams, as a process of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    match duplexer_core::server::run_stdio(&duplexer_tests::server()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
