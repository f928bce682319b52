//! HTTP+SSE (2024-11-05): one stream for all messages of the server, and POSTs to the address that it names.

use duplexer_client::{Client, ConnectError, ErrorKind};
use duplexer_core::transport::Transport;
use duplexer_http_client::{HttpSseTransport, HttpTransport};
use http::Method;
use serde_json::{Value, json};

use crate::script::{Asked, Events, Piped, Script, options};

/// Status, headers and body of a response, and the kind and text of the failure.
type Case<'a> = (u16, &'a [(&'a str, &'a str)], &'a str, ErrorKind, &'a str);

const OLDEST: &str = "2024-11-05";

/// Accepts a message; its response goes to the stream.
async fn accept(script: &mut Script, method: &str) -> Asked {
    let asked = script.posted(method).await;
    assert_eq!(asked.path, "/messages");
    asked
}

/// Connects to a scripted server. Returns the stream too.
async fn session(script: &mut Script) -> (Client, Events) {
    let transport =
        HttpTransport::builder(&script.url).header("x-own", "1").limit(10_000).build_http_sse().unwrap();
    let (client, events) = tokio::join!(options().connect(transport), async {
        let stream = script.plain(Method::GET).await;
        assert_eq!((stream.header("accept"), stream.header("x-own")), (Some("text/event-stream"), Some("1")));
        let events = stream.events();
        events.raw("event: endpoint\ndata: /messages?session_id=7\n\n").await;
        let probe = accept(script, "server/discover").await;
        let unknown =
            json!({"jsonrpc": "2.0", "id": probe.body["id"], "error": {"code": -32601, "message": "?"}});
        probe.status(202);
        events.message(&unknown).await;
        let opening = accept(script, "initialize").await;
        let welcome = opening.welcome(OLDEST);
        opening.status(202);
        events.message(&welcome).await;
        let opened = accept(script, "notifications/initialized").await;
        assert_eq!(opened.header("x-own"), Some("1"));
        opened.status(202);
        events
    });
    (client.unwrap(), events)
}

/// P-LEG-23: requests and responses in both directions; a call that is refused fails alone.
#[tokio::test]
async fn a_session_over_http_sse_makes_calls() {
    let mut script = Script::start().await;
    let (client, events) = session(&mut script).await;
    assert_eq!(client.protocol_version().as_str(), OLDEST);
    let call = client.call_tool("x", ()).into_future();
    let (result, ()) = tokio::join!(call, async {
        let asked = accept(&mut script, "tools/call").await;
        let answer = asked.text_result("hello");
        asked.status(202);
        events.message(&json!({"jsonrpc": "2.0", "id": "q", "method": "ping"})).await;
        let pong = script.next().await;
        assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": "q", "result": {}}));
        pong.status(202);
        events.message(&answer).await;
    });
    assert_eq!(serde_json::to_value(result.unwrap()).unwrap()["content"][0]["text"], "hello");
    let call = client.call_tool("x", ()).into_future();
    let (result, ()) = tokio::join!(call, async {
        let asked = accept(&mut script, "tools/call").await;
        asked.reply(403, &[], Piped::whole("not this one"));
    });
    let error = result.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string()),
        (ErrorKind::Forbidden, "403 Forbidden: not this one".to_owned())
    );
    client.close().await.unwrap();
    events.left().await;
}

/// The end of the stream is the end of the connection, for calls in flight and later ones.
#[tokio::test]
async fn the_connection_ends_with_its_stream() {
    let mut script = Script::start().await;
    let (client, events) = session(&mut script).await;
    let call = client.call_tool("x", ()).into_future();
    let (result, ()) = tokio::join!(call, async {
        accept(&mut script, "tools/call").await.status(202);
        drop(events);
    });
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
    client.closed().await;
    assert_eq!(client.call_tool("x", ()).await.unwrap_err().kind(), ErrorKind::Closed);
}

/// A stream that is refused, is no stream, or names an address elsewhere fails the opening with a type, after one attempt.
#[tokio::test]
async fn a_stream_that_is_none_fails_the_opening() {
    let stream = [("content-type", "text/event-stream")];
    let cases: [Case<'_>; 5] = [
        (401, &[], "", ErrorKind::Unauthorized, "401 Unauthorized"),
        (404, &[], "", ErrorKind::Http, "404 Not Found"),
        (
            200,
            &[("content-type", "text/html")],
            "",
            ErrorKind::Protocol,
            "the server's response is not valid: it is not a stream of events",
        ),
        (
            200,
            &stream,
            "event: endpoint\ndata: http://127.0.0.2/m\n\n",
            ErrorKind::Protocol,
            "the server's response is not valid: it names an address on another server",
        ),
        (
            200,
            &stream,
            "",
            ErrorKind::Closed,
            "the connection was lost before the response: the stream has ended",
        ),
    ];
    for (status, headers, body, kind, text) in cases {
        let mut script = Script::start().await;
        let transport = HttpSseTransport::new(&script.url).unwrap();
        assert!(transport.clock().is_none());
        let options = options().negotiation(duplexer_client::Negotiation::Handshake);
        let (client, ()) = tokio::join!(options.connect(transport), async {
            script.plain(Method::GET).await.reply(status, headers, Piped::whole(body));
        });
        let error: ConnectError = client.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (kind, format!("could not open the session: {text}")));
        assert!(script.unexpected().is_none());
    }
}

/// Messages that are too large end the stream, and with it the connection.
#[tokio::test]
async fn a_message_beyond_the_limit_ends_the_connection() {
    let mut script = Script::start().await;
    let (client, events) = session(&mut script).await;
    events.message(&Value::from("x".repeat(20_000))).await;
    client.closed().await;
}
