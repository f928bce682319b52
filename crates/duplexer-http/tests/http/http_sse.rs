//! The HTTP+SSE transport of 2024-11-05.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duplexer_core::dispatch::Message;
use duplexer_http::{ResponseBody, StreamTimedOut, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::middleware::Next;
use duplexer_server::{Context, Principal, Server};
use http::{Request, Response};
use http_body::Body;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::support::{Client, Post, Reply, Site, Stage, Text, Wire, meta, server};

fn old(builder: StreamableHttpBuilder) -> StreamableHttpBuilder {
    builder.http_sse("/sse", "/messages/")
}

fn get(path: &str) -> Post {
    let mut get = Post::body("").method("GET").path(path).without("content-type").without("accept");
    get.headers.push(("accept".into(), "text/event-stream".into()));
    get
}

fn request(id: impl Into<Value>, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

fn tool(id: i64, name: &str) -> Value {
    request(id, "tools/call", &json!({"name": name, "_meta": {"progressToken": 7}}))
}

fn handshake() -> Value {
    handshake_at("2024-11-05")
}

fn handshake_at(version: &str) -> Value {
    serde_json::from_str(&Client::handshake(version).body).unwrap()
}

fn is_session(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// An HTTP+SSE client: its stream, and its endpoint for messages.
struct Old<'a> {
    site: &'a Site,
    stream: Wire,
    endpoint: String,
}

impl<'a> Old<'a> {
    async fn connect(site: &'a Site) -> Self {
        let mut stream = site.connect().await;
        stream.send(&get("/sse").bytes(site.address)).await;
        let head = stream.head().await.unwrap();
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        assert_eq!(head.header("cache-control"), Some("no-cache, no-transform"));
        let first = stream.event().await.unwrap();
        assert_eq!(first.name, "endpoint");
        Self { site, stream, endpoint: first.data }
    }

    async fn open(site: &'a Site) -> Self {
        Self::open_at(site, "2024-11-05").await
    }

    async fn open_at(site: &'a Site, version: &str) -> Self {
        let mut old = Self::connect(site).await;
        old.say(&handshake_at(version)).await;
        assert_eq!(old.next().await["result"]["protocolVersion"], version);
        old.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        old
    }

    async fn post(&self, body: impl Into<String>) -> Reply {
        self.site.post(&Post::body(body).path(&self.endpoint)).await
    }

    async fn say(&self, message: &Value) {
        let reply = self.post(message.to_string()).await;
        assert_eq!((reply.status, reply.text().as_str()), (202, "Accepted"), "{message}");
    }

    async fn maybe_next(&mut self) -> Option<Value> {
        let event = self.stream.event().await?;
        assert_eq!(event.name, "message");
        Some(event.json())
    }

    async fn next(&mut self) -> Value {
        self.maybe_next().await.expect("a message")
    }

    fn session(&self) -> &str {
        self.endpoint.strip_prefix("/messages/?session_id=").unwrap()
    }
}

/// SSE-02, SSE-03, P-LEG-23: the first event names the endpoint; the messages follow.
#[tokio::test]
async fn an_old_client_shakes_hands_and_calls_a_tool() {
    let site = Site::with(old).await;
    let mut one = Old::open(&site).await;
    let two = Old::open(&site).await;
    assert!(is_session(one.session()) && is_session(two.session()), "{}", one.endpoint);
    assert_ne!(one.session(), two.session());
    one.say(&tool(1, "tell")).await;
    for step in 1..=3 {
        let sent = one.next().await;
        assert_eq!(
            (&sent["method"], &sent["params"]["progress"]),
            (&json!("notifications/progress"), &json!(step))
        );
    }
    assert_eq!(one.next().await["result"]["content"][0]["text"], "done");
    one.say(&tool(2, "who")).await;
    let text = format!(" in {}", one.session());
    assert_eq!(one.next().await["result"]["content"][0]["text"], text);
    let streamable = Client::open(&site).await;
    assert_eq!(streamable.call(1, "echo").await.status, 200, "the other transport is there as well");
}

/// P-LEG-23: requests of the server are sent on the stream, and the client POSTs its response.
#[tokio::test]
async fn the_server_asks_an_old_client() {
    let site = Site::with(old).await;
    let mut client = Old::open(&site).await;
    for (id, name) in [(1, "question"), (2, "question aside")] {
        client.say(&tool(id, name)).await;
        let asked = client.next().await;
        assert_eq!(asked["method"], "roots/list");
        client.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": []}})).await;
        assert_eq!(client.next().await["result"]["content"][0]["text"], "0 roots");
    }
}

/// ERA-01, ERA-04, ERA-05: the first request decides the era of this stream too.
#[tokio::test]
async fn either_era_is_spoken_on_the_stream() {
    let site = Site::with(old).await;
    let mut client = Old::connect(&site).await;
    client.say(&request(1, "tools/call", &json!({"name": "echo", "_meta": meta()}))).await;
    assert_eq!(client.next().await["result"]["resultType"], "complete");
    client.say(&handshake()).await;
    assert_eq!(client.next().await["error"]["code"], -32022);
    let mut client = Old::open(&site).await;
    client.say(&request(1, "tools/call", &json!({"name": "echo", "_meta": meta()}))).await;
    assert_eq!(client.next().await["error"]["code"], -32600);
}

/// SSE-03: the errors of a POST, in their precedence and with their exact texts.
#[tokio::test]
async fn a_post_that_is_not_accepted_gets_the_reason() {
    let site = Site::with(|builder| old(builder).max_body(200)).await;
    let client = Old::connect(&site).await;
    let ping = request(1, "ping", &json!({})).to_string();
    let refused = async |post: Post| {
        let reply = site.post(&post).await;
        (reply.status, reply.text())
    };
    let said = |status: u16, text: &str| (status, text.to_owned());
    let unknown = format!("/messages?session_id={:032x}", 5);
    let (short, twice) = (
        &client.endpoint[..client.endpoint.len() - 1],
        format!("{0}&session_id={1}", client.endpoint, client.session()),
    );
    for (path, status, text) in [
        ("/messages/", 400, "session_id is required"),
        ("/messages", 400, "session_id is required"),
        ("/messages/?session_id=", 400, "session_id is required"),
        ("/messages/?session=1", 400, "session_id is required"),
        ("/messages/?session_id=abc", 400, "Invalid session ID"),
        ("/messages/?session_id=+0000000000000000000000000000000", 400, "Invalid session ID"),
        (short, 400, "Invalid session ID"),
        (&twice, 400, "Invalid session ID"),
        (&unknown, 404, "Could not find session"),
    ] {
        assert_eq!(refused(Post::body(&ping).path(path)).await, said(status, text), "{path}");
    }
    for method in ["GET", "PUT", "DELETE", "OPTIONS"] {
        let reply = site.post(&get(&client.endpoint).method(method)).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")), "{method}");
        if method != "GET" {
            let reply = site.post(&get("/sse").method(method)).await;
            assert_eq!((reply.status, reply.header("allow")), (405, Some("GET")), "{method}");
        }
    }
    let large = Post::body(" ".repeat(201)).path("/messages/");
    assert_eq!(refused(large).await.0, 413, "before anything else is looked at");
    let untyped =
        Post::body(&ping).path(&client.endpoint).without("content-type").header("content-type", "text/plain");
    assert_eq!(refused(untyped).await.0, 415);
    assert_eq!(refused(get("/other")).await.0, 404);
    client.say(&request(1, "ping", &json!({}))).await;
}

/// SSE-03, SEC-02, SEC-03: both paths are behind the checks of host and origin.
#[tokio::test]
async fn foreign_pages_reach_neither_path() {
    let site = Site::with(old).await;
    let client = Old::connect(&site).await;
    let ping = Post::body(request(1, "ping", &json!({})).to_string()).path(&client.endpoint);
    for post in [get("/sse"), ping] {
        for (name, value) in [
            ("origin", "http://evil.example"),
            ("origin", "null"),
            ("host", "evil.example"),
            ("host", "localhost@evil.example"),
        ] {
            let reply = site.post(&post.clone().header(name, value)).await;
            assert_eq!(reply.status, 403, "{name}: {value}");
        }
    }
}

/// SSE-03: malformed input is rejected and reported on the stream, which goes on.
#[tokio::test]
async fn a_message_that_cannot_be_parsed_is_refused_and_reported_on_the_stream() {
    let site = Site::with(old).await;
    let mut client = Old::open(&site).await;
    let mut binary = Post::body("").path(&client.endpoint).header("content-length", "2").bytes(site.address);
    binary.extend([0xff, 0xfe]);
    let mut wire = site.connect().await;
    wire.send(&binary).await;
    let reply = wire.reply().await;
    assert_eq!((reply.status, reply.text().as_str()), (400, "Could not parse message"));
    let sent = client.next().await;
    assert_eq!((&sent["error"]["code"], sent.get("id")), (&json!(-32700), None));
    for (body, id, code) in [
        ("{", None, -32700),
        ("", None, -32700),
        ("5", None, -32600),
        (r#"{"id":4,"method":"x"}"#, Some(&json!(4)), -32600),
    ] {
        let reply = client.post(body).await;
        assert_eq!((reply.status, reply.text().as_str()), (400, "Could not parse message"), "{body}");
        let sent = client.next().await;
        assert_eq!((&sent["error"]["code"], sent.get("id")), (&json!(code), id), "{body}");
    }
    client.say(&tool(5, "echo")).await;
    assert_eq!(client.next().await["id"], 5);
}

/// SSE-04: a client that leaves ends everything: handlers are dropped, hooks run, and the stream's name is removed.
#[tokio::test]
async fn a_client_that_leaves_takes_its_handlers_along() {
    let site = Site::with(old).await;
    let mut client = Old::open(&site).await;
    client.say(&tool(1, "hook")).await;
    client.next().await;
    client.say(&tool(2, "wait")).await;
    site.stage.until(&site.stage.started, 2).await;
    let Old { stream, endpoint, .. } = client;
    drop(stream);
    site.stage.until(&site.stage.ended, 2).await;
    site.stage.until(&site.stage.closed, 1).await;
    let ping = Post::body(request(1, "ping", &json!({})).to_string()).path(&endpoint);
    let gone = async {
        while site.post(&ping).await.status != 404 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), gone).await.expect("the stream is forgotten");
}

/// While a client does not read, its handlers do not advance; other clients are not affected.
#[tokio::test]
async fn a_slow_reader_delays_only_its_own_handlers() {
    let site = Site::with(old).await;
    // A revision whose progress has messages, so that there is much to read.
    let mut slow = Old::open_at(&site, "2025-11-25").await;
    let mut other = Old::open(&site).await;
    slow.say(&tool(1, "flood")).await;
    // The socket's buffers fill up, then the counter stops: detected when two samples around other calls agree.
    let mut sent = usize::MAX;
    loop {
        for id in 0..200 {
            other.say(&tool(id, "echo")).await;
            assert_eq!(other.next().await["id"], id);
        }
        let now = site.stage.sent.load(Ordering::SeqCst);
        if now == sent {
            break;
        }
        sent = now;
    }
    assert!(sent < 100_000, "the handler went on without a reader: {sent}");
    while site.stage.sent.load(Ordering::SeqCst) == sent {
        slow.next().await;
    }
}

/// An unread stream is closed, and its handlers are dropped.
#[tokio::test]
async fn an_unread_stream_is_cut() {
    let times = |builder: StreamableHttpBuilder| {
        old(builder).sse_keep_alive(Duration::from_millis(100)).unread_timeout(Duration::from_millis(400))
    };
    let site = Site::with(times).await;
    // A revision whose progress has messages, so that there is much to read.
    let mut slow = Old::open_at(&site, "2025-11-25").await;
    slow.say(&tool(1, "flood")).await;
    site.stage.until(&site.stage.ended, 1).await;
    assert!(site.stage.sent.load(Ordering::SeqCst) < 100_000, "the handler stopped without a reader");
    while slow.stream.fill().await {}
}

/// Streams count as sessions, and a message as a request in flight until its handler has ended.
#[tokio::test]
async fn streams_and_their_messages_are_limited() {
    let site = Site::with(|builder| old(builder).max_sessions(1).max_requests(2)).await;
    let mut client = Old::open(&site).await;
    let reply = site.post(&get("/sse")).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert_eq!(site.post(&Client::handshake("2025-11-25")).await.status, 503, "one cap for both kinds");
    client.say(&tool(1, "go")).await;
    site.stage.until(&site.stage.started, 1).await;
    let reply = client.post(tool(2, "echo").to_string()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    site.stage.go.notify_one();
    assert_eq!(client.next().await["id"], 1);
    let room = async {
        while client.post(tool(2, "echo").to_string()).await.status != 202 {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), room).await.expect("room again");
    assert_eq!(client.next().await["id"], 2);
    drop(client);
    let room = async {
        while site.post(&Client::handshake("2025-11-25")).await.json().get("result").is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(20), room).await.expect("room again");
}

/// The shutdown of the service ends the stream, after all accepted messages are answered.
#[tokio::test]
async fn the_end_of_the_service_answers_what_was_accepted() {
    let mut site = Site::with(old).await;
    let Old { mut stream, endpoint, .. } = Old::open(&site).await;
    let call = Post::body(tool(1, "go").to_string()).path(&endpoint);
    assert_eq!(site.post(&call).await.status, 202);
    site.stage.until(&site.stage.started, 1).await;
    let (stage, address) = (Arc::clone(&site.stage), site.address);
    let release = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        assert_eq!(stage.torn_down.load(Ordering::SeqCst), 0);
        stage.go.notify_one();
        let answer = stream.event().await.unwrap().json();
        assert_eq!(answer["result"]["content"][0]["text"], "done");
        assert_eq!(stream.event().await, None, "an orderly end");
    };
    let (took, ()) = tokio::join!(site.finish(), release);
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(site.stage.torn_down.load(Ordering::SeqCst), 1);
}

/// A request that does not finish in time is answered with -32000.
#[tokio::test]
async fn the_end_of_the_service_does_not_wait_for_ever() {
    let mut site = Site::with(|builder| old(builder).shutdown_grace(Duration::from_millis(300))).await;
    let Old { mut stream, endpoint, .. } = Old::open(&site).await;
    let call = Post::body(tool(1, "wait").to_string()).path(&endpoint);
    assert_eq!(site.post(&call).await.status, 202);
    site.stage.until(&site.stage.started, 1).await;
    let answered = async {
        let answer = stream.event().await.unwrap().json();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32000)));
        assert_eq!(stream.event().await, None);
    };
    let (took, ()) = tokio::join!(site.finish(), answered);
    assert!(took < Duration::from_secs(3), "{took:?}");
    assert_eq!(
        (site.stage.ended.load(Ordering::SeqCst), site.stage.torn_down.load(Ordering::SeqCst)),
        (1, 1)
    );
}

fn mount(post: &Post, principal: Option<&Arc<Principal>>) -> Request<Text> {
    let mut request = Request::builder().method(post.method).uri(&post.path).header("host", "localhost");
    for (name, value) in &post.headers {
        request = request.header(name, value);
    }
    let mut request = request.body(Text::new(&post.body)).unwrap();
    if let Some(principal) = principal {
        request.extensions_mut().insert(Arc::clone(principal));
    }
    request
}

async fn ask(
    service: &StreamableHttp,
    post: &Post,
    principal: Option<&Arc<Principal>>,
) -> Response<ResponseBody> {
    let Ok(response) = service.clone().call(mount(post, principal)).await;
    response
}

/// The data of the next event of a body that is read in memory.
async fn data<B>(body: &mut B) -> Option<String>
where
    B: Body<Data = bytes::Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    let mut events = events(body).await?;
    assert_eq!(events.len(), 1, "{events:?}");
    events.pop()
}

/// The data of the events that come together next.
async fn events<B>(body: &mut B) -> Option<Vec<String>>
where
    B: Body<Data = bytes::Bytes> + Unpin,
    B::Error: std::fmt::Debug,
{
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await?.unwrap().into_data().unwrap();
        let text = String::from_utf8(frame.to_vec()).unwrap();
        let events = text.split("\r\n\r\n").filter_map(|event| event.split_once("\r\ndata: "));
        let data: Vec<_> = events.map(|(_, data)| data.to_owned()).collect();
        if !data.is_empty() {
            return Some(data);
        }
    }
}

async fn message(body: &mut ResponseBody) -> Value {
    serde_json::from_str(&data(body).await.unwrap()).unwrap()
}

/// SSE-03: a session belongs to its principal; other principals do not find it. Every message has its own credentials.
#[tokio::test]
async fn a_stream_belongs_to_its_principal() {
    let stage = Arc::new(Stage::default());
    let service = old(StreamableHttp::builder(server(&stage))).build().unwrap();
    let principal = |client: &str, subject: Option<&str>, scope: &str| {
        let mut principal = Principal::new(client);
        principal.subject = subject.map(Into::into);
        principal.scopes = vec![scope.into()];
        Some(Arc::new(principal))
    };
    let own = principal("a", Some("x"), "first");
    let mut stream = ask(&service, &get("/sse"), own.as_ref()).await.into_body();
    let endpoint = data(&mut stream).await.unwrap();
    let post = |body: &Value| Post::body(body.to_string()).path(&endpoint);
    assert_eq!(ask(&service, &post(&handshake()), own.as_ref()).await.status(), 202);
    message(&mut stream).await;
    for (who, scope) in [(own.clone(), "first"), (principal("a", Some("x"), "other"), "other")] {
        assert_eq!(ask(&service, &post(&tool(1, "who")), who.as_ref()).await.status(), 202);
        let answer = message(&mut stream).await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{scope} in ")), "{text}");
    }
    let mut stream = ask(&service, &get("/sse"), own.as_ref()).await.into_body();
    let second = data(&mut stream).await.unwrap();
    let who = request(1, "tools/call", &json!({"name": "who", "_meta": meta()})).to_string();
    let other = principal("a", Some("x"), "other");
    assert_eq!(ask(&service, &Post::body(who).path(&second), other.as_ref()).await.status(), 202);
    let answer = message(&mut stream).await;
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("other in ") && second.ends_with(&text[9..]), "in the other era too: {text}");
    let others = [
        None,
        principal("a", None, "first"),
        principal("a", Some("y"), "first"),
        principal("b", Some("x"), "first"),
    ];
    for other in others {
        let reply = ask(&service, &post(&tool(2, "echo")), other.as_ref()).await;
        assert_eq!(reply.status(), 404, "{other:?}");
        let mut body = reply.into_body();
        let text =
            poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(text, "Could not find session");
    }
}

/// The inbound queue is bounded: a client that posts too much waits, then gets 503; accepted messages are answered,
/// even if the service ends meanwhile.
#[tokio::test(start_paused = true)]
async fn a_message_waits_for_those_before_it_and_is_not_lost_at_the_end() {
    let gate = Arc::new(Notify::new());
    let opened = Arc::clone(&gate);
    let server = Server::builder("test", "0")
        .middleware(move |cx: Context, message: Message, next: Next| {
            let opened = Arc::clone(&opened);
            async move {
                if cx.method() == "initialize" {
                    opened.notified().await;
                }
                next.run(cx, message).await
            }
        })
        .build()
        .unwrap();
    let service = old(StreamableHttp::builder(server)).build().unwrap();
    let mut stream = ask(&service, &get("/sse"), None).await.into_body();
    let endpoint = data(&mut stream).await.unwrap();
    let post = |body: &Value| Post::body(body.to_string()).path(&endpoint);
    assert_eq!(ask(&service, &post(&handshake()), None).await.status(), 202);
    tokio::task::yield_now().await;
    let ping = |id: i64| request(id, "ping", &json!({}));
    // The handshake is in flight and one message waits for it.
    let mut accepted = 0;
    let start = Instant::now();
    let refused = loop {
        let reply = ask(&service, &post(&ping(accepted + 1)), None).await;
        if reply.status() != 202 {
            break reply;
        }
        accepted += 1;
    };
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"1"[..]));
    assert_eq!((start.elapsed().as_secs(), accepted), (10, 1));
    let read = async {
        gate.notify_one();
        let mut ids = Vec::new();
        // Responses that are ready together are sent in one chunk.
        while let Some(events) = events(&mut stream).await {
            for text in events {
                let answer: Value = serde_json::from_str(&text).unwrap();
                assert!(answer.get("result").is_some(), "{text}");
                ids.push(answer["id"].as_i64().unwrap());
            }
        }
        drop(stream);
        ids
    };
    let handle = service.handle();
    let (ids, ()) = tokio::join!(read, handle.shutdown());
    assert_eq!(ids, [0, 1]);
}

/// Wherever the service is mounted, an unread stream is closed after a minute; a silent one that is read is not.
#[tokio::test(start_paused = true)]
async fn an_unread_stream_is_cut_after_a_minute() {
    let stage = Arc::new(Stage::default());
    let service = old(StreamableHttp::builder(server(&stage))).build().unwrap();
    let mut stream = ask(&service, &get("/sse"), None).await.into_body();
    let endpoint = data(&mut stream).await.unwrap();
    let post = |body: &Value| Post::body(body.to_string()).path(&endpoint);
    assert_eq!(ask(&service, &post(&handshake_at("2025-11-25")), None).await.status(), 202);
    message(&mut stream).await;
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(600) {
        let frame = poll_fn(|cx| Pin::new(&mut stream).poll_frame(cx)).await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap(), ": ping\r\n\r\n");
    }
    assert_eq!(ask(&service, &post(&tool(1, "flood")), None).await.status(), 202);
    let start = Instant::now();
    stage.until_paused(&stage.ended, 1).await;
    assert!((60..=75).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let sent = stage.sent.load(Ordering::SeqCst);
    assert!(sent < 100, "without a reader the handler does not advance: {sent}");
    let frame = poll_fn(|cx| Pin::new(&mut stream).poll_frame(cx)).await;
    assert!(matches!(frame, Some(Err(StreamTimedOut { .. }))));
    assert_eq!(ask(&service, &post(&tool(2, "echo")), None).await.status(), 404);
}

/// SSE-02: under a router that strips its prefix, clients receive the whole path.
#[tokio::test]
async fn a_router_mounts_both_paths() {
    let stage = Arc::new(Stage::default());
    let service = old(StreamableHttp::builder(server(&stage))).root_path("/api").build().unwrap();
    let mut application: axum::Router = axum::Router::new()
        .route("/about", axum::routing::get(async || "ours"))
        .nest_service("/api", service);
    let Ok(response) = application.call(mount(&get("/api/sse"), None)).await;
    assert_eq!(response.status(), 200);
    let mut stream = response.into_body();
    let endpoint = data(&mut stream).await.unwrap();
    assert!(endpoint.strip_prefix("/api/messages/?session_id=").is_some_and(is_session), "{endpoint}");
    let Ok(response) =
        application.call(mount(&Post::body(handshake().to_string()).path(&endpoint), None)).await;
    assert_eq!(response.status(), 202);
    let answer: Value = serde_json::from_str(&data(&mut stream).await.unwrap()).unwrap();
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05");
    let Ok(response) = application.call(mount(&Post::tool("echo").path("/api/mcp"), None)).await;
    assert_eq!(response.status(), 200, "any other path is the streamable one");
}

/// SSE-01: paths are checked when the service is built, and the transport is off by default.
#[tokio::test]
async fn paths_are_checked_and_the_transport_is_off_by_default() {
    let stage = Arc::new(Stage::default());
    let build = || StreamableHttp::builder(server(&stage));
    for (builder, text) in [
        (build().http_sse("/sse", "http://x/messages"), "'http://x/messages' is not a relative path"),
        (build().http_sse("//x/sse", "/messages"), "'//x/sse' is not a relative path"),
        (build().http_sse("/sse", "/messages?a=1"), "'/messages?a=1' is not a relative path"),
        (build().http_sse("/sse", "/messages").root_path("/a#b"), "'/a#b' is not a relative path"),
        (build().http_sse("/sse", "/sse/"), "'/sse/' is the path of two things"),
        (build().http_sse("/mcp", "/messages"), "'/mcp' is the path of two things"),
        (build().http_sse("/sse", "x").path("/x"), "'/x' is the path of two things"),
    ] {
        let error = builder.build().unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    let site = Site::new().await;
    assert_eq!(site.post(&get("/sse")).await.status, 404);
    let site = Site::with(|builder| builder.http_sse("sse", "messages").path("/mine")).await;
    let mut wire = site.connect().await;
    wire.send(&get("/sse").bytes(site.address)).await;
    wire.head().await.unwrap();
    assert!(wire.event().await.unwrap().data.starts_with("/messages?session_id="), "a slash is added");
}

/// Hardening 2: a request of the server to the client fails after the timeout.
#[tokio::test]
async fn a_question_on_an_old_stream_ends() {
    let site = Site::with(|builder| old(builder).client_request_timeout(Duration::from_millis(50))).await;
    let mut client = Old::open(&site).await;
    client.say(&tool(1, "question")).await;
    assert_eq!(client.next().await["method"], "roots/list");
    let answer = loop {
        let message = client.next().await;
        // The question is cancelled first.
        if message["method"].is_null() {
            break message;
        }
        assert_eq!(message["method"], "notifications/cancelled");
    };
    assert!(answer["result"]["content"][0]["text"].to_string().contains("roots/list"), "{answer}");
}

/// Hardening 2: one stream has a limit of calls that run, and the others wait.
#[tokio::test]
async fn an_old_stream_has_a_limit_of_calls_in_flight() {
    let site = Site::with(|builder| old(builder).max_calls_per_session(2)).await;
    let mut client = Old::open(&site).await;
    for id in 1..=4 {
        client.say(&tool(id, "go")).await;
    }
    for started in 2..=4 {
        site.stage.until(&site.stage.started, started).await;
        assert_eq!(site.post(&Post::tool("echo")).await.status, 200, "others are served");
        assert_eq!(site.stage.started.load(Ordering::SeqCst), 2 * started - 1);
        site.stage.go.notify_one();
        client.next().await;
    }
    site.stage.go.notify_one();
    client.next().await;
}
