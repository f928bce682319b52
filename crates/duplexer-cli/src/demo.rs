//! The demo server: one example of each feature, written like any other server.
//!
//! `tools`, `resources` and `prompts` are plain functions; `notebook` is their shared state; `serving` serves them
//! over HTTP or stdio, after the `welcome` message.

mod notebook;
mod prompts;
mod request_log;
mod resources;
mod serving;
mod tools;
mod welcome;

use duplexer::prelude::*;
use duplexer::server::subscriptions::MemoryBus;
use duplexer::tasks::Tasks;

use self::notebook::Notebook;
use self::request_log::RequestLog;

pub(crate) use serving::serve;

/// Which requests are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Log {
    Requests,
    Nothing,
}

/// Builds the server from the handlers of the submodules.
fn server(log: Log) -> Result<Server, BoxError> {
    let bus = MemoryBus::new();
    let mut builder = Server::builder("duplexer-demo", env!("CARGO_PKG_VERSION"));
    if log == Log::Requests {
        builder = builder.middleware(RequestLog::new());
    }
    let server = builder
        .title("Duplexer demo")
        .instructions("A little of everything, to try clients with.")
        .logging()
        .subscriptions(bus.clone())
        .lifespan(move || Notebook::open(bus.clone()))
        .dynamic()
        .tool(tools::echo)
        .tool(tools::add)
        .tool(tools::divide)
        .tool(tools::count)
        .tool(tools::picture)
        .tool(tools::book)
        .tool(tools::tour)
        .tool(tools::remember)
        .tool(tools::folders)
        .tool(tools::consult)
        .extend(Tasks::new())
        .tool(tools::report)
        .resource(Resource::text("demo://readme", "One server, every revision.").name("readme"))
        .resource(resources::clock)
        .resource(resources::dot)
        .resource(resources::square)
        .resource(resources::capital)
        .prompt(prompts::greet)
        .prompt(prompts::review)
        .build()?;
    Ok(server)
}
