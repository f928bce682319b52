//! The transport against the service of this project, and against scripted servers.
#![allow(clippy::too_many_lines, reason = "a table is as long as its cases")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "client/authorization.rs"]
mod authorization;
#[path = "client/hostile.rs"]
mod hostile;
#[path = "client/http_sse.rs"]
mod http_sse;
#[path = "client/redirects.rs"]
mod redirects;
#[path = "client/renewal.rs"]
mod renewal;
#[path = "client/script.rs"]
mod script;
#[path = "client/session.rs"]
mod session;
#[path = "client/streams.rs"]
mod streams;
#[path = "client/tls.rs"]
mod tls;
#[path = "client/tool_headers.rs"]
mod tool_headers;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer_client::{Client, ClientError, ErrorKind, Negotiation, PinnedVersion};
use duplexer_core::error::McpError;
use duplexer_http::StreamableHttp;
use duplexer_http_client::HttpTransport;
use duplexer_server::{Context, Server};
use duplexer_types::methods;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

#[derive(Default)]
struct Stage {
    started: Notify,
    ended: Notify,
    calls: AtomicUsize,
}

struct Guard(Arc<Stage>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.ended.notify_one();
    }
}

async fn call(cx: Context<Arc<Stage>>, params: CallToolParams) -> Result<CallToolResult, McpError> {
    cx.state().calls.fetch_add(1, Ordering::SeqCst);
    match params.name.as_str() {
        "wait" => {
            let _guard = Guard(Arc::clone(cx.state()));
            cx.state().started.notify_one();
            std::future::pending::<()>().await;
        }
        "tell" => {
            for step in 1..=200 {
                cx.progress(step).await;
            }
        }
        _ => {}
    }
    Ok(CallToolResult::text(params.name))
}

/// The service of this project, and a client of it.
async fn session(tasks: &mut JoinSet<()>) -> (Client, Arc<Stage>) {
    let stage = Arc::new(Stage::default());
    let server =
        Server::builder("test", "0").state(Arc::clone(&stage)).on(methods::ToolsCall, call).build().unwrap();
    let bound = StreamableHttp::new(server).bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", bound.local_addr().unwrap());
    tasks.spawn(bound.serve_until(std::future::pending()));
    let client = Client::builder("test", "1").connect(HttpTransport::new(&url).unwrap()).await.unwrap();
    (client, stage)
}

/// P-HDR-1, P-HDR-2, P-HDR-3, P-HTTP-5: the client calls the server in the envelope era.
#[tokio::test]
async fn a_session_over_http_makes_calls_side_by_side() {
    let mut tasks = JoinSet::new();
    let (client, stage) = session(&mut tasks).await;
    assert_eq!(client.protocol_version().as_str(), "2026-07-28");
    let mut calls = JoinSet::new();
    for index in 0..100 {
        let client = client.clone();
        calls.spawn(async move {
            let name = format!("tool {index} ü");
            let result = client.call_tool(&*name, ()).await.unwrap();
            assert_eq!(serde_json::to_value(result).unwrap()["content"][0]["text"], name);
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    assert_eq!(stage.calls.load(Ordering::SeqCst), 100);
    client.close().await.unwrap();
}

/// HTTPM-15, P-HTTP-5: events are read in order, then the response.
#[tokio::test]
async fn progress_comes_in_order() {
    let mut tasks = JoinSet::new();
    let (client, _) = session(&mut tasks).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let progress = Arc::clone(&seen);
    let call = client.call_tool("tell", ());
    call.on_progress(move |update| progress.lock().unwrap().push(update.progress)).await.unwrap();
    let expected: Vec<f64> = (1..=200).map(f64::from).collect();
    assert_eq!(*seen.lock().unwrap(), expected);
}

/// CHTTP-01: cancelling a request aborts its POST, which drops the handler.
#[tokio::test]
async fn giving_up_a_call_ends_its_post() {
    let mut tasks = JoinSet::new();
    let (client, stage) = session(&mut tasks).await;
    let call = client.call_tool("wait", ()).into_future();
    tokio::select! {
        _ = call => panic!("it never answers"),
        () = stage.started.notified() => {}
    }
    tokio::time::timeout(Duration::from_secs(5), stage.ended.notified())
        .await
        .expect("the handler is dropped");
    client.call_tool("next", ()).await.unwrap();
}

/// A connection must not depend on the runtime of one caller, which may not be polled any more when others use the connection.
#[tokio::test]
async fn a_caller_in_another_runtime_owns_no_connection() {
    let mut tasks = JoinSet::new();
    let (client, stage) = session(&mut tasks).await;
    // The first connection is in use, so that the next call opens another one.
    let mut waiting = JoinSet::new();
    waiting.spawn(client.call_tool("wait", ()).into_future());
    stage.started.notified().await;
    let caller = client.clone();
    let elsewhere = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(caller.call_tool("elsewhere", ()).into_future()).unwrap();
        runtime
    };
    let idle = tokio::task::spawn_blocking(elsewhere).await.unwrap();
    let here = tokio::time::timeout(Duration::from_secs(5), client.call_tool("here", ()).into_future()).await;
    assert!(here.expect("the connection is served").is_ok());
    tokio::task::spawn_blocking(move || drop(idle)).await.unwrap();
}

/// A server that answers every request with the same bytes. `$id` is replaced by the id of the request.
async fn scripted(tasks: &mut JoinSet<()>, answer: &'static str) -> Result<CallToolResult, ClientError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tasks.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            answer_one(stream, answer).await;
        }
    });
    let pinned = Negotiation::Pinned(PinnedVersion::new("2026-07-28").prior(discovered()));
    let builder = Client::builder("test", "1").negotiation(pinned);
    let transport = HttpTransport::builder(&url).limit(1000).build().unwrap();
    let client = builder.connect(transport).await.unwrap();
    client.call_tool("x", ()).await
}

fn discovered() -> duplexer_types::lifecycle::DiscoverResult {
    serde_json::from_value(serde_json::json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private",
    }))
    .unwrap()
}

async fn answer_one(mut stream: TcpStream, answer: &str) {
    let mut request = Vec::new();
    let id = loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await.unwrap();
        request.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&request);
        if let Some((_, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str::<serde_json::Value>(body)
        {
            break body["id"].to_string();
        }
    };
    let (head, body) = answer.split_once("\n\n").unwrap();
    let body = body.replace("$id", &id);
    let head = head.replace('\n', "\r\n");
    let text = format!("{head}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// CHTTP-02, P-HTTP-19, P-HTTP-20; robustness C08..C10: every kind of response, and missing ones.
#[tokio::test]
async fn answers_of_every_kind_end_the_call() {
    let mut tasks = JoinSet::new();
    let json = "HTTP/1.1 200 OK\ncontent-type: application/json; charset=utf-8\n\n";
    let fine: &'static str = Box::leak(
        format!(r#"{json}{{"jsonrpc":"2.0","id":$id,"result":{{"resultType":"complete","content":[]}}}}"#)
            .into(),
    );
    assert!(scripted(&mut tasks, fine).await.is_ok());
    let events = "HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\n:\r\n\r\nid: 4\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"resultType\":\"complete\",\"content\":[]}}\r\n\r\n";
    assert!(scripted(&mut tasks, events).await.is_ok());
    let invalid = |reason: &str| format!("the server's response is not valid: {reason}");
    let lost = |reason: &str| format!("the connection was lost before the response: {reason}");
    for (answer, kind, text) in [
        (
            "HTTP/1.1 202 Accepted\n\n",
            ErrorKind::Protocol,
            invalid("the server answered a request with 202 Accepted"),
        ),
        (
            "HTTP/1.1 400 Bad\ncontent-type: application/json\n\n{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32602,\"message\":\"m\"}}",
            ErrorKind::Refused,
            "m".to_owned(),
        ),
        ("HTTP/1.1 404 Not Found\n\n", ErrorKind::Http, "404 Not Found".to_owned()),
        (
            "HTTP/1.1 500 Oops\n\n<html>\u{7}",
            ErrorKind::Http,
            "500 Internal Server Error: <html>\\u{7}".to_owned(),
        ),
        (
            "HTTP/1.1 400 Bad\ncontent-type: application/json\n\n{\"error\":\"other\"}",
            ErrorKind::Http,
            "400 Bad Request: {\"error\":\"other\"}".to_owned(),
        ),
        ("HTTP/1.1 502 Oops\ncontent-type: image/png\n\nxyz", ErrorKind::Http, "502 Bad Gateway".to_owned()),
        (
            "HTTP/1.1 401 No\nwww-authenticate: Basic realm=\"x\"\nwww-authenticate: Bearer error=\"invalid_token\"\n\nsecret",
            ErrorKind::Unauthorized,
            "401 Unauthorized: invalid_token".to_owned(),
        ),
        (
            "HTTP/1.1 403 No\ncontent-type: application/json\n\n{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32600,\"message\":\"m\"}}",
            ErrorKind::Forbidden,
            "403 Forbidden: m".to_owned(),
        ),
        ("HTTP/1.1 302 Found\nlocation: http://127.0.0.1:1/\n\n", ErrorKind::Http, "302 Found".to_owned()),
        (
            "HTTP/1.1 200 OK\ncontent-type: text/html\n\n<html>",
            ErrorKind::Protocol,
            invalid("unexpected content type 'text/html'"),
        ),
        (
            "HTTP/1.1 200 OK\ncontent-type: application/json\n\n{",
            ErrorKind::Protocol,
            invalid("it is not JSON-RPC"),
        ),
        (
            "HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: 99999\n\n{",
            ErrorKind::Protocol,
            invalid("it is larger than 1000 bytes"),
        ),
        (
            "HTTP/1.1 200 OK\ncontent-type: application/json\n\n{\"jsonrpc\":\"2.0\",\"id\":\"other\",\"result\":{}}",
            ErrorKind::Protocol,
            invalid("it does not answer the request"),
        ),
        (
            "HTTP/1.1 200 OK\ncontent-type: text/event-stream\n\nid: 1\r\n: nothing\r\n\r\n",
            ErrorKind::Closed,
            lost("the stream ended without an answer"),
        ),
        (
            "HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: 500\n\n{",
            ErrorKind::Closed,
            lost("end of file before message length reached"),
        ),
        ("nonsense\n\n", ErrorKind::Closed, lost("invalid HTTP version parsed")),
    ] {
        let error = scripted(&mut tasks, answer).await.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (kind, text), "{answer}");
    }
}

#[test]
fn endpoints_are_checked() {
    for wrong in ["", "localhost:3000", "ftp://localhost/", "http://"] {
        assert!(HttpTransport::new(wrong).is_err(), "{wrong}");
    }
    assert!(HttpTransport::builder("http://localhost/mcp").header("a b", "c").build().is_err());
}
