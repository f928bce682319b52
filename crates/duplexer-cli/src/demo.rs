//! The demo server: a little of everything a server can offer, written as any server would be.
//!
//! `tools`, `resources` and `prompts` are plain functions; `notebook` is what they share; `serving` puts the server on a
//! socket or on standard input and output, with a few words of `welcome`.

mod notebook;
mod prompts;
mod resources;
mod serving;
mod tools;
mod welcome;

use duplexer::prelude::*;
use duplexer::server::subscriptions::MemoryBus;

use self::notebook::Notebook;

pub(crate) use serving::serve;

/// The whole server. What is listed is what the modules beside this one define.
fn server() -> Result<Server, BoxError> {
    let bus = MemoryBus::new();
    let server = Server::builder("duplexer-demo")
        .version(env!("CARGO_PKG_VERSION"))
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
