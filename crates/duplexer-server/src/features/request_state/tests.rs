//! Request states through whole servers, with a manual clock.

mod refused;
mod sealed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use duplexer_types::json::Json;
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::prompt::{GetPromptParams, GetPromptResult};
use duplexer_types::resource::{ReadResourceParams, ReadResourceResult};
use duplexer_types::tool::{CallToolParams, CallToolResult, ListToolsResult};
use duplexer_types::version::ProtocolVersion;

use super::*;
use crate::builder::ServerBuilder;
use crate::kernel::connection::{Caller, ClientProfile, Connection};
use crate::kernel::handler::Reply;
use crate::kernel::principal::Principal;
use crate::kernel::testing::{anonymous, call};
use crate::registry::{RunningServer, Server};

const SECRET: [u8; 32] = [7; 32];
const START: u64 = 1_800_000_000;
const PLAIN: &str = "what the handler wants back: \"é\"";

/// A codec without encryption, so that tests can read and forge claims.
pub(super) struct Open;

impl RequestStateCodec for Open {
    fn seal(&self, plain: &[u8]) -> Result<String, BoxError> {
        Ok(String::from_utf8(plain.to_vec())?)
    }

    fn open(&self, sealed: &str) -> Result<Vec<u8>, BoxError> {
        Ok(sealed.as_bytes().to_vec())
    }
}

/// A clock that does not advance until it is set.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicU64>);

impl Hands {
    fn set(&self, seconds: u64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    fn on(&self, state: RequestState) -> RequestState {
        let hands = self.clone();
        self.set(START);
        state.clock(move || UNIX_EPOCH + Duration::from_secs(hands.0.load(Ordering::Relaxed)))
    }
}

/// Handlers that return the state [`PLAIN`], and then report the state they received. `"more"` requests one more round.
fn handlers(name: &str) -> ServerBuilder<()> {
    fn ask<R>(state: Option<String>, done: impl FnOnce(String) -> R) -> Reply<R> {
        match state {
            None => Reply::InputRequired(InputRequiredResult::resuming(PLAIN)),
            Some(state) if state == "more" => Reply::InputRequired(InputRequiredResult::resuming("last")),
            Some(state) => Reply::Complete(done(state)),
        }
    }
    Server::builder(name, "0")
        .on(methods::ToolsCall, |params: CallToolParams| async move {
            Ok::<_, McpError>(ask(params.request_state, CallToolResult::text))
        })
        .on(methods::PromptsGet, |params: GetPromptParams| async move {
            Ok::<_, McpError>(ask(params.request_state, |state| {
                GetPromptResult::new(Vec::new()).description(state)
            }))
        })
        .on(methods::ResourcesRead, |params: ReadResourceParams| async move {
            Ok::<_, McpError>(ask(params.request_state, |_| ReadResourceResult::new(Vec::new())))
        })
        .on(methods::ToolsList, |_: PaginatedParams| async {
            Ok::<_, McpError>(ListToolsResult::new(Vec::new()))
        })
}

async fn start(state: RequestState) -> RunningServer {
    handlers("test").request_state(state).build().unwrap().start().await.unwrap()
}

fn authenticated(principal: Principal) -> Arc<Connection> {
    let caller = Caller { principal: Some(Arc::new(principal)), ..Caller::default() };
    let connection = Connection::ready(ProtocolVersion::V2026_07_28, ClientProfile::UNKNOWN);
    Arc::new(connection.with_caller(caller))
}

/// The params of a request to a tool, with a state.
fn with_state(state: &str) -> String {
    format!(r#"{{"name":"t","arguments":{{"a":1}},"requestState":{}}}"#, Json::from(state))
}

const FIRST: &str = r#"{"name":"t","arguments":{"a":1}}"#;

/// The state that the first round of a request is answered with.
async fn asked(
    running: &RunningServer,
    connection: &Arc<Connection>,
    method: Method,
    params: &str,
) -> String {
    state_of(&call(running, connection, method, params).await.unwrap())
}

fn state_of(outcome: &Outcome) -> String {
    outcome.downcast_ref::<InputRequiredResult>().unwrap().request_state.clone().unwrap()
}

/// Returns the state that the handler of a tool reports.
fn received_state(outcome: &Outcome) -> String {
    let result = outcome.downcast_ref::<CallToolResult>().unwrap();
    serde_json::to_value(&result.content).unwrap()[0]["text"].as_str().unwrap().to_owned()
}

/// RST-02: one shape for every refusal.
fn assert_refused(outcome: Result<Outcome, McpError>, why: &str) {
    let error = outcome.expect_err(why).to_wire("");
    let text = serde_json::to_string(&error).unwrap();
    assert_eq!(
        text,
        r#"{"code":-32602,"message":"Invalid or expired requestState","data":{"reason":"invalid_request_state"}}"#,
        "{why}"
    );
}

/// RST-12: what cannot be sealed is not sent.
fn assert_unsealed(outcome: Result<Outcome, McpError>, why: &str) {
    let text = serde_json::to_string(&outcome.expect_err(why).to_wire("")).unwrap();
    assert_eq!(text, r#"{"code":-32603,"message":"Internal error"}"#, "{why}");
}
