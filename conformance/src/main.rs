//! A server with one of everything that the official conformance suite asks for.
//!
//! `everything-server PORT` serves both eras at `http://127.0.0.1:PORT/mcp`. Port 0 takes any that is free; the first line of
//! its output says where it is. Behind a proxy `everything-server PORT URL HOST` names the URL that clients know, and the
//! host under which the proxy knows the server. `everything-server --stdio` serves standard input and output.

mod asking;
mod changes;
mod contents;
mod input;
mod prompts;
mod resources;
mod schemas;
mod tasks;
mod tools;

use duplexer::prelude::*;
use duplexer::shutdown_signal::ShutdownSignals;
use duplexer::skills::Skills;
use duplexer_http::{MemoryEventStore, StreamableHttp};

/// The skills that the server offers. The first one has a directory, as the suite requires.
const SKILLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/skills");

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().ok_or("usage: everything-server PORT [URL HOST], or --stdio")?;
    if first == "--stdio" {
        return Ok(duplexer::serve_stdio(&server()?).await?);
    }
    let port: u16 = first.parse()?;
    // Events are kept, so that a client can come back for the rest of a stream.
    let mut service = StreamableHttp::builder(server()?).event_store(MemoryEventStore::new());
    if let (Some(url), Some(host)) = (arguments.next(), arguments.next()) {
        service = service.public_url(&url).allow_host(&host);
    }
    let service = service.build()?.bind(("127.0.0.1", port)).await?;
    let mut signals = ShutdownSignals::listen()?;
    #[expect(clippy::print_stdout, reason = "the starter waits for this line")]
    {
        println!("http://{}/mcp", service.local_addr()?);
    }
    service.serve_until(async move { signals.next().await }).await;
    Ok(())
}

fn server() -> Result<Server, BoxError> {
    let server = Server::builder("everything", env!("CARGO_PKG_VERSION"))
        .instructions("One of everything, for the conformance suite.")
        .logging()
        .dynamic();
    let server = tools::offer(server);
    let server = schemas::offer(server)?;
    let server = changes::offer(server);
    let server = asking::offer(server);
    let server = input::offer(server);
    let server = tasks::offer(server);
    let server = resources::offer(server);
    let server = prompts::offer(server);
    let server = server.extend(Skills::new().directory(SKILLS));
    Ok(server.build()?)
}
