//! `cargo xtask compare`: load on the server, on a floor without any protocol, and on other servers if given. With
//! `client`: our client beside a plain program, and other clients if given, against one server.
//!
//! The program `load` of the package `duplexer-bench` starts the servers, loads them in turn and prints their cost. This
//! command builds the programs and passes their paths.

use std::process::Command;

use crate::Failure;
use crate::process::{self, PACKAGE_OF_BENCHES};

/// The servers of this repository: name, kind of load, program, options.
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
    if let Some((client, rest)) = arguments.split_first()
        && client == "client"
    {
        return clients(rest);
    }
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["load", "floor", "bench-server"])?;
    let mut load = Command::new(folder.join("load"));
    for (server, program, options) in SERVERS {
        let path = folder.join(program);
        load.arg("--beside").arg(format!("{server}='{}' {options}", path.display()));
    }
    process::run(load.args(arguments))
}

/// Compares clients: the plain program is the first, to which the ratios refer.
fn clients(arguments: &[String]) -> Result<(), String> {
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["load", "bench-client", "bench-server"])?;
    let program = |name: &str| format!("'{}'", folder.join(name).display());
    let mut load = Command::new(folder.join("load"));
    load.arg("client").arg("--server").arg(format!("{} http {{port}}", program("bench-server")));
    for (name, caller) in [("plain", "plain"), ("duplexer", "ours")] {
        let client = program("bench-client");
        load.arg("--beside").arg(format!("{name}={client} {caller} {{era}} {{url}}"));
    }
    process::run(load.args(arguments))
}
