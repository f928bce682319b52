//! `cargo xtask interop`: clients of other implementations against the servers of this project, its OAuth client against the
//! official authorization server, and its client of tasks against the server of tasks of `FastMCP`.
//!
//! Each suite installs pinned dependencies, and again only when the pins change.

use std::path::PathBuf;
use std::process::Command;
use std::thread;

use crate::process::{built, root, run};
use crate::server::Server;
use crate::{Failure, no_arguments, npm, python};

/// Runs every suite.
pub(crate) fn command(arguments: &[String]) -> Result<(), Failure> {
    no_arguments("interop", arguments)?;
    let suites =
        [python, bridge, doctor, authority, typescript, together, inspector, typescript_tasks, fastmcp_tasks];
    suites.into_iter().try_for_each(|suite| suite()).map_err(|reason| {
        eprintln!("interop: {reason}");
        Failure::Failed
    })
}

/// The official Python client calls the server over stdio, HTTP and HTTP+SSE, in both eras, and with OAuth.
pub(crate) fn python() -> Result<(), String> {
    let server = interop_server()?;
    run(python_client("drive.py")?.arg(&server))?;
    let listening = Server::start(&server, &["http", "0"])?;
    run(python_client("drive.py")?.arg(listening.url()))?;
    let guarded = Server::start(&server, &["http", "0", "guarded"])?;
    run(python_client("oauth.py")?.arg(guarded.url()))
}

/// The official Python client of each era calls an official Python server of the other, through `duplexer proxy`.
pub(crate) fn bridge() -> Result<(), String> {
    let proxy = built("duplexer-cli", "duplexer")?;
    run(python_client("bridge.py")?.arg(proxy))
}

/// `duplexer doctor` finds no errors on servers of the official Python package, and the warnings that are recorded.
pub(crate) fn doctor() -> Result<(), String> {
    let program = built("duplexer-cli", "duplexer")?;
    run(python_client("doctor.py")?.arg(program))
}

/// The client of this project logs in at the authorization server of the official Python package, in both eras.
pub(crate) fn authority() -> Result<(), String> {
    let client = built("duplexer-interop", "interop-login")?;
    let authority = Server::start(&python_program()?, &["interop/python/authority.py"])?;
    run(Command::new(client).arg(authority.url()))
}

/// The official TypeScript client calls the server over HTTP, in both eras.
pub(crate) fn typescript() -> Result<(), String> {
    let listening = Server::start(&interop_server()?, &["http", "0"])?;
    run(typescript_client("drive.js")?.arg(listening.url()))
}

/// Both clients call one server concurrently, in both eras; its streams are resumable.
pub(crate) fn together() -> Result<(), String> {
    let listening = Server::start(&interop_server()?, &["http", "0", "resumable"])?;
    let mut clients = [python_client("drive.py")?, typescript_client("drive.js")?];
    let outcomes: Vec<Result<(), String>> = thread::scope(|scope| {
        let drive = |client| scope.spawn(|| run(Command::args(client, [listening.url(), "resumable"])));
        let driving: Vec<_> = clients.iter_mut().map(drive).collect();
        let ended = driving.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(|outcome| outcome.unwrap_or_else(|_| Err("the run has panicked".to_owned()))).collect()
    });
    outcomes.into_iter().collect()
}

/// The MCP Inspector inspects the server over stdio and HTTP.
pub(crate) fn inspector() -> Result<(), String> {
    let suite = "interop/inspector";
    npm::installed(suite)?;
    // It needs a newer Node than many machines have; the conformance suite installs one.
    let node = npm::installed("conformance")?;
    let server = interop_server()?;
    let listening = Server::start(&server, &["http", "0"])?;
    run(node.node(root().join(suite).join("drive.js")).arg(&server).arg(listening.url()))
}

/// The official TypeScript package for tasks calls the server, in both revisions that have tasks.
pub(crate) fn typescript_tasks() -> Result<(), String> {
    let listening = Server::start(&interop_server()?, &["http", "0", "tasks"])?;
    run(typescript_client("tasks.js")?.arg(listening.url()))
}

/// The client of tasks of `FastMCP` calls the server, and the client of this project calls its server of tasks.
pub(crate) fn fastmcp_tasks() -> Result<(), String> {
    let (python, server) = (virtual_environment("fastmcp")?, interop_server()?);
    let listening = Server::start(&server, &["http", "0", "tasks"])?;
    let script = root().join("interop/fastmcp/drive.py");
    run(Command::new(&python).arg(script).arg(&server).arg(listening.url()))?;
    let client = built("duplexer-interop", "interop-tasks")?;
    let other = Server::start(&python, &["interop/fastmcp/server.py"])?;
    run(Command::new(client).arg(other.url()))
}

fn interop_server() -> Result<PathBuf, String> {
    built("duplexer-interop", "interop-server")
}

fn python_client(script: &str) -> Result<Command, String> {
    let mut command = Command::new(python_program()?);
    command.arg(root().join("interop").join("python").join(script));
    Ok(command)
}

pub(crate) fn python_program() -> Result<PathBuf, String> {
    virtual_environment("python")
}

/// Returns the Python that has the packages which a folder of `interop` pins.
fn virtual_environment(folder: &str) -> Result<PathBuf, String> {
    let requirements = root().join("interop").join(folder).join("requirements.txt");
    let environment = python::environment(folder, &requirements)?;
    Ok(environment.join("bin").join("python"))
}

fn typescript_client(script: &str) -> Result<Command, String> {
    let suite = "interop/ts";
    Ok(npm::installed(suite)?.node(root().join(suite).join(script)))
}
