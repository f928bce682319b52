//! `duplexer skills serve`: a directory of skills as a server.

use std::io;
use std::net::SocketAddr;

use duplexer::Server;
use duplexer::prelude::run_stdio;
use duplexer::skills::Skills;

use crate::arguments::ServeArguments;
use crate::failure::{Exit, Failure, chain};
use crate::serving::{not_listening, returning_memory, service};
use crate::terminal::Terminal;

/// Serves the skills below a directory until a shutdown signal.
pub(crate) fn serve(arguments: &ServeArguments) -> Result<(), Failure> {
    let directory = arguments.directory.canonicalize().map_err(|error| {
        Failure::usage(format!("{} cannot be served: {error}", arguments.directory.display()))
    })?;
    let server = Server::builder("duplexer-skills", env!("CARGO_PKG_VERSION"))
        .title("Skills")
        .instructions("Load a skill before a task that its description names.")
        .extend(Skills::new().directory(directory))
        .build()
        .map_err(|error| Failure::usage(error.to_string()))?;
    if arguments.stdio {
        return run_stdio(&server).map_err(|error| Failure::new(Exit::Connect, chain(&error)));
    }
    on_http(server, SocketAddr::new(arguments.host, arguments.port))
}

fn on_http(server: Server, address: SocketAddr) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::new(Exit::Connect, error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(broken)?;
    runtime.block_on(async {
        let bound = service(server, address.ip(), None)?.bind(address).await;
        let bound = bound.map_err(|error| not_listening(address, &error, "skills serve DIR --port"))?;
        let address = bound.local_addr().map_err(broken)?;
        Terminal::new().note(&format!(
            "The skills are served at http://{address}/mcp. Changes are seen within two seconds. Ctrl-C ends it.\n\n\
             Try it:\n  duplexer skills list http://{address}/mcp"
        ));
        returning_memory(bound.serve()).await.map_err(|error| Failure::new(Exit::Connect, chain(&error)))
    })
}
