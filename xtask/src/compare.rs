//! `cargo xtask compare`: our server beside a floor without any protocol, and beside others if told, under load.
//!
//! The program `load` of the package `duplexer-bench` starts the servers, loads them in turn and prints what they cost;
//! here the programs are built and named to it.

use std::process::Command;

use crate::Failure;
use crate::process::{self, PACKAGE_OF_BENCHES};

/// The servers of this repository: what each is called and put to (the kinds that `load` knows), the program, its options.
const SERVERS: &[(&str, &str, &str)] = &[
    ("floor:stdio", "floor", "stdio"),
    ("floor:http", "floor", "http {port}"),
    ("duplexer:stdio", "bench-server", "stdio"),
    ("duplexer:http", "bench-server", "http {port}"),
    ("duplexer:stateless", "bench-server", "http {port} --stateless"),
];

pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    run(arguments).map_err(|reason| {
        eprintln!("error: cargo xtask compare: {reason}");
        Failure::Failed
    })
}

fn run(arguments: &[String]) -> Result<(), String> {
    let folder = process::released(PACKAGE_OF_BENCHES, &["load", "floor", "bench-server"])?;
    let mut load = Command::new(folder.join("load"));
    for (server, program, options) in SERVERS {
        let path = folder.join(program);
        load.arg("--beside").arg(format!("{server}='{}' {options}", path.display()));
    }
    process::run(load.args(arguments))
}
