//! What requests carry, and how they end before they are answered.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytestring::ByteString;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::jsonrpc::Body;
use duplexer_types::logging::LoggingLevel;
use duplexer_types::methods::{Initialized, Method, RootsListChanged};
use duplexer_types::version::Era;
use serde_json::json;

use super::super::{Client, ClientBuilder, ClientError, Negotiation};
use super::{Seen, described, handshake, in_envelope, in_handshake, options, welcome};
use duplexer_core::dispatch::{
    Abandon, BoxFuture, CallContext, CallOptions, DirectDispatcher, Dispatch, DispatchOptions, Inbound,
    Invocation, Outbound, OutboundRequest, Progress, RunError, Sending, Unreadable,
};
use duplexer_core::error::{CallError, McpError};
use duplexer_core::transport::Frames;

/// CLT-04, P-META-1, P-META-2, P-META-3: every request carries the envelope; only the log level can be changed.
#[tokio::test(start_paused = true)]
async fn a_request_of_the_envelope_era_carries_its_envelope() {
    let (client, mut server) = in_envelope(options().log_level(LoggingLevel::Info)).await;
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
        let call = server.next("tools/call").await;
        let params = json!({"name": "t", "arguments": {"b": 1, "a": null}, "_meta": envelope});
        assert_eq!(call["params"], params);
        server.answer(&call, result.clone()).await;
    });
    called.unwrap();
    let call = client.call_tool("t", ()).meta(own);
    let (called, ()) = tokio::join!(call.into_future(), async {
        let call = server.next("tools/call").await;
        envelope["io.modelcontextprotocol/logLevel"] = "error".into();
        envelope["com.example/x"] = "y".into();
        assert_eq!(call["params"]["_meta"], envelope);
        server.answer(&call, result).await;
    });
    called.unwrap();
    let custom = OutboundRequest::new("acme/do").params(Json::parse(r#"{"x":1}"#).unwrap());
    let (answered, ()) = tokio::join!(client.request_custom(custom), async {
        let call = server.next("acme/do").await;
        assert_eq!(call["params"]["x"], 1);
        assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
        server.answer(&call, json!({"resultType": "acme", "y": [null]})).await;
    });
    assert_eq!(answered.unwrap().as_str(), r#"{"resultType":"acme","y":[null]}"#);
}

/// CLT-04: in the handshake era a request carries what its caller gives it.
#[tokio::test(start_paused = true)]
async fn a_request_of_the_handshake_era_carries_nothing_of_its_own() {
    let (client, mut server) = in_handshake(options().log_level(LoggingLevel::Info), "2025-11-25").await;
    let (listed, ()) = tokio::join!(client.list_prompts().cursor("").into_future(), async {
        let call = server.next("prompts/list").await;
        assert_eq!(call["params"], json!({"cursor": ""}));
        server.answer(&call, json!({"prompts": []})).await;
    });
    listed.unwrap();
}

/// P-ROOT-2: a method the revision does not have is a local error, and the server hears nothing; what it has is sent.
#[tokio::test(start_paused = true)]
async fn what_the_revision_does_not_have_is_not_sent() {
    let (client, mut server) = in_envelope(options()).await;
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
    assert_eq!(server.maybe_next().await, None);

    let (client, mut server) = in_handshake(options(), "2025-11-25").await;
    let refusal = client.discover().await.unwrap_err();
    assert_eq!(refusal.to_string(), "`server/discover` does not exist in protocol revision 2025-11-25");
    client.notify::<RootsListChanged>(duplexer_types::lifecycle::EmptyParams::new()).await.unwrap();
    server.next("notifications/roots/list_changed").await;
}

/// P-STDIO-4, P-CAN-5: a caller that goes away, and one that has waited long enough, tell the server to stop.
#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_called_off() {
    let (client, mut server) = in_handshake(options().timeout(Duration::from_secs(5)), "2025-11-25").await;
    let call = tokio::select! {
        _ = client.call_tool("slow", ()).into_future() => panic!("nobody has answered"),
        call = server.next("tools/call") => call,
    };
    assert_eq!(server.next("notifications/cancelled").await["params"]["requestId"], call["id"]);
    let (enveloped, mut other) = in_envelope(options()).await;
    let call = tokio::select! {
        _ = enveloped.call_tool("slow", ()).into_future() => panic!("nobody has answered"),
        call = other.next("tools/call") => call,
    };
    assert_eq!(other.next("notifications/cancelled").await["params"]["requestId"], call["id"]);

    for (call, waited) in [(client.ping(), 5), (client.ping().timeout(Duration::from_secs(2)), 2)] {
        let begun = tokio::time::Instant::now();
        let (error, ()) = tokio::join!(call.into_future(), async {
            let ping = server.next("ping").await;
            assert_eq!(server.next("notifications/cancelled").await["params"]["requestId"], ping["id"]);
        });
        assert!(matches!(error, Err(ClientError::Call(CallError::Timeout(_)))), "{error:?}");
        assert_eq!(begun.elapsed(), Duration::from_secs(waited));
    }
}

/// P-PROG-3: progress goes to the call that asked for it.
#[tokio::test(start_paused = true)]
async fn progress_goes_to_its_call() {
    let (client, mut server) = in_envelope(options()).await;
    let seen = Seen::<Progress>::new();
    let call = client.call_tool("t", ()).on_progress(seen.push());
    let (called, ()) = tokio::join!(call.into_future(), async {
        let call = server.next("tools/call").await;
        let token = &call["params"]["_meta"]["progressToken"];
        assert!(!token.is_null() && !call["params"]["_meta"]["io.modelcontextprotocol/clientInfo"].is_null());
        server.tell("notifications/progress", json!({"progressToken": token, "progress": 1})).await;
        server.answer(&call, json!({"resultType": "complete", "content": []})).await;
    });
    called.unwrap();
    assert_eq!(seen.take(), [Progress::new(1.0, None, None)]);
}

/// Whoever only listens gets to know that there is nobody left to listen to.
#[tokio::test(start_paused = true)]
async fn a_lost_connection_is_noticed_without_a_request() {
    let (client, server) = in_envelope(options()).await;
    let mut closed = std::pin::pin!(client.closed());
    assert!(poll_fn(|cx| std::task::Poll::Ready(closed.as_mut().poll(cx).is_pending())).await);
    drop(server);
    closed.await;
}

/// A request under way, and every later one, learns that the connection is gone.
#[tokio::test(start_paused = true)]
async fn requests_of_a_closed_session_fail() {
    let (client, mut server) = in_handshake(options(), "2025-11-25").await;
    let (called, ()) = tokio::join!(client.ping().into_future(), async {
        server.next("ping").await;
        client.close().await.unwrap();
    });
    for outcome in [called, client.ping().await] {
        assert!(matches!(outcome, Err(ClientError::Call(CallError::Closed))), "{outcome:?}");
    }
    client.close().await.unwrap();
}

/// A way to a server that notes how it is asked.
struct Noted(Mutex<Vec<(String, CallOptions)>>, serde_json::Value);

impl Outbound for Noted {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        self.0.lock().unwrap().push((request.method.to_string(), request.options));
        Box::pin(std::future::ready(Ok(self.1.to_string().into())))
    }

    fn notify(&self, _: &str, _: Option<&dyn Body>) -> Sending {
        Sending::done()
    }
}

struct Nobody;

impl Dispatch for Nobody {
    async fn run<I: Inbound>(self, _: Arc<I>) -> Result<(), RunError> {
        std::future::pending().await
    }
}

async fn noted(options: ClientBuilder, answer: serde_json::Value) -> (Client, Arc<Noted>) {
    let server = Arc::new(Noted(Mutex::default(), answer));
    (options.connect_dispatcher(Nobody, server.clone()).await.unwrap(), server)
}

fn headers(options: &CallOptions) -> Vec<(&str, &str)> {
    options.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// CLT-04, P-HDR-2, P-HDR-3: headers repeat version, method and name in the envelope era.
#[tokio::test(start_paused = true)]
async fn headers_repeat_what_the_envelope_says() {
    let mut answer = described(&["2026-07-28"]);
    answer["contents"] = json!([]);
    let (client, server) = noted(options(), answer).await;
    let version = ("MCP-Protocol-Version", "2026-07-28");
    let mut own = CallOptions::new();
    own.headers = vec![("X-Own".into(), "1".into()), ("mcp-method".into(), "other".into())];
    client.read_resource("file:///ä").options(own).await.unwrap();
    client.list_tools().await.unwrap_err();
    let asked = server.0.lock().unwrap();
    let [probe, read, list] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(headers(&probe.1), [version, ("Mcp-Method", "server/discover")]);
    assert_eq!((probe.1.timeout, probe.1.abandon), (Some(Duration::from_secs(10)), Abandon::Silent));
    let name = "=?base64?ZmlsZTovLy/DpA==?=";
    assert_eq!(
        headers(&read.1),
        [version, ("Mcp-Method", "resources/read"), ("Mcp-Name", name), ("X-Own", "1")]
    );
    assert_eq!(headers(&list.1), [version, ("Mcp-Method", "tools/list")]);
    assert_eq!(list.1.abandon, Abandon::Cancel);
}

/// CLT-04, P-LEG-19: the handshake era repeats the version alone, once there is one; P-CAN-3: the opening stands.
#[tokio::test(start_paused = true)]
async fn headers_of_the_handshake_era_hold_the_version() {
    for (version, repeated) in [("2025-11-25", true), ("2025-06-18", true), ("2025-03-26", false)] {
        let (client, server) = noted(handshake(), welcome(version)).await;
        client.ping().await.unwrap();
        let asked = server.0.lock().unwrap();
        let [opening, ping] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!((headers(&opening.1), opening.1.abandon), (vec![], Abandon::Silent));
        let expected = if repeated { vec![("MCP-Protocol-Version", version)] } else { vec![] };
        assert_eq!((headers(&ping.1), ping.1.abandon), (expected, Abandon::Cancel));
    }
}

/// A server in the same process.
struct InProcess(&'static [&'static str]);

impl Inbound for InProcess {
    type Reply = Json;

    async fn request(self: Arc<Self>, _: CallContext, call: Arc<Invocation>) -> Result<Json, McpError> {
        match Method::parse(call.method()) {
            Some(Method::ServerDiscover) => Ok(described(self.0).into()),
            Some(Method::Initialize) => Ok(welcome("2025-11-25").into()),
            Some(Method::ToolsList) => Ok(json!({"tools": []}).into()),
            _ => std::future::pending().await,
        }
    }

    async fn notification(self: Arc<Self>, _: CallContext, _: Arc<Invocation>) {}
}

/// CLT-13: in-process the negotiation is the same, and so is the end.
#[tokio::test(start_paused = true)]
async fn an_in_process_session_negotiates_alike() {
    for (offered, negotiation, era) in [
        (&["2026-07-28"][..], Negotiation::Auto, Era::Envelope),
        (&[], Negotiation::Auto, Era::Handshake),
        (&["2026-07-28"], Negotiation::Handshake, Era::Handshake),
    ] {
        let ((here, peer), (there, _back)) = DirectDispatcher::pair();
        let session = async {
            let client =
                options().negotiation(negotiation).connect_dispatcher(here, Arc::new(peer)).await.unwrap();
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

/// CSTD-02: what the server says and nobody can read is shown to whoever wants to see it, and the session goes on.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_shown_to_the_observer() {
    let seen = Seen::new();
    let push = seen.push();
    let observer = Arc::new(move |junk: &Unreadable<'_>| push(junk.text.map(str::to_owned)));
    let mut dispatch = DispatchOptions::default();
    dispatch.observer = Some(observer);
    let (client, mut server) = in_envelope(options().dispatch(dispatch)).await;
    let mut frames = Frames::default();
    frames.push(b"this is a log line", None);
    poll_fn(|cx| server.writer.poll_write(cx, &mut frames)).await.unwrap();
    // The junk is answered, as all junk is that might have been a request.
    assert_eq!(server.maybe_next().await.unwrap()["error"]["code"], -32700);
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = server.next("tools/list").await;
        server.answer(&request, json!({"resultType": "complete", "tools": []})).await;
    });
    listed.unwrap();
    assert_eq!(seen.take(), [Some("this is a log line".to_owned())]);
}
