//! The load generator: `load [--seconds N] [--runs N] [--write FILE] [--beside NAME[:KIND]=COMMAND].. [scenario..]`,
//! `load client ..`. See `duplexer_bench::load`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match duplexer_bench::load::run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("error: {reason}");
            ExitCode::FAILURE
        }
    }
}
