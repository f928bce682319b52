//! The target server of the attack tests, written as a user would write it.
//!
//! `attacked stdio` serves the standard streams. `attacked http` (no sessions) and `attacked sessions` (sessions with an
//! event store) listen on a free loopback port and print the address.

use std::process::ExitCode;

use duplexer_core::transport::signal::ShutdownSignals;
use duplexer_http::{Handshake, MemoryEventStore, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::resource::Resource;
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{BoxError, Context, Server};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize)]
struct File {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn server() -> Result<Server, BoxError> {
    let server = Server::builder("attacked", "1")
        .dynamic()
        .tool(Tool::new("echo", |Echo { text }| async move { text }))
        .tool(Tool::new("add", |Add { a, b }| async move { a + b }))
        .tool(Tool::new("fail", || async { Err::<String, _>(ToolError::new("it always fails")) }))
        .tool(Tool::new("panic", panics))
        .tool(Tool::new("wait", |cx: Context| async move {
            cx.progress(1.0).await;
            std::future::pending::<()>().await;
        }))
        .tool(Tool::new("finish", |cx: Context| async move {
            cx.progress(1.0).await;
            cx.closing().cancelled().await;
            "finished"
        }))
        .tool(Tool::new("ask", |cx: Context, Echo { text }| async move {
            let who: Echo = cx.elicit("who", "Who are you?").await?.accepted()?;
            Ok::<_, ToolError>(format!("{text} {}", who.text))
        }))
        .resource(Resource::text("test://one", "one"))
        .resource(Resource::template("test://files/{name}", |File { name }| async move { name }))
        .build()?;
    Ok(server)
}

async fn panics() -> String {
    panic!("secret-internal-detail")
}

fn run(transport: Option<&str>) -> Result<(), BoxError> {
    match transport {
        Some("stdio") => Ok(duplexer_server::run_stdio(&server()?)?),
        Some("http") => listen(StreamableHttp::builder(server()?).handshake(Handshake::Stateless)),
        Some("sessions") => listen(StreamableHttp::builder(server()?).event_store(MemoryEventStore::new())),
        _ => Err("usage: attacked stdio|http|sessions".into()),
    }
}

fn listen(service: StreamableHttpBuilder) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let bound = service.build()?.bind("127.0.0.1:0").await?;
        println!("{}", bound.local_addr()?);
        let mut signals = ShutdownSignals::listen()?;
        bound.serve_until(async move { signals.next().await }).await;
        Ok(())
    })
}

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
