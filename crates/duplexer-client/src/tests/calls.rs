//! Metadata of requests, and requests that end without a response.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::completion::PromptReference;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::methods::{Initialized, Method, RootsListChanged};
use duplexer_types::version::Era;
use serde_json::{Value, json};

use super::super::{Client, ClientBuilder, ClientError, Negotiation};
use super::{
    Recorder, builder, discover_result, envelope_session, handshake_builder, handshake_session,
    initialize_result,
};
use duplexer_core::dispatch::{
    BoxFuture, CallContext, CallOptions, DirectDispatcher, Dispatch, DispatchOptions, Inbound, Message,
    NotifyFuture, OnDrop, Outbound, OutboundRequest, Progress, RunError, Unreadable,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::Frames;

/// CLT-04, P-META-1, P-META-2, P-META-3: every request carries the envelope; only the log level can be changed.
#[tokio::test(start_paused = true)]
async fn a_request_of_the_envelope_era_carries_its_envelope() {
    let (client, mut server) = envelope_session(builder().log_level(LoggingLevel::Info)).await;
    let own: JsonObject = [
        ("com.example/x", Json::from("y")),
        ("io.modelcontextprotocol/protocolVersion", Json::from("1999-01-01")),
        ("io.modelcontextprotocol/logLevel", Json::from("error")),
    ]
    .into_iter()
    .collect();
    let mut envelope = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/logLevel": "info"});
    let result = json!({"resultType": "complete", "content": []});
    let arguments = Json::parse(r#"{"b":1,"a":null}"#).unwrap();
    let call = client.call_tool("t", arguments);
    let (called, ()) = tokio::join!(call.into_future(), async {
        let call = server.expect("tools/call").await;
        let params = json!({"name": "t", "arguments": {"b": 1, "a": null}, "_meta": envelope});
        assert_eq!(call["params"], params);
        server.respond(&call, result.clone()).await;
    });
    called.unwrap();
    let call = client.call_tool("t", ()).meta(own);
    let (called, ()) = tokio::join!(call.into_future(), async {
        let call = server.expect("tools/call").await;
        envelope["io.modelcontextprotocol/logLevel"] = "error".into();
        envelope["com.example/x"] = "y".into();
        assert_eq!(call["params"]["_meta"], envelope);
        server.respond(&call, result).await;
    });
    called.unwrap();
    let custom = OutboundRequest::new("acme/do").params(Json::parse(r#"{"x":1}"#).unwrap());
    let (answered, ()) = tokio::join!(client.request_custom(custom), async {
        let call = server.expect("acme/do").await;
        assert_eq!(call["params"]["x"], 1);
        assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
        server.respond(&call, json!({"resultType": "acme", "y": [null]})).await;
    });
    assert_eq!(answered.unwrap().as_str(), r#"{"resultType":"acme","y":[null]}"#);
}

/// Plain arguments become the members of the specification; `()` leaves the member out.
#[tokio::test(start_paused = true)]
async fn plain_arguments_become_params() {
    let (client, peer) = recorded(handshake_builder(), initialize_result("2025-11-25")).await;
    let object = JsonObject::<Json>::new().with("a", "b");
    let _ = client.call_tool("t", ()).await;
    let _ = client.call_tool("t", json!({"a": 1})).await;
    let _ = client.call_tool("t", object).await;
    let _ = client.get_prompt("p", ()).await;
    let _ = client.get_prompt("p", [("x", "y")]).await;
    let _ = client.get_prompt("p", vec![("x".to_owned(), "y")]).await;
    let _ = client.complete(PromptReference::new("p"), "x", "y").await;
    let sent = peer.sent.lock().unwrap();
    let params: Vec<Value> = sent[1..].iter().map(|(params, _)| params.clone()).collect();
    let reference = json!({"type": "ref/prompt", "name": "p"});
    assert_eq!(
        params,
        [
            json!({"name": "t"}),
            json!({"name": "t", "arguments": {"a": 1}}),
            json!({"name": "t", "arguments": {"a": "b"}}),
            json!({"name": "p"}),
            json!({"name": "p", "arguments": {"x": "y"}}),
            json!({"name": "p", "arguments": {"x": "y"}}),
            json!({"ref": reference, "argument": {"name": "x", "value": "y"}}),
        ]
    );
}

/// CLT-04: in the handshake era a request carries what its caller gives it.
#[tokio::test(start_paused = true)]
async fn a_request_of_the_handshake_era_carries_nothing_of_its_own() {
    let (client, mut server) = handshake_session(builder().log_level(LoggingLevel::Info), "2025-11-25").await;
    let (listed, ()) = tokio::join!(client.list_prompts().cursor("").into_future(), async {
        let call = server.expect("prompts/list").await;
        assert_eq!(call["params"], json!({"cursor": ""}));
        server.respond(&call, json!({"prompts": []})).await;
    });
    listed.unwrap();
}

/// P-ROOT-2: a method that the revision does not have is a local error and is not sent; others are sent.
#[tokio::test(start_paused = true)]
async fn methods_that_the_revision_does_not_have_are_not_sent() {
    let (client, mut server) = envelope_session(builder()).await;
    let refusals = [
        client.ping().await.unwrap_err(),
        client.set_log_level(LoggingLevel::Info).await.unwrap_err(),
        client.subscribe("a:b").await.unwrap_err(),
        client.unsubscribe("a:b").await.unwrap_err(),
        client.notify::<Initialized>(duplexer_types::lifecycle::EmptyParams::new()).await.unwrap_err(),
        client.request_custom(OutboundRequest::new("ping")).await.unwrap_err(),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, ClientError::Unavailable { .. }), "{refusal:?}");
    }
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);

    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let refusal = client.discover().await.unwrap_err();
    assert_eq!(refusal.to_string(), "`server/discover` does not exist in protocol revision 2025-11-25");
    client.notify::<RootsListChanged>(duplexer_types::lifecycle::EmptyParams::new()).await.unwrap();
    server.expect("notifications/roots/list_changed").await;
}

/// P-STDIO-4, P-CAN-5, F-15: dropping the call cancels the request at the server, and so does the timeout.
#[tokio::test(start_paused = true)]
async fn a_dropped_or_timed_out_call_is_cancelled() {
    let (client, mut server) =
        handshake_session(builder().timeout(Duration::from_secs(5)), "2025-11-25").await;
    let call = tokio::select! {
        _ = client.call_tool("slow", ()).into_future() => panic!("the server has not responded"),
        call = server.expect("tools/call") => call,
    };
    assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], call["id"]);
    let (enveloped, mut other) = envelope_session(builder()).await;
    let call = tokio::select! {
        _ = enveloped.call_tool("slow", ()).into_future() => panic!("the server has not responded"),
        call = other.expect("tools/call") => call,
    };
    assert_eq!(other.expect("notifications/cancelled").await["params"]["requestId"], call["id"]);

    for (call, waited) in [(client.ping(), 5), (client.ping().timeout(Duration::from_secs(2)), 2)] {
        let begun = tokio::time::Instant::now();
        let (error, ()) = tokio::join!(call.into_future(), async {
            let ping = server.expect("ping").await;
            assert_eq!(server.expect("notifications/cancelled").await["params"]["requestId"], ping["id"]);
        });
        assert!(matches!(error, Err(ClientError::Call(CallError::Timeout(_)))), "{error:?}");
        assert_eq!(begun.elapsed(), Duration::from_secs(waited));
    }
}

/// Hardening, C-no-timeout: a server that never responds does not hold a call for ever, unless the builder allows it.
#[tokio::test(start_paused = true)]
async fn a_call_has_a_timeout_by_default() {
    const FIVE_MINUTES: Duration = Duration::from_secs(300);
    let (client, _server) = handshake_session(builder(), "2025-11-25").await;
    let begun = tokio::time::Instant::now();
    let error = client.call_tool("slow", ()).await.unwrap_err();
    assert!(matches!(error, ClientError::Call(CallError::Timeout(_))), "{error:?}");
    assert_eq!(begun.elapsed(), FIVE_MINUTES);
    let (patient, _server) = handshake_session(builder().no_timeout(), "2025-11-25").await;
    let waiting = tokio::time::timeout(100 * FIVE_MINUTES, patient.call_tool("slow", ()).into_future());
    assert!(waiting.await.is_err(), "it still waits");
}

/// P-PROG-3: progress goes to the call that requested it.
#[tokio::test(start_paused = true)]
async fn progress_goes_to_its_call() {
    let (client, mut server) = envelope_session(builder()).await;
    let seen = Recorder::<Progress>::new();
    let call = client.call_tool("t", ()).on_progress(seen.push());
    let (called, ()) = tokio::join!(call.into_future(), async {
        let call = server.expect("tools/call").await;
        let token = &call["params"]["_meta"]["progressToken"];
        assert!(!token.is_null() && !call["params"]["_meta"]["io.modelcontextprotocol/clientInfo"].is_null());
        server.notify("notifications/progress", json!({"progressToken": token, "progress": 1})).await;
        server.respond(&call, json!({"resultType": "complete", "content": []})).await;
    });
    called.unwrap();
    assert_eq!(seen.take(), [Progress::new(1.0, None, None)]);
}

/// A client that sends no requests learns that the connection has ended.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_noticed_without_a_request() {
    let (client, server) = envelope_session(builder()).await;
    let mut closed = std::pin::pin!(client.closed());
    assert!(poll_fn(|cx| std::task::Poll::Ready(closed.as_mut().poll(cx).is_pending())).await);
    drop(server);
    closed.await;
}

/// A request in flight, and every later one, fails once the connection is closed.
#[tokio::test(start_paused = true)]
async fn requests_of_a_closed_session_fail() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let (called, ()) = tokio::join!(client.ping().into_future(), async {
        server.expect("ping").await;
        client.close().await.unwrap();
    });
    for outcome in [called, client.ping().await] {
        assert!(matches!(outcome, Err(ClientError::Call(CallError::Closed))), "{outcome:?}");
    }
    client.close().await.unwrap();
}

/// Peer that records params and options of requests and returns a fixed result.
struct RecordingPeer {
    sent: Mutex<Vec<(Value, CallOptions)>>,
    result: Value,
}

impl Outbound for RecordingPeer {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        let params = request.params.map_or(Value::Null, |params| params.decode().unwrap());
        self.sent.lock().unwrap().push((params, request.options));
        Box::pin(std::future::ready(Ok(self.result.to_string().into())))
    }

    fn notify(&self, _: &str, _: Option<&dyn Body>) -> NotifyFuture {
        NotifyFuture::done()
    }
}

struct IdleDispatcher;

impl Dispatch for IdleDispatcher {
    async fn run<I: Inbound>(self, _: Arc<I>) -> Result<(), RunError> {
        std::future::pending().await
    }
}

async fn recorded(builder: ClientBuilder, result: Value) -> (Client, Arc<RecordingPeer>) {
    let server = Arc::new(RecordingPeer { sent: Mutex::default(), result });
    (builder.connect_dispatcher(IdleDispatcher, server.clone()).await.unwrap(), server)
}

fn headers(options: &CallOptions) -> Vec<(&str, &str)> {
    options.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// CLT-04, P-HDR-2, P-HDR-3: headers mirror version, method and name in the envelope era.
#[tokio::test(start_paused = true)]
async fn headers_mirror_the_envelope() {
    let mut answer = discover_result(&["2026-07-28"]);
    answer["contents"] = json!([]);
    let (client, server) = recorded(builder(), answer).await;
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let mut own = CallOptions::new();
    own.headers = vec![("X-Own".into(), "1".into()), ("mcp-method".into(), "other".into())];
    client.read_resource("file:///ä").options(own).await.unwrap();
    client.list_tools().await.unwrap_err();
    let sent = server.sent.lock().unwrap();
    let [probe, read, list] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!(headers(&probe.1), [version, ("Mcp-Method", "server/discover")]);
    assert_eq!((probe.1.timeout, probe.1.on_drop), (None, OnDrop::CancelRemote));
    let name = "=?base64?ZmlsZTovLy/DpA==?=";
    assert_eq!(
        headers(&read.1),
        [version, ("Mcp-Method", "resources/read"), ("Mcp-Name", name), ("X-Own", "1")]
    );
    assert_eq!(headers(&list.1), [version, ("Mcp-Method", "tools/list")]);
    assert_eq!(list.1.on_drop, OnDrop::CancelRemote);
}

/// F-6: a header of one call is added to its other options, and replaces none of them.
#[tokio::test(start_paused = true)]
async fn a_header_of_a_call_keeps_its_other_options() {
    let mut answer = discover_result(&["2026-07-28"]);
    answer["content"] = json!([]);
    let (client, server) = recorded(builder(), answer).await;
    let call = client.call_tool("x", ()).timeout(Duration::from_secs(3)).on_progress(|_| {});
    call.header("X-Tenant", "7").header("X-Trace", "8").total_timeout(Duration::from_secs(9)).await.unwrap();
    let sent = server.sent.lock().unwrap();
    let (_, options) = &sent[1];
    let own: Vec<_> = headers(options).into_iter().filter(|(name, _)| name.starts_with("X-")).collect();
    assert_eq!(own, [("X-Tenant", "7"), ("X-Trace", "8")]);
    let second = Duration::from_secs(1);
    assert_eq!((options.idle_timeout, options.timeout), (Some(3 * second), Some(9 * second)));
    assert!(options.on_progress.is_some());
}

/// CLT-04, P-LEG-19: in the handshake era headers mirror only the version, once it is negotiated. P-CAN-3: `initialize`
/// is not cancelled.
#[tokio::test(start_paused = true)]
async fn headers_of_the_handshake_era_hold_the_version() {
    for (version, repeated) in [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false)] {
        let (client, server) = recorded(handshake_builder(), initialize_result(version)).await;
        client.ping().await.unwrap();
        let sent = server.sent.lock().unwrap();
        let [opening, ping] = &sent[..] else { panic!("{sent:?}") };
        assert_eq!((headers(&opening.1), opening.1.on_drop), (vec![], OnDrop::Detach));
        let expected = if repeated { vec![("MCP-Protocol-Version", version)] } else { vec![] };
        assert_eq!((headers(&ping.1), ping.1.on_drop), (expected, OnDrop::CancelRemote));
    }
}

/// In-process server that supports the given envelope revisions.
struct InProcess(&'static [&'static str]);

impl Inbound for InProcess {
    type Reply = Json;

    async fn request(self: &Arc<Self>, _: CallContext, call: Arc<Message>) -> Result<Json, McpError> {
        match Method::parse(call.method()) {
            Some(Method::ServerDiscover) => Ok(discover_result(self.0).into()),
            Some(Method::Initialize) => Ok(initialize_result("2025-11-25").into()),
            Some(Method::ToolsList) => Ok(json!({"tools": []}).into()),
            _ => std::future::pending().await,
        }
    }

    async fn notification(self: &Arc<Self>, _: CallContext, _: Arc<Message>) {}
}

/// CLT-13: in-process sessions are negotiated and closed like others.
#[tokio::test(start_paused = true)]
async fn an_in_process_session_is_negotiated_like_others() {
    for (offered, negotiation, era) in [
        (&["2026-07-28"][..], Negotiation::Auto, Era::Envelope),
        (&[], Negotiation::Auto, Era::Handshake),
        (&["2026-07-28"], Negotiation::Handshake, Era::Handshake),
    ] {
        let ((here, peer), (there, _back)) = DirectDispatcher::pair();
        let session = async {
            let client =
                builder().negotiation(negotiation).connect_dispatcher(here, Arc::new(peer)).await.unwrap();
            assert_eq!(client.era(), era);
            assert_eq!(client.all_tools().await.unwrap(), []);
            let call = client.call_tool("never", ()).timeout(Duration::from_secs(1));
            assert!(matches!(call.await, Err(ClientError::Call(CallError::Timeout(_)))));
            client.close().await.unwrap();
        };
        let (served, ()) = tokio::join!(there.run(Arc::new(InProcess(offered))), session);
        served.unwrap();
    }
}

/// CSTD-02: the observer gets frames that cannot be parsed, and the session continues.
#[tokio::test(start_paused = true)]
async fn unreadable_frames_are_passed_to_the_observer() {
    let seen = Recorder::new();
    let push = seen.push();
    let observer = move |unreadable: &Unreadable<'_>| push(unreadable.text.map(str::to_owned));
    let dispatch = DispatchOptions::default().observer(observer);
    let (client, mut server) = envelope_session(builder().dispatch(dispatch)).await;
    let mut frames = Frames::default();
    frames.push(b"this is a log line", None);
    poll_fn(|cx| server.writer.poll_write(cx, &mut frames)).await.unwrap();
    // An unreadable frame gets an error response, because it may have been a request.
    assert_eq!(server.next_message().await.unwrap()["error"]["code"], -32700);
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = server.expect("tools/list").await;
        server.respond(&request, json!({"resultType": "complete", "tools": []})).await;
    });
    listed.unwrap();
    assert_eq!(seen.take(), [Some("this is a log line".to_owned())]);
}
