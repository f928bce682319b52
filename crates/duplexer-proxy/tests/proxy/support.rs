//! A server with one of everything, in one era or in both, and clients of either era.

use std::sync::Arc;
use std::time::Duration;

use duplexer::client::PinnedVersion;
use duplexer::client::prelude::*;
use duplexer::dispatch::{
    CallContext, Dispatch, DispatchOptions, Inbound, JsonRpcDispatcher, Message, Schedule,
};
use duplexer::proxy::Remote;
use duplexer::server::driver::{PendingResponse, StreamServer, serve_envelope, serve_handshake};
use duplexer::server::subscriptions::MemoryBus;
use duplexer::server::{Caller, RunningServer};
use duplexer::testing::TestClient;
use duplexer::transport::memory::{self, Memory};
use duplexer::types::completion::CompleteResult;
use duplexer::types::content::Content;
use duplexer::types::error::ErrorObject;
use duplexer::types::methods::Method;
use duplexer::types::version::Era;
use duplexer::{Context, Prompt, Resource, Server, Tool, ToolError};
use duplexer_core::tasks::TaskTracker;
use serde::Deserialize;
use serde_json::{Value, json};

/// Which eras a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaks {
    Both,
    OnlyHandshake,
    OnlyEnvelope,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Sum {
    a: i64,
    b: i64,
}

#[derive(Deserialize, schemars::JsonSchema, serde::Serialize)]
pub(crate) struct Seat {
    /// Where to sit.
    seat: String,
}

impl Seat {
    pub(crate) fn seat(&self) -> &str {
        &self.seat
    }
}

/// A server with one of everything.
pub(crate) fn everything() -> Server {
    let extra = || Tool::new("extra", || async { "extra" });
    Server::builder("everything", "1.2.3")
        .instructions("Use it.")
        .logging()
        .subscriptions(MemoryBus::new())
        .dynamic()
        .tool(Tool::new("add", |Sum { a, b }| async move { a + b }).description("Adds."))
        .tool(Tool::new("fail", || async { Err::<(), _>(ToolError::new("no")) }))
        .tool(Tool::new("count", |cx: Context| async move {
            for step in 1..=3 {
                cx.progress(step).total(3).message("step").await;
            }
            "counted"
        }))
        .tool(Tool::new("log", |cx: Context| async move {
            cx.logger("far").warning("careful").await;
            cx.logger("far").debug("details").await;
            "logged"
        }))
        .tool(Tool::new("book", |cx: Context| async move {
            let seat = cx.elicit::<Seat>("seat", "Which seat?").await?;
            Ok::<_, ToolError>(format!("{:?}", seat.accepted().map(|seat| seat.seat)))
        }))
        .tool(Tool::new("roots", |cx: Context| async move {
            let roots = cx.roots("roots").await?;
            Ok::<_, ToolError>(roots.into_iter().map(|root| root.uri).collect::<Vec<_>>().join(","))
        }))
        .tool(Tool::new("wait", |cx: Context| async move {
            cx.cancellation().cancelled().await;
            "never"
        }))
        .tool(Tool::new("touch", |cx: Context| async move {
            cx.notify_resource_updated("note://one").await;
        }))
        .tool(Tool::new("grow", move |cx: Context| async move {
            cx.catalog()?.edit(|edit| edit.add_tool(extra())).await?;
            Ok::<_, ToolError>(())
        }))
        .resource(Resource::text("note://one", "one").name("one"))
        .resource(Resource::template("note://{name}", |name: NoteName| async move { name.name }).name("note"))
        .prompt(
            Prompt::new("greet", |Greet { name }: Greet| async move { format!("Greet {name}") })
                .complete("name", |_: duplexer::completion::CompletionRequest| async { vec!["ada", "bob"] }),
        )
        .on_custom("com.example/echo", |params: Value| async move {
            Ok::<_, McpError>(json!({ "echo": params, "unknown": [1, null] }))
        })
        .build()
        .unwrap()
}

#[derive(Deserialize)]
pub(crate) struct NoteName {
    name: String,
}

#[derive(Deserialize, schemars::JsonSchema)]
pub(crate) struct Greet {
    name: String,
}

/// Returns `server` behind a proxy. Each session starts the server again.
pub(crate) fn proxied(server: &Server, speaks: Speaks) -> Remote {
    let server = server.clone();
    Remote::new(move |builder: ClientBuilder| {
        let server = server.clone();
        async move { open(&server, speaks, builder).await }
    })
}

/// Opens a session with a new run of `server`.
pub(crate) async fn open(
    server: &Server,
    speaks: Speaks,
    builder: ClientBuilder,
) -> Result<Client, BoxError> {
    let running = server.start().await?;
    let client = open_running(&running, speaks, builder).await?;
    client.on_close(move || async move { running.shutdown().await });
    Ok(client)
}

/// Opens a session with a running server.
pub(crate) async fn open_running(
    running: &RunningServer,
    speaks: Speaks,
    builder: ClientBuilder,
) -> Result<Client, BoxError> {
    let (ours, theirs) = memory::pair();
    let serving = running.clone();
    let task = TaskTracker::new().spawn(async move { serve(&serving, speaks, theirs).await });
    let client = builder.connect(ours).await?;
    client.on_close(move || async move { drop(tokio::time::timeout(Duration::from_secs(5), task).await) });
    Ok(client)
}

async fn serve(running: &RunningServer, speaks: Speaks, stream: Memory) {
    let ended = match speaks {
        Speaks::Both => StreamServer::new(running, stream, DispatchOptions::default()).0.run().await,
        Speaks::OnlyHandshake => serve_handshake(running, stream).await,
        Speaks::OnlyEnvelope => {
            let (dispatcher, _peer) = JsonRpcDispatcher::new(stream);
            dispatcher.run(Arc::new(EnvelopeOnly(running.clone()))).await
        }
    };
    ended.unwrap();
}

/// A server that knows no handshake.
struct EnvelopeOnly(RunningServer);

impl Inbound for EnvelopeOnly {
    type Reply = PendingResponse;

    async fn request(
        self: &Arc<Self>,
        cx: CallContext,
        call: Arc<Message>,
    ) -> Result<PendingResponse, McpError> {
        if call.known() == Some(Method::Initialize) {
            return Err(ErrorObject::method_not_found(call.method()).into());
        }
        serve_envelope(&self.0, cx, call, None, Caller::default()).await
    }

    async fn notification(self: &Arc<Self>, _: CallContext, _: Arc<Message>) {}

    fn schedule(&self, call: &Message) -> Schedule {
        if call.known().is_some_and(Method::is_long_lived) {
            Schedule::LongLived
        } else {
            Schedule::Concurrent
        }
    }
}

/// Returns the builder of a client of one era that answers everything.
pub(crate) fn client(era: Era) -> ClientBuilder {
    let negotiation = match era {
        Era::Handshake => Negotiation::Handshake,
        Era::Envelope => Negotiation::Pinned(PinnedVersion::new("2026-07-28")),
    };
    Client::builder("tester", "7")
        .negotiation(negotiation)
        .timeout(Duration::from_secs(20))
        .on_elicitation(async |_| Ok(ElicitResult::accept(json!({ "seat": "7a" }))))
        .on_roots(async || Ok(ListRootsResult::new([Root::new("file:///work")])))
}

/// Connects a client of one era to a server, through a proxy.
pub(crate) async fn through(remote: Remote, client: ClientBuilder) -> TestClient {
    TestClient::connect(&remote.server().unwrap(), client).await.unwrap()
}

pub(crate) fn text(content: &[Content]) -> String {
    CallToolResult::new(content.to_vec()).to_text()
}

pub(crate) fn values(result: &CompleteResult) -> Vec<String> {
    result.completion.values.clone()
}
