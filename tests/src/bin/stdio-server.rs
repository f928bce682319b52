//! Serves a fixture on the standard streams in a separate process: `stdio-server`, or `stdio-server authored`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let server = match std::env::args().nth(1).as_deref() {
        Some("authored") => duplexer_tests::authored::server(),
        _ => duplexer_tests::server(),
    };
    match duplexer_server::run_stdio(&server) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
