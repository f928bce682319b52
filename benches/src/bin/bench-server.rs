//! The server that load generators measure, written as a user would write it.
//!
//! Usage: `bench-server stdio [OFFER]...`, `bench-server http PORT [OFFER]... [--stateless] [--session-idle SECONDS]
//! [--static-tokens FILE [SCOPE]...]`. It offers what comparable servers of other SDKs offer: a few small tools, fifty that
//! only make the list long, and a resource of any size. OFFER is `--dummies N` for another number of those fifty, or
//! `--with-changes` for a tool `touch` that tells all who listen that the resource `bench://touched` has changed.

use std::process::ExitCode;
use std::time::Duration;

use duplexer::prelude::*;
use duplexer::server::MemoryBus;
use duplexer::transport::signal::ShutdownSignals;
use duplexer_auth::Auth;
use duplexer_http::{Builder, Handshake, StreamableHttp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(feature = "count-alloc")]
#[global_allocator]
static ALLOCATOR: duplexer_bench::allocations::Total = duplexer_bench::allocations::Total;

/// Echo the text back.
#[tool]
async fn echo(text: String) -> Content {
    Content::text(text)
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

/// Add two numbers.
#[tool]
async fn add(a: f64, b: f64) -> Sum {
    Sum { sum: a + b }
}

/// Sleep for some milliseconds.
#[tool]
async fn sleep(ms: u64) -> Content {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Content::text("slept")
}

/// Send n progress notifications, then return.
#[tool]
async fn progress(cx: Context, n: u32) -> Content {
    for step in 1..=n {
        cx.progress(f64::from(step), Some(f64::from(n)), None).await;
    }
    Content::text("done")
}

/// An ordinary failure, told in-band.
#[tool]
async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("this tool always fails"))
}

/// A bug.
#[tool]
async fn panic() -> String {
    panic!("secret-internal-detail")
}

/// Text of any size.
#[resource("bench://blob/{n}", mime_type = "text/plain")]
async fn blob(n: usize) -> Result<String, ResourceError> {
    if n > 64 * 1024 * 1024 { Err(ResourceError::NotFound) } else { Ok("x".repeat(n)) }
}

/// The arguments of the tools that only make the list long.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only their schema is of interest")]
struct Dummy {
    /// Path of the file to work on
    path: String,
    /// Maximum number of entries
    limit: Option<u32>,
    recursive: Option<bool>,
}

/// What changes when it is touched.
const TOUCHED: &str = "bench://touched";

/// Tell everybody that something has changed.
#[tool]
async fn touch(cx: Context) -> Content {
    cx.notify_resource_updated(TOUCHED).await;
    Content::text("touched")
}

/// What is offered besides the usual.
#[derive(Clone, Copy)]
struct Offer {
    dummies: usize,
    changes: bool,
}

impl Offer {
    /// Reads the options that say what is offered, which come first, and leaves the others.
    fn read(mut options: &[String]) -> Result<(Self, &[String]), BoxError> {
        let mut offer = Self { dummies: 50, changes: false };
        loop {
            options = match options {
                [option, number, rest @ ..] if option == "--dummies" => {
                    offer.dummies = number.parse()?;
                    rest
                }
                [option, rest @ ..] if option == "--with-changes" => {
                    offer.changes = true;
                    rest
                }
                rest => return Ok((offer, rest)),
            };
        }
    }
}

fn build(offer: Offer) -> Result<Server, BoxError> {
    let mut server = Server::builder("bench")
        .version("1.0.0")
        .tool(echo)
        .tool(add)
        .tool(sleep)
        .tool(progress)
        .tool(fail)
        .tool(panic)
        .resource(blob);
    for number in 0..offer.dummies {
        let tool = Tool::new(format!("dummy_{number:02}"))
            .description(format!(
                "Dummy tool number {number}: stands in for a realistic tool with a short description"
            ))
            .handler(|_: Dummy| async { Content::text("dummy") });
        server = server.tool(tool);
    }
    if offer.changes {
        let touched = Resource::text(TOUCHED, "").name("touched");
        server = server.subscriptions(MemoryBus::new()).resource(touched).tool(touch);
    }
    #[cfg(feature = "count-alloc")]
    let server = server.tool(alloc_stats);
    Ok(server.build()?)
}

/// Allocations and bytes since the start.
#[cfg(feature = "count-alloc")]
#[tool]
async fn alloc_stats() -> Content {
    Content::text(duplexer_bench::allocations::total())
}

fn run(arguments: &[String]) -> Result<(), BoxError> {
    match arguments {
        [transport, options @ ..] if transport == "stdio" => match Offer::read(options)? {
            (offer, []) => Ok(run_stdio(&build(offer)?)?),
            _ => Err(USAGE.into()),
        },
        [transport, port, options @ ..] if transport == "http" => {
            let port = port.parse()?;
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
            runtime.block_on(serve(port, options))
        }
        _ => Err(USAGE.into()),
    }
}

const USAGE: &str = "usage: bench-server stdio [OFFER]... | bench-server http PORT [OFFER]... [--stateless] \
                     [--session-idle SECONDS] [--static-tokens FILE [SCOPE]...]; OFFER is --dummies N or --with-changes";

async fn serve(port: u16, options: &[String]) -> Result<(), BoxError> {
    let (offer, options) = Offer::read(options)?;
    // Room for what is measured with many idle streams.
    let mut service = StreamableHttp::builder(build(offer)?).max_requests(16_384);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        service = match option.as_str() {
            "--stateless" => service.handshake(Handshake::Stateless),
            "--session-idle" => {
                let seconds = options.next().ok_or(USAGE)?.parse()?;
                service.session_idle(Duration::from_secs(seconds))
            }
            "--static-tokens" => {
                let file = options.next().ok_or(USAGE)?;
                return serve_protected(service, port, file, options.as_slice()).await;
            }
            _ => return Err(USAGE.into()),
        };
    }
    let mut signals = ShutdownSignals::listen()?;
    let bound = service.build()?.bind(("127.0.0.1", port)).await?.max_connections(16_384);
    bound.run(async move { signals.next().await }).await;
    Ok(())
}

/// Only for those who show a token from the file; every request needs the `required` scopes.
async fn serve_protected(
    service: Builder,
    port: u16,
    file: &str,
    required: &[String],
) -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let here = format!("http://{}/mcp", listener.local_addr()?);
    let tokens = duplexer_bench::tokens::read(&std::fs::read_to_string(file)?)?;
    let auth = Auth::static_tokens(tokens, &here).require(required).build()?;
    // Whoever started it may have left the port to us.
    eprintln!("{here}");
    let mut signals = ShutdownSignals::listen()?;
    service.build()?.on(listener).layer(auth).run(async move { signals.next().await }).await;
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-server: {error}");
            ExitCode::FAILURE
        }
    }
}
