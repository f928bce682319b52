//! The server under load, written as a user would write it.
//!
//! Usage: `bench-server stdio [OFFER]...`, `bench-server http PORT [OFFER]... [--stateless] [--session-idle SECONDS]
//! [--static-tokens FILE [SCOPE]...]`. See `duplexer_bench::server` for OFFER.

use std::process::ExitCode;
use std::time::Duration;

use duplexer::prelude::*;
use duplexer::shutdown_signal::ShutdownSignals;
use duplexer_bench::server::{Offer, build};
use duplexer_http::{Handshake, StreamableHttp};

#[cfg(feature = "count-alloc")]
#[global_allocator]
static ALLOCATOR: duplexer_bench::allocations::Total = duplexer_bench::allocations::Total;

/// The allocator of the command, which a server that is packaged like it has as well.
#[cfg(not(feature = "count-alloc"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    // Enough for measurements with many idle streams, and with many calls in one session.
    let mut service =
        StreamableHttp::builder(build(offer)?).max_requests(16_384).max_calls_per_session(16_384);
    let mut options = options.iter();
    while let Some(option) = options.next() {
        service = match option.as_str() {
            "--stateless" => service.handshake(Handshake::Stateless),
            "--session-idle" => {
                let seconds = options.next().ok_or(USAGE)?.parse()?;
                service.session_idle_timeout(Duration::from_secs(seconds))
            }
            #[cfg(feature = "tokens")]
            "--static-tokens" => {
                let file = options.next().ok_or(USAGE)?;
                return serve_protected(service, port, file, options.as_slice()).await;
            }
            _ => return Err(USAGE.into()),
        };
    }
    let mut signals = ShutdownSignals::listen()?;
    let bound = service.build()?.bind(("127.0.0.1", port)).await?.max_connections(16_384);
    bound.serve_until(async move { returning_memory(signals.next()).await }).await;
    Ok(())
}

/// Awaits the end and allocates a large block once a second, as the command does: mimalloc returns free memory only when the
/// program allocates.
async fn returning_memory<T>(end: impl Future<Output = T>) -> T {
    let mut end = std::pin::pin!(end);
    loop {
        if let Ok(ended) = tokio::time::timeout(Duration::from_secs(1), &mut end).await {
            return ended;
        }
        drop(std::hint::black_box(Vec::<u8>::with_capacity(1 << 20)));
    }
}

/// Serves only requests with a token from the file and the `required` scopes.
#[cfg(feature = "tokens")]
async fn serve_protected(
    service: duplexer_http::StreamableHttpBuilder,
    port: u16,
    file: &str,
    required: &[String],
) -> Result<(), BoxError> {
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    let here = format!("http://{}/mcp", listener.local_addr()?);
    let tokens = duplexer_bench::tokens::read(&std::fs::read_to_string(file)?)?;
    let auth = duplexer_auth::Auth::static_tokens(tokens).audience(&here).require_scopes(required).build()?;
    // The port can be 0: prints the address in use.
    eprintln!("{here}");
    let mut signals = ShutdownSignals::listen()?;
    service
        .build()?
        .with_listener(listener)
        .layer(auth)
        .serve_until(async move { signals.next().await })
        .await;
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
