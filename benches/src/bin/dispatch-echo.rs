//! An echo server at the level of the dispatcher, over the pipes on stdin and stdout.
//!
//! It implements only what the load needs: it answers any `tools/call` with `arguments.text`.

use std::borrow::Cow;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::sync::Arc;

use duplexer_core::dispatch::{CallContext, Dispatch, Inbound, JsonRpcDispatcher, Message};
use duplexer_core::error::McpError;
use duplexer_core::transport::{Transport, TransportContext, lines};
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::Body;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::net::unix::pipe;

#[cfg(feature = "count-alloc")]
#[global_allocator]
static GLOBAL: duplexer_bench::allocations::Total = duplexer_bench::allocations::Total;

struct Echo;

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextResult {
    result_type: &'static str,
    content: Vec<Text>,
    is_error: bool,
}

#[derive(Serialize)]
struct Text {
    r#type: &'static str,
    text: String,
}

impl Body for TextResult {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(out, self)
    }
}

fn invalid(error: serde_json::Error) -> McpError {
    McpError::InvalidParams(error.into())
}

fn text(call: &Message) -> Result<String, McpError> {
    let params: Params<'_> = serde_json::from_str(call.params().unwrap_or("{}")).map_err(invalid)?;
    #[cfg(feature = "count-alloc")]
    if params.name == "alloc_stats" {
        return Ok(duplexer_bench::allocations::total());
    }
    if params.name != "echo" {
        return Err(ErrorObject::method_not_found(&params.name).into());
    }
    let arguments = params.arguments.map_or("{}", RawValue::get);
    serde_json::from_str(arguments).map(|Arguments { text }| text).map_err(invalid)
}

impl Inbound for Echo {
    type Reply = TextResult;

    async fn request(self: &Arc<Self>, _: CallContext, call: Arc<Message>) -> Result<TextResult, McpError> {
        if call.method() != "tools/call" {
            return Err(ErrorObject::method_not_found(call.method()).into());
        }
        let text = text(&call)?;
        Ok(TextResult {
            result_type: "complete",
            content: vec![Text { r#type: "text", text }],
            is_error: false,
        })
    }

    async fn notification(self: &Arc<Self>, _: CallContext, _: Arc<Message>) {}
}

/// The pipes of this process, which no other code reads or writes.
fn pipes() -> std::io::Result<impl Transport> {
    let own = |fd: std::os::fd::BorrowedFd<'_>| -> std::io::Result<OwnedFd> { fd.try_clone_to_owned() };
    let reader = pipe::Receiver::from_owned_fd(own(std::io::stdin().as_fd())?)?;
    let writer = pipe::Sender::from_owned_fd(own(std::io::stdout().as_fd())?)?;
    Ok(lines::over(reader, writer, TransportContext::stream("stdio"), lines::DEFAULT_LIMIT))
}

fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("no runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    let served = runtime.block_on(async {
        let transport = pipes().map_err(|error| format!("stdin and stdout are to be pipes: {error}"))?;
        let (dispatcher, _peer) = JsonRpcDispatcher::new(transport);
        dispatcher.run(Arc::new(Echo)).await.map_err(|error| error.to_string())
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
