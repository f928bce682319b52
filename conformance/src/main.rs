//! A server with every feature that the official conformance suite tests.
//!
//! `everything-server PORT` serves both eras at `http://127.0.0.1:PORT/mcp`. Port 0 selects a free one; the first line of
//! its output is the URL. Behind a proxy `everything-server PORT URL HOST` gives the public URL, and the host name that
//! the proxy sends.

mod asking;
mod changes;
mod contents;
mod input;
mod prompts;
mod resources;
mod schemas;
mod tools;

use duplexer::prelude::*;
use duplexer::transport::signal::ShutdownSignals;
use duplexer_http::{MemoryEvents, StreamableHttp};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    let port: u16 = arguments.next().ok_or("usage: everything-server PORT [URL HOST]")?.parse()?;
    // Events are stored, so that a client can resume a stream.
    let mut service = StreamableHttp::builder(server()?).event_store(MemoryEvents::new());
    if let (Some(url), Some(host)) = (arguments.next(), arguments.next()) {
        service = service.public_url(&url).allow_host(&host);
    }
    let service = service.build()?.bind(("127.0.0.1", port)).await?;
    let mut signals = ShutdownSignals::listen()?;
    #[expect(clippy::print_stdout, reason = "the parent process waits for this line")]
    {
        println!("http://{}/mcp", service.local_addr()?);
    }
    service.run(async move { signals.next().await }).await;
    Ok(())
}

fn server() -> Result<Server, BoxError> {
    let server = Server::builder("everything")
        .version(env!("CARGO_PKG_VERSION"))
        .instructions("One of everything, for the conformance suite.")
        .logging()
        .dynamic();
    let server = tools::offer(server);
    let server = schemas::offer(server)?;
    let server = changes::offer(server);
    let server = asking::offer(server);
    let server = input::offer(server);
    let server = resources::offer(server);
    let server = prompts::offer(server);
    Ok(server.build()?)
}
