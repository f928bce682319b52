//! A server with every feature for the official clients: over stdio, or with the arguments `http PORT` at
//! `http://127.0.0.1:PORT/mcp` and, for older clients, `/sse`. Port 0 selects a free one; the first line of output is the
//! URL. With `resumable` streams can be resumed; with `guarded` requests require a token; with `tasks` the tools are those
//! of `tasks.rs`.
//!
//! Written against the registry directly, but for tasks: the authoring layer has its own tests.

mod tasks;
mod tools;

use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::Duration;

use duplexer_auth::{Auth, AuthConfigError, AuthorizationServer, DevBackend};
use duplexer_core::error::{BoxError, McpError};
use duplexer_core::shutdown_signal::ShutdownSignals;
use duplexer_http::{HttpServer, MemoryEventStore, StreamableHttp};
use duplexer_server::request_state::RequestState;
use duplexer_server::subscriptions::MemoryBus;
use duplexer_server::{Server, ServerBuilder, run_stdio};
use duplexer_types::completion::{CompleteParams, CompleteResult, Completion};
use duplexer_types::content::Content;
use duplexer_types::error::{ErrorCode, ErrorObject};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::{
    GetPromptParams, GetPromptResult, ListPromptsResult, PromptArgument, PromptDefinition, PromptMessage,
};
use duplexer_types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceParams, ReadResourceResult,
    ResourceContents, ResourceDefinition, ResourceTemplate,
};
use tokio::net::TcpListener;

/// Shared state of the tools.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Texts of cancelled calls of `wait`: several clients can call concurrently.
    pub(crate) cancelled: Mutex<Vec<String>>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[expect(clippy::print_stderr, reason = "the last word of a program")]
            {
                eprintln!("interop-server: {error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: &[String]) -> Result<(), BoxError> {
    match arguments {
        [] => Ok(run_stdio(&build(Server::builder("interop", "1.0.0"))?)?),
        [kind] if kind == "tasks" => Ok(run_stdio(&tasks::server()?)?),
        [http, port] if http == "http" => serve_http(port.parse()?, Kind::Plain),
        [http, port, kind] if http == "http" => serve_http(port.parse()?, kind.parse()?),
        _ => Err(USAGE.into()),
    }
}

const USAGE: &str = "usage: interop-server [tasks | http PORT [resumable | guarded | tasks]]";

/// Variant of the server over HTTP.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    /// Its streams are resumable.
    Resumable,
    /// Requests require a token of the authorization server in the same process.
    Guarded,
    /// Its tools run as tasks.
    Tasks,
}

impl FromStr for Kind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "resumable" => Ok(Self::Resumable),
            "guarded" => Ok(Self::Guarded),
            "tasks" => Ok(Self::Tasks),
            _ => Err(USAGE),
        }
    }
}

/// Every call requires the scope `mcp`; a call that changes something requires `write` too.
fn auth(base: &str) -> Result<Auth, AuthConfigError> {
    let resource = format!("{base}/mcp");
    let issuer = AuthorizationServer::builder(base, DevBackend::new("ada"));
    let issuer = issuer.resource(&resource).scopes(["mcp", "write"]).build()?;
    Auth::authorization_server(issuer).audience(resource).require_scopes(["mcp"]).build()
}

#[tokio::main]
async fn serve_http(port: u16, kind: Kind) -> Result<(), BoxError> {
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let server = Server::builder("interop", "0");
    match kind {
        Kind::Plain => {
            let service = StreamableHttp::builder(build(server)?).http_sse("/sse", "/messages/");
            run(service.build()?.with_listener(listener)).await
        }
        Kind::Resumable => {
            let service = StreamableHttp::builder(build(server)?).event_store(MemoryEventStore::new());
            run(service.sse_retry(Duration::from_millis(50)).build()?.with_listener(listener)).await
        }
        Kind::Guarded => {
            let auth = auth(&format!("http://{}", listener.local_addr()?))?;
            let server = server.middleware(auth.guard().tool("change", ["write"]).build()?);
            run(StreamableHttp::new(build(server)?).with_listener(listener).layer(auth)).await
        }
        Kind::Tasks => {
            let service = StreamableHttp::builder(tasks::server()?).event_store(MemoryEventStore::new());
            run(service.build()?.with_listener(listener)).await
        }
    }
}

async fn run<S>(service: HttpServer<TcpListener, S>) -> Result<(), BoxError> {
    let mut signals = ShutdownSignals::listen()?;
    #[expect(clippy::print_stdout, reason = "the parent process waits for this line")]
    {
        println!("http://{}/mcp", service.local_addr()?);
    }
    service.serve_until(async move { signals.next().await }).await;
    Ok(())
}

fn build(server: ServerBuilder<()>) -> Result<Server, duplexer_server::BuildError> {
    server
        .instructions("One of everything.")
        .request_state(RequestState::ephemeral())
        .subscriptions(MemoryBus::new())
        .logging()
        .state(Shared::default())
        .on(methods::ToolsList, tools::list)
        .on(methods::ToolsCall, tools::call)
        .on(methods::ResourcesList, list_resources)
        .on(methods::ResourcesTemplatesList, list_templates)
        .on(methods::ResourcesRead, read_resource)
        .on(methods::PromptsList, list_prompts)
        .on(methods::PromptsGet, get_prompt)
        .on(methods::CompletionComplete, complete)
        .build()
}

async fn list_resources(_: PaginatedParams) -> Result<ListResourcesResult, McpError> {
    let text = ResourceDefinition::new("demo://text", "text").mime_type("text/plain").title("A text");
    Ok(ListResourcesResult::new(vec![text]))
}

async fn list_templates(_: PaginatedParams) -> Result<ListResourceTemplatesResult, McpError> {
    Ok(ListResourceTemplatesResult::new(vec![ResourceTemplate::new("demo://item/{id}", "item")]))
}

async fn read_resource(params: ReadResourceParams) -> Result<ReadResourceResult, McpError> {
    let uri = params.uri.as_str();
    let contents = if uri == "demo://text" {
        ResourceContents::text(uri, "hello")
    } else if let Some(id) = uri.strip_prefix("demo://item/") {
        ResourceContents::blob(uri, id.replace(|c: char| !c.is_ascii_alphanumeric(), "A"))
    } else {
        let text = format!("Unknown resource: {uri}");
        return Err(ErrorObject::new(ErrorCode::INVALID_PARAMS, text).into());
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

async fn list_prompts(_: PaginatedParams) -> Result<ListPromptsResult, McpError> {
    let argument = PromptArgument::new("name").required(true);
    Ok(ListPromptsResult::new(vec![PromptDefinition::new("greeting").arguments(vec![argument])]))
}

async fn get_prompt(params: GetPromptParams) -> Result<GetPromptResult, McpError> {
    let arguments = params.arguments.unwrap_or_default();
    let Some(name) = arguments.get("name").filter(|_| params.name == "greeting") else {
        return Err(ErrorObject::new(ErrorCode::INVALID_PARAMS, "the prompt is greeting, with a name").into());
    };
    Ok(GetPromptResult::new(vec![PromptMessage::user(Content::text(format!("Greet {name}.")))]))
}

async fn complete(params: CompleteParams) -> Result<CompleteResult, McpError> {
    let all = ["Ada", "Alan", "Grace"].into_iter().filter(|name| name.starts_with(&params.argument.value));
    Ok(CompleteResult::new(Completion::truncated(all.map(Into::into).collect())))
}
