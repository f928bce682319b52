//! Serves a fixture on the standard streams in a separate process: `stdio-server`, `stdio-server authored`, or
//! `stdio-server tasks DIRECTORY closed|open`.

use std::process::ExitCode;
use std::time::Duration;

use duplexer::tasks::{FileTasks, Tasks};
use duplexer::{BoxError, Server};
use duplexer_core::dispatch::{DispatchLimits, DispatchOptions};
use duplexer_tests::tasks::{Gate, lease, many};

fn main() -> ExitCode {
    let server = match std::env::args().nth(1).as_deref() {
        Some("authored") => duplexer_tests::authored::server(),
        Some("tasks") => match tasks() {
            Ok(server) => server,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        },
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

/// Returns a server with tasks in a directory, and tools that wait if the gate is closed.
fn tasks() -> Result<Server, BoxError> {
    let directory = std::env::args().nth(2).ok_or("which directory?")?;
    let gate = match std::env::args().nth(3).as_deref() {
        Some("closed") => Gate::closed(),
        _ => Gate::open(),
    };
    let tasks = Tasks::on(FileTasks::open(directory)?).lease(lease()).limits(many());
    Ok(duplexer_tests::tasks::server(tasks, gate))
}
