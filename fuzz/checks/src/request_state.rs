//! Request states: only sealed states open, claims hold or are refused, and a sealed state round-trips.

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use duplexer_core::dispatch::{
    BoxFuture, CallContext, Cancellation, Channel, NoChannel, NotifyFuture, Outbound, OutboundRequest,
};
use duplexer_core::error::{BoxError, CallError, McpError};
use duplexer_core::transport::TransportContext;
use duplexer_server::request_state::{KeyRing, RequestState, RequestStateCodec};
use duplexer_server::{ClientProfile, Connection, Outcome, Reply, RunningServer, Server};
use duplexer_types::content::Content;
use duplexer_types::input::InputRequiredResult;
use duplexer_types::json::Json;
use duplexer_types::jsonrpc::Body;
use duplexer_types::methods::{Method, ToolsCall};
use duplexer_types::tool::{CallToolParams, CallToolResult};
use duplexer_types::version::ProtocolVersion;
use serde_json::Value;

use crate::tree::{Found, Reading, Tree};

const NOW: u64 = 1_800_000_000;
const SKEW: f64 = 60.0;
const SECRET: [u8; 32] = [7; 32];
const PLAIN: &str = "plain";
/// The only recorded text that was sealed with [`SECRET`].
const SEALED: &str = include_str!("../../corpus/request_state/sealed");

/// Reads `data` as a sealed state, and as the params of a request that can carry one.
pub fn request_state(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(ring) = KeyRing::new([SECRET]) {
        assert_eq!(ring.open(text).is_ok(), text == SEALED, "{text:?}");
    }
    let Reading::Tree(tree) = Tree::read(text) else { return };
    if !tree.is_object() {
        return;
    }
    let state = tree.get("requestState");
    match (state, call(opened(), text)) {
        (Found::Absent, outcome) => comes_back(text, outcome),
        (Found::Once(value), outcome) if value.is_null() => drop(outcome),
        (Found::Once(value), Ok(outcome)) => {
            let received = received(&outcome);
            assert!(received.is_some(), "a state that was opened reaches the handler: {text:?}");
            assert_holds(value, &tree, received.as_deref());
        }
        // A valid state can be in invalid params; an invalid state gets the one refusal.
        (Found::Once(value), Err(McpError::InvalidParams(_))) => assert_holds(value, &tree, None),
        (_, refused) => assert_refused(refused, text),
    }
    if !matches!(state, Found::Absent) && !matches!(state, Found::Once(value) if value.is_null()) {
        assert_refused(call(sealed(), text), text);
    }
}

/// The state from the result of a request without one is accepted in the retry, and never visible in plain text.
fn comes_back(params: &str, outcome: Result<Outcome, McpError>) {
    let Ok(outcome) = outcome else { return };
    assert!(outcome.downcast_ref::<InputRequiredResult>().is_some(), "{params:?}");
    for server in [opened(), sealed()] {
        let Ok(first) = call(server, params) else { unreachable!("it was accepted before") };
        let asked = first.downcast_ref::<InputRequiredResult>();
        let Some(state) = asked.and_then(|asked| asked.request_state.as_deref()) else {
            unreachable!("the handler gave a state")
        };
        let rest = params.trim_start().trim_start_matches('{');
        let retry = format!(r#"{{"requestState":{},{rest}"#, Json::from(state));
        let again = call(server, &retry).ok().and_then(|outcome| received(&outcome));
        assert_eq!(again.as_deref(), Some(PLAIN), "{retry:?}");
    }
}

/// Checks the claims again, over plain values. The round trip covers the digest of the arguments.
fn assert_holds(state: &Tree, params: &Tree, received: Option<&str>) {
    let claims: Value = state.as_str().and_then(|state| serde_json::from_str(state).ok()).unwrap_or_default();
    let now = Duration::from_secs(NOW).as_secs_f64();
    let number = |name: &str| claims[name].as_f64();
    let holds = claims["v"] == 1
        && claims["s"].as_str().is_some_and(|state| received.is_none_or(|received| received == state))
        && claims["m"] == Method::ToolsCall.name()
        && claims["t"].as_str() == params.get("name").once().and_then(Tree::as_str)
        && claims["a"].is_string()
        && claims["aud"] == "fuzz"
        && claims["p"].is_null()
        && number("iat").is_some_and(|iat| iat <= now + SKEW)
        && number("exp").is_some_and(|exp| now < exp);
    assert!(holds, "{params:?}");
}

fn assert_refused(outcome: Result<Outcome, McpError>, text: &str) {
    match outcome {
        Err(McpError::Rpc(error)) => {
            assert_eq!((error.code.0, &*error.message), (-32602, "Invalid or expired requestState"));
        }
        other => unreachable!("{text:?} became {other:?}"),
    }
}

/// Returns the state that the handler received, from its result.
fn received(outcome: &Outcome) -> Option<String> {
    match outcome.downcast_ref::<CallToolResult>()?.content.first()? {
        Content::Text(text) => Some(text.text.clone()),
        _ => None,
    }
}

/// Codec without encryption, so that mutations reach the claims.
struct Open;

impl RequestStateCodec for Open {
    fn seal(&self, plain: &[u8]) -> Result<String, BoxError> {
        Ok(String::from_utf8(plain.to_vec())?)
    }

    fn open(&self, sealed: &str) -> Result<Vec<u8>, BoxError> {
        Ok(sealed.as_bytes().to_vec())
    }
}

fn opened() -> &'static RunningServer {
    static RUNNING: OnceLock<RunningServer> = OnceLock::new();
    RUNNING.get_or_init(|| start(RequestState::codec(Open)))
}

fn sealed() -> &'static RunningServer {
    static RUNNING: OnceLock<RunningServer> = OnceLock::new();
    RUNNING.get_or_init(|| start(RequestState::ephemeral()))
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW)
}

fn start(state: RequestState) -> RunningServer {
    let server = Server::builder("fuzz", "0").request_state(state.clock(now)).on(
        ToolsCall,
        |params: CallToolParams| async {
            Ok::<_, McpError>(match params.request_state {
                Some(state) => Reply::Complete(CallToolResult::text(state)),
                None => Reply::InputRequired(InputRequiredResult::resuming(PLAIN)),
            })
        },
    );
    match server.build().map(|server| ready(server.start())) {
        Ok(Ok(running)) => running,
        other => unreachable!("{other:?}"),
    }
}

fn call(running: &RunningServer, params: &str) -> Result<Outcome, McpError> {
    let connection = Arc::new(Connection::ready(ProtocolVersion::V2026_07_28, ClientProfile::UNKNOWN));
    let channel = Arc::new(NoPeer(Cancellation::new()));
    let cx = CallContext::new(Some(1_i64.into()), Arc::new(TransportContext::stream("fuzz")), channel);
    ready(running.call(&connection, cx, Method::ToolsCall.name(), Some(params)))
}

/// Polls once: no future here is ever pending.
fn ready<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing here waits"),
    }
}

struct NoPeer(Cancellation);

impl Outbound for NoPeer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<bytestring::ByteString, CallError>> {
        Box::pin(async move { NoChannel.request(request).await })
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        NoChannel.notify(method, params)
    }
}

impl Channel for NoPeer {
    fn cancellation(&self) -> &Cancellation {
        &self.0
    }

    fn closing(&self) -> &Cancellation {
        &self.0
    }
}
