//! The target server of the attack tests, written as a user would write it.
//!
//! `attacked stdio` serves the standard streams. `attacked http` (no sessions), `attacked sessions` (sessions with an
//! event store, and HTTP+SSE) and `attacked protected` (sessions behind an authorization server) listen on a free
//! loopback port and print the address. Further arguments are settings (`unread_timeout=2000`, times in milliseconds)
//! and a directory to offer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::dispatch::{DispatchLimits, DispatchOptions};
use duplexer_http::{Handshake, MemoryEventStore, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::resource::Resource;
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{BoxError, Context, Server};
use duplexer_tests::protected::{self, Gate};
use schemars::JsonSchema;
use serde::Deserialize;

/// Time for requests in flight at the end. Shorter than the default, so that tests of the shutdown are short too.
const DRAIN: Duration = Duration::from_secs(1);

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

/// A recursive type with a tag, as authors write it.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case")]
enum Filter {
    And { left: Box<Filter>, right: Box<Filter> },
    Or { left: Box<Filter>, right: Box<Filter> },
    Not { left: Box<Filter> },
    Is { field: String },
}

impl Filter {
    fn leaves(&self) -> usize {
        match self {
            Self::And { left, right } | Self::Or { left, right } => left.leaves() + right.leaves(),
            Self::Not { left } => left.leaves(),
            Self::Is { field } => usize::from(!field.is_empty()),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Search {
    filter: Filter,
}

/// A recursive type without a tag, whose forms have distinct members.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Shape {
    Group { group: Vec<Shape> },
    Turned { turned: Box<Shape>, degrees: Option<i64> },
    Leaf { name: String },
}

impl Shape {
    fn leaves(&self) -> usize {
        match self {
            Self::Group { group } => group.iter().map(Self::leaves).sum(),
            Self::Turned { turned, degrees } => turned.leaves() + usize::from(degrees.is_some()),
            Self::Leaf { name } => usize::from(!name.is_empty()),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
struct Draw {
    shape: Shape,
}

fn server(offered: Option<&str>, gate: &Arc<Gate>) -> Result<Server, BoxError> {
    let mut server = Server::builder("attacked", "1")
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
        .tool(Tool::new("search", |Search { filter }| async move { filter.leaves() }))
        .tool(Tool::new("draw", |Draw { shape }| async move { shape.leaves() }))
        .tool(Tool::blocking("block", || std::thread::sleep(Duration::from_secs(60))))
        .resource(Resource::text("test://one", "one"))
        .resource(Resource::text("test://large", "x".repeat(1 << 20)))
        .resource(Resource::template("test://files/{name}", |File { name }| async move { name }));
    if let Some(directory) = offered {
        server = server.directory("test://offered", directory);
    }
    Ok(gate.tool(server).build()?)
}

async fn panics() -> String {
    panic!("secret-internal-detail")
}

/// Settings of the command line that differ from the defaults.
struct Settings(Vec<(String, usize)>);

impl Settings {
    fn value(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    fn time(&self, name: &str) -> Option<Duration> {
        self.value(name).map(|time| Duration::from_millis(time as u64))
    }

    fn apply(&self, mut service: StreamableHttpBuilder) -> Result<StreamableHttpBuilder, BoxError> {
        for (name, value) in &self.0 {
            let (value, time) = (*value, Duration::from_millis(*value as u64));
            service = match name.as_str() {
                "body_timeout" => service.body_timeout(time),
                "unread_timeout" => service.unread_timeout(time),
                "keep_alive" => service.sse_keep_alive(time),
                "max_requests" => service.max_requests(value),
                "max_requests_per_principal" => service.max_requests_per_principal(value),
                "max_subscriptions_per_principal" => service.max_subscriptions_per_principal(value),
                "max_sessions_per_principal" => service.max_sessions_per_principal(value),
                _ => return Err(format!("unknown setting {name}").into()),
            };
        }
        Ok(service)
    }
}

fn run(mut arguments: impl Iterator<Item = String>) -> Result<(), BoxError> {
    let transport = arguments.next();
    let (mut settings, mut offered) = (Settings(Vec::new()), None);
    for argument in arguments {
        match argument.split_once('=') {
            Some((name, value)) => settings.0.push((name.to_owned(), value.parse()?)),
            None => offered = Some(argument),
        }
    }
    let gate = Arc::new(Gate::default());
    let server = server(offered.as_deref(), &gate)?;
    match transport.as_deref() {
        Some("stdio") => {
            let limits = DispatchLimits::default().drain(DRAIN);
            Ok(duplexer_server::run_stdio_with(&server, DispatchOptions::default().limits(limits))?)
        }
        Some("http") => {
            listen(StreamableHttp::builder(server).handshake(Handshake::Stateless), &settings, None)
        }
        Some("sessions") => {
            let service = StreamableHttp::builder(server).event_store(MemoryEventStore::new());
            listen(service.http_sse("/sse", "/messages"), &settings, None)
        }
        Some("protected") => listen(StreamableHttp::builder(server), &settings, Some(gate)),
        _ => Err("usage: attacked stdio|http|sessions|protected [setting=value].. [directory]".into()),
    }
}

fn listen(
    service: StreamableHttpBuilder,
    settings: &Settings,
    protected: Option<Arc<Gate>>,
) -> Result<(), BoxError> {
    let service = settings.apply(service.shutdown_grace(3 * DRAIN))?.build()?;
    let body_timeout = settings.time("body_timeout").unwrap_or(Duration::from_secs(30));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let bound = service.bind("127.0.0.1:0").await?;
        let address = bound.local_addr()?;
        println!("{address}");
        match protected {
            None => Ok(bound.serve().await?),
            Some(gate) => {
                let auth = protected::auth(&format!("http://{address}"), gate, body_timeout)?;
                Ok(bound.layer(auth).serve().await?)
            }
        }
    })
}

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
