//! The demo server: one example of each feature, written like any other server.
//!
//! `tools`, `kitchen`, `weather`, `resources` and `prompts` are plain functions; `notebook` is their shared state; `backing` is what several nodes
//! can share; `serving` serves them over HTTP or stdio, after the `welcome` message, and `metrics` beside it.

mod backing;
mod kitchen;
mod metrics;
mod notebook;
mod prompts;
mod request_log;
mod resources;
mod serving;
mod tools;
mod weather;
mod welcome;

use std::sync::Arc;

use duplexer::apps::Apps;
use duplexer::otel::Metrics;
use duplexer::prelude::*;

use self::backing::Backing;
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
fn server(log: Log, backing: &Backing, metrics: Option<&Metrics>) -> Result<Server, BoxError> {
    let bus = Arc::clone(&backing.bus);
    let mut builder = Server::builder("duplexer-demo", env!("CARGO_PKG_VERSION"));
    if let Some(metrics) = metrics {
        builder = builder.observer(metrics.clone());
    }
    if log == Log::Requests {
        builder = builder.middleware(RequestLog::new());
    }
    if let Some(state) = &backing.request_state {
        builder = builder.request_state(state.clone());
    }
    let server = builder
        .title("Duplexer demo")
        .instructions("A little of everything, to try clients with.")
        .logging()
        .subscriptions(Arc::clone(&bus))
        .lifespan(move || Notebook::open(Arc::clone(&bus)))
        .dynamic()
        .tool(tools::echo)
        .tool(tools::add)
        .tool(tools::divide)
        .tool(tools::count)
        .tool(tools::picture)
        .tool(kitchen::order)
        .tool(kitchen::gallery)
        .tool(tools::book)
        .tool(tools::tour)
        .tool(tools::remember)
        .tool(tools::folders)
        .tool(tools::consult)
        .extend(backing.tasks.clone())
        .tool(tools::report)
        .extend(Apps::new().view(weather::page()))
        .tool(weather::weather)
        .tool(weather::weather_on)
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
