//! `cargo xtask compare`: load on the server, on a floor without any protocol, and on other servers if given. With
//! `client`: our client beside a plain program, and other clients if given, against one server. With `proxy`: our proxy
//! beside the server behind it, and beside proxies of others.
//!
//! The program `load` of the package `duplexer-bench` starts the servers, loads them in turn and prints their cost. This
//! command builds the programs and passes their paths. With `--record` it writes the medians of seven runs into the
//! document.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::process::{self, PACKAGE_OF_BENCHES};
use crate::{Failure, npm, python, scale};

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

/// Runs whose medians are recorded.
const RUNS: &str = "7";
const DOCUMENT: &str = "docs/performance.md";
/// Marker before the table of the document.
const MARKER: &str = "<!-- compare -->\n";

fn run(arguments: &[String]) -> Result<(), String> {
    if let Some((client, rest)) = arguments.split_first()
        && client == "client"
    {
        return clients(rest);
    }
    if let Some((proxy, rest)) = arguments.split_first()
        && proxy == "proxy"
    {
        return proxies(rest);
    }
    let record = arguments.iter().any(|argument| argument == "--record");
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["load", "floor", "bench-server"])?;
    let mut load = Command::new(folder.join("load"));
    for (server, program, options) in SERVERS {
        let path = folder.join(program);
        load.arg("--beside").arg(format!("{server}='{}' {options}", path.display()));
    }
    let table = folder.join("compare.md");
    if record {
        load.args(["--runs", RUNS, "--write"]).arg(&table);
    }
    process::run(load.args(arguments.iter().filter(|argument| *argument != "--record")))?;
    if record { write_table(&table) } else { Ok(()) }
}

/// Writes the table of the load generator into the document.
fn write_table(table: &Path) -> Result<(), String> {
    let document = process::root().join(DOCUMENT);
    let read = |path: &Path| fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()));
    let text = scale::with_table(&read(&document)?, MARKER, &read(table)?)
        .ok_or_else(|| format!("{DOCUMENT} has no place for the table"))?;
    fs::write(&document, text).map_err(|error| format!("{}: {error}", document.display()))
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

/// Pins of the proxies of others.
const PROXIES: &str = "benches/proxies";
/// Scenarios of a comparison of proxies, unless others are named. Those of others know sessions only.
const PROXIED: [&str; 9] = [
    "stdio-echo-1",
    "stdio-echo-64",
    "stdio-add",
    "stdio-list",
    "stdio-read-64k",
    "stdio-echo-64k",
    "stdio-progress",
    "http-envelope-16",
    "http-sessions-16",
];

/// Compares proxies: the server itself is the first, to which the ratios refer. The CPU time is that of the proxy alone.
fn proxies(arguments: &[String]) -> Result<(), String> {
    let folder = process::packaged(PACKAGE_OF_BENCHES, &["load", "bench-server"])?;
    let server = folder.join("bench-server");
    let proxy = process::packaged("duplexer-cli", &["duplexer"])?.join("duplexer");
    let python = python::environment("proxies", &process::root().join(PROXIES).join("requirements.txt"))?;
    let node = npm::installed(PROXIES)?.node("supergateway/dist/index.js");
    let script = npm::installed(PROXIES)?.file("supergateway/dist/index.js");
    let (server, proxy) = (server.display(), proxy.display());
    let (python, node) = (python.join("bin/mcp-proxy"), node.get_program().display().to_string());
    let commands = [
        format!("server:stdio={server} stdio"),
        format!("server:http={server} http {{port}}"),
        format!("duplexer:stdio={proxy} proxy -- {server} stdio"),
        format!("duplexer:http={proxy} proxy --listen {{port}} -- {server} stdio"),
        format!("mcp-proxy:sessions={} --port {{port}} -- {server} stdio", python.display()),
        format!(
            "supergateway:sessions={node} {} --stdio '{server} stdio' --outputTransport streamableHttp --stateful --logLevel none --port {{port}}",
            script.display()
        ),
    ];
    let mut load = Command::new(folder.join("load"));
    for command in &commands {
        load.arg("--beside").arg(command);
    }
    if !names_scenarios(arguments) {
        load.args(PROXIED);
    }
    process::run(load.args(arguments))
}

/// Returns whether one of the arguments is a scenario, and not an option or its value.
fn names_scenarios(arguments: &[String]) -> bool {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" | "--runs" | "--beside" => _ = rest.next(),
            option if option.starts_with('-') => {}
            _ => return true,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{DOCUMENT, MARKER, names_scenarios, process, scale};

    #[test]
    fn the_value_of_an_option_names_no_scenario() {
        let names =
            |line: &str| names_scenarios(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        assert!(!names("--seconds 3 --runs 2 --record"));
        assert!(names("--seconds 3 stdio-echo-1"));
    }

    #[test]
    fn the_document_has_a_place_for_the_table() {
        let document = std::fs::read_to_string(process::root().join(DOCUMENT)).unwrap();
        let renewed = scale::with_table(&document, MARKER, "| a |").unwrap();
        assert!(renewed.contains("<!-- compare -->\n\n| a |\n\n<!-- end -->"));
    }
}
