//! A server with one of everything that the official conformance suite asks for.
//!
//! `everything-server PORT` serves `http://127.0.0.1:PORT/mcp`. Port 0 takes any that is free; the first line of its
//! output says where it is.

mod changes;
mod contents;
mod input;
mod prompts;
mod resources;
mod schemas;
mod tools;

use duplexer::prelude::*;
use duplexer::transport::signal::ShutdownSignals;
use duplexer_http::StreamableHttp;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let port: u16 = std::env::args().nth(1).ok_or("usage: everything-server PORT")?.parse()?;
    let service = StreamableHttp::new(server()?).bind(("127.0.0.1", port)).await?;
    let mut signals = ShutdownSignals::listen()?;
    #[expect(clippy::print_stdout, reason = "whoever started it waits for this line")]
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
        .dynamic();
    let server = tools::offer(server);
    let server = schemas::offer(server)?;
    let server = changes::offer(server);
    let server = input::offer(server);
    let server = resources::offer(server);
    let server = prompts::offer(server);
    Ok(server.build()?)
}
