//! The server that is tested with several nodes: tools whose effects can be counted, and principals by name.
//!
//! `scale-server` serves it as a process; the tests also serve it in their own process.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duplexer_auth::{AccessToken, Auth, AuthConfigError};
use duplexer_http::{SharedStores, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::request_state::RequestState;
use duplexer_server::resource::Resource;
use duplexer_server::subscriptions::{Event, SubscriptionBus, SubscriptionLimits};
use duplexer_server::tool::{Tool, ToolError};
use duplexer_server::{BoxError, Context, Principal, Server};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

/// The resource that `touch` changes.
pub const TOUCHED: &str = "scale://touched";
/// Time for requests in flight at the end of a node.
pub const DRAIN: Duration = Duration::from_secs(4);
/// Time after which a client resumes a stream.
pub const RETRY: Duration = Duration::from_millis(200);

/// Maximum number of listeners of a node.
const MAX_LISTENERS: usize = 4096;
const AUDIENCE: &str = "http://127.0.0.1/mcp";

/// Where tools write what they have done.
#[derive(Clone, Debug)]
pub enum Ledger {
    /// Nowhere.
    None,
    /// To a file that several processes append to.
    File(PathBuf),
    /// To the memory of the test.
    Memory(Arc<Mutex<Vec<String>>>),
}

impl Ledger {
    /// Appends a line.
    pub fn write(&self, line: &str) -> std::io::Result<()> {
        match self {
            Self::None => {}
            Self::File(path) => {
                let mut file = OpenOptions::new().create(true).append(true).open(path)?;
                // One write per line, so that the lines of several processes do not mix.
                file.write_all(format!("{line}\n").as_bytes())?;
            }
            Self::Memory(lines) => {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            }
        }
        Ok(())
    }
}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    n: u32,
    ms: u64,
    tag: String,
}

#[derive(Deserialize, JsonSchema)]
struct Tagged {
    tag: String,
}

#[derive(Deserialize, JsonSchema)]
struct Answer {
    answer: String,
}

/// Builds the server of one node. All nodes have the same secret, and a bus that connects them.
pub fn server(ledger: &Ledger, bus: Arc<dyn SubscriptionBus>, secret: &[u8]) -> Result<Server, BoxError> {
    let (counts, marks) = (ledger.clone(), ledger.clone());
    let publisher = Arc::clone(&bus);
    let server = Server::builder("scale", "1")
        .request_state(RequestState::keys([secret])?)
        .subscriptions_within(bus, SubscriptionLimits::default().streams(MAX_LISTENERS))
        .resource(Resource::text(TOUCHED, "").name("touched"))
        .tool(Tool::new("echo", |Echo { text }| async move { text }))
        .tool(Tool::new("sleep", |Sleep { ms }| async move {
            sleep(Duration::from_millis(ms)).await;
            "slept"
        }))
        .tool(Tool::new("count", move |cx: Context, count: Count| {
            let ledger = counts.clone();
            async move { run_count(&cx, &ledger, &count).await }
        }))
        .tool(Tool::new("ask", |cx: Context, Tagged { tag }| async move {
            let Answer { answer } = cx.elicit("answer", &format!("What about {tag}?")).await?.accepted()?;
            Ok::<_, ToolError>(format!("{tag}:{answer}"))
        }))
        .tool(Tool::new("mark", move |Tagged { tag }| {
            let marked = marks.write(&format!("mark {tag}"));
            async move { marked.map(|()| tag).map_err(|error| ToolError::new(error.to_string())) }
        }))
        .tool(Tool::new("touch", move || {
            let bus = Arc::clone(&publisher);
            async move {
                let change = bus.publish(Event::resource_updated(TOUCHED)).await;
                change.map(|_| "touched").map_err(|error| ToolError::new(error.to_string()))
            }
        }));
    Ok(server.build()?)
}

async fn run_count(cx: &Context, ledger: &Ledger, count: &Count) -> Result<String, ToolError> {
    let Count { n, ms, tag } = count;
    ledger.write(&format!("count {tag}")).map_err(|error| ToolError::new(error.to_string()))?;
    for step in 1..=*n {
        if *ms > 0 {
            sleep(Duration::from_millis(*ms)).await;
        }
        cx.progress(step).total(*n).message(&format!("{tag}:{step}")).await;
    }
    Ok(format!("{tag}:{n}"))
}

/// Builds the service of one node.
pub fn service(server: Server, stores: SharedStores) -> Result<StreamableHttp, BoxError> {
    service_with_notice(server, stores, Duration::ZERO)
}

/// Builds the service of one node that is still served requests for some time after it has begun to end.
pub fn service_with_notice(
    server: Server,
    stores: SharedStores,
    notice: Duration,
) -> Result<StreamableHttp, BoxError> {
    Ok(builder(server, stores).shutdown_notice(notice).build()?)
}

/// Returns the settings of one node.
pub fn builder(server: Server, stores: SharedStores) -> StreamableHttpBuilder {
    let service = StreamableHttp::builder(server).scale_out(stores).max_subscriptions(MAX_LISTENERS);
    service.shutdown_grace(DRAIN).sse_retry(RETRY)
}

/// Returns the authorization: clients that show the same bearer text are the same principal.
pub fn auth() -> Result<Auth, AuthConfigError> {
    async fn verify(token: String) -> Result<Option<AccessToken>, BoxError> {
        Ok(Some(AccessToken::new(Principal::new(token), vec![AUDIENCE.to_owned()])))
    }
    Auth::verifier("http://127.0.0.1/login", verify).audience(AUDIENCE).build()
}
