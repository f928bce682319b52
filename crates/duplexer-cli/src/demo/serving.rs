//! Serves the demo over HTTP or stdio.

use std::io::{self, IsTerminal};
use std::net::SocketAddr;

use duplexer::Server;
use duplexer::auth::{Auth, dev};
use duplexer::otel::Metrics;
use duplexer::prelude::run_stdio;
use duplexer::shutdown_signal::ShutdownSignals;
use duplexer_http::StreamableHttp;

use super::Log;
use super::backing::Backing;
use super::metrics::beside;
use super::welcome::{USER, welcome};
use crate::arguments::{AuthChoice, DemoArguments};
use crate::failure::{Exit, Failure, chain};
use crate::serving::{not_listening, returning_memory, service};
use crate::terminal::Terminal;

/// Serves the demo until a shutdown signal.
pub(crate) fn serve(arguments: &DemoArguments) -> Result<(), Failure> {
    let log = if arguments.verbose { Log::Requests } else { Log::Nothing };
    let metrics = arguments.metrics.map(|_| Metrics::new());
    let server = |backing: &Backing| {
        super::server(log, backing, metrics.as_ref())
            .map_err(|error| Failure::new(Exit::Protocol, chain(&*error)))
    };
    if arguments.stdio {
        return on_stdio(&server(&Backing::in_memory())?);
    }
    let broken = |error: io::Error| Failure::new(Exit::Connect, error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(broken)?;
    runtime.block_on(async {
        let backing = Backing::open(arguments).await?;
        let address = SocketAddr::new(arguments.host, arguments.port);
        let server = server(&backing)?;
        if let Some(metrics) = &metrics {
            backing.add_metrics(metrics);
        }
        let service = service(server, address.ip(), backing.stores)?;
        let serving = on_http(service.clone(), address, arguments.auth);
        match arguments.metrics.zip(metrics.clone()) {
            None => serving.await,
            Some((address, metrics)) => beside(address, metrics, service, serving).await,
        }
    })
}

fn on_stdio(server: &Server) -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        Terminal::new()
            .note("The demo server reads requests from this terminal, one per line. Ctrl-D ends it.");
    }
    run_stdio(server).map_err(|error| Failure::new(Exit::Connect, chain(&error)))
}

async fn on_http(
    service: StreamableHttp,
    address: SocketAddr,
    auth: Option<AuthChoice>,
) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::new(Exit::Connect, error.to_string());
    let bound = service.bind(address).await.map(duplexer_http::HttpServer::health_routes);
    let bound = bound.map_err(|error| not_listening(address, &error, "demo --port"))?;
    let mut signals = ShutdownSignals::listen().map_err(broken)?;
    let address = bound.local_addr().map_err(broken)?;
    let protection = auth.map(|AuthChoice::Dev| protection(address)).transpose()?;
    let terminal = Terminal::new();
    terminal.note(&welcome(address, auth));
    let end = async move {
        returning_memory(signals.next()).await;
        terminal.interrupted();
    };
    match protection {
        None => bound.serve_until(end).await,
        Some(protection) => bound.layer(protection).serve_until(end).await,
    }
    Ok(())
}

/// Builds an authorization server next to the demo: every browser is its single user.
fn protection(address: SocketAddr) -> Result<Auth, Failure> {
    dev::auth(&format!("http://{address}"), USER).map_err(|error| {
        Failure::usage(error.to_string()).hint("`--auth dev` is for this machine: leave out `--host`")
    })
}
