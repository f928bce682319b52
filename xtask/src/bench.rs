//! `cargo xtask bench`: the cost of one call of each case, compared with the recorded figures.
//!
//! The program `cost` of the package `duplexer-bench` measures and compares; this command builds and starts it.

use std::process::Command;

use crate::Failure;
use crate::process::{self, PACKAGE_OF_BENCHES};

const FIGURES: &str = "benches/figures.txt";

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    let verb = match arguments {
        [] => "compare",
        [option] if option == "--record" => "record",
        _ => return Err(Failure::Usage("bench takes nothing but --record".to_owned())),
    };
    run(verb).map_err(|reason| {
        eprintln!("error: cargo xtask bench: {reason}");
        Failure::Failed
    })
}

fn run(verb: &str) -> Result<(), String> {
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["cost"])?;
    process::run(Command::new(folder.join("cost")).args([verb, FIGURES]))
}
