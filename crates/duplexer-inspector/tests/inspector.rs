//! The API of the page and the second origin, as a browser uses them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::net::SocketAddr;

use bytes::Bytes;
use duplexer::client::prelude::*;
use duplexer::http::StreamableHttp;
use duplexer::inspector::{Connecting, Inspector, Target};
use duplexer::prelude::*;
use duplexer::testing::{TestClient, Transcript};
use duplexer::{Context, Server};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tower_service::Service as _;

/// Adds.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Name {
    name: String,
}

/// Asks for a name.
#[tool]
async fn greet(cx: Context) -> Result<String, ToolError> {
    let Name { name } = cx.elicit("name", "Who?").await?.accepted()?;
    Ok(format!("Hello {name}"))
}

/// Never ends.
#[tool]
async fn wait() -> String {
    std::future::pending().await
}

/// An inspector of a server over HTTP.
struct Page {
    inspector: Inspector,
    token: String,
    next: u64,
    _serving: JoinSet<()>,
}

impl Page {
    async fn open() -> Self {
        let server = Server::builder("test", "0").tool(add).tool(greet).tool(wait).build().unwrap();
        let bound = StreamableHttp::new(server).bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr().unwrap());
        let mut serving = JoinSet::new();
        serving.spawn(bound.serve_until(std::future::pending()));
        let target = Target::Url(url.clone());
        let inspector = Inspector::new(target, move |connecting: Connecting| {
            let url = url.clone();
            async move { Ok(connecting.builder.open(url).await?) }
        });
        let inspector = inspector.start().await.unwrap();
        let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let token = inspector.url(address).split_once("token=").unwrap().1.to_owned();
        Self { inspector, token, next: 0, _serving: serving }
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Response<Full<Bytes>> {
        self.inspector.clone().call(request).await.unwrap()
    }

    async fn api(&self, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = Request::builder()
            .method(method)
            .uri(format!("/inspector/api/{path}"))
            .header("host", "127.0.0.1:1")
            .header("authorization", format!("Bearer {}", self.token))
            .extension::<SocketAddr>("127.0.0.1:50000".parse().unwrap())
            .body(Full::from(body.to_string()))
            .unwrap();
        let reply = self.send(request).await;
        let status = reply.status();
        let text = reply.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&text).unwrap_or_else(|_| String::from_utf8_lossy(&text).into()))
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, reply) = self.api(Method::POST, path, &body).await;
        assert!(status.is_success(), "{path}: {reply}");
        reply
    }

    async fn get(&self, path: &str) -> Value {
        let (status, reply) = self.api(Method::GET, path, &Value::Null).await;
        assert!(status.is_success(), "{path}: {reply}");
        reply
    }

    /// Reads events until one of this type.
    async fn event(&mut self, kind: &str) -> Value {
        loop {
            let answer = self.get(&format!("events?after={}", self.next)).await;
            let events = answer["events"].as_array().unwrap();
            if let Some(index) = events.iter().position(|event| event["type"] == kind) {
                let end = answer["next"].as_u64().unwrap();
                self.next = end - (events.len() - index - 1) as u64;
                return events[index].clone();
            }
            self.next = answer["next"].as_u64().unwrap();
        }
    }

    async fn call(&mut self, session: &str, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.post("call", json!({"call": "c", "session": session, "method": "tools/call", "params": params}))
            .await;
        self.event("done").await;
        self.get("result?call=c").await
    }
}

#[tokio::test]
async fn a_page_calls_a_server_in_both_eras_and_sees_the_wire() {
    let mut page = Page::open().await;
    for era in ["handshake", "envelope"] {
        let session = page.post("session", json!({"session": era})).await;
        assert_eq!((&session["era"], &session["server"]["name"]), (&json!(era), &json!("test")));
        let outcome = page.call(era, "add", json!({"a": 1, "b": 2})).await;
        assert_eq!(outcome["result"]["content"][0]["text"], "3", "{outcome}");
        assert!(outcome["ms"].as_f64().unwrap() > 0.0);
        let (status, _) = page.api(Method::GET, "result?call=c", &Value::Null).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "a result is taken once");
        let transcript = page.get(&format!("transcript?session={era}")).await;
        let lines: Vec<Value> =
            transcript.as_str().unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&lines[0]["duplexer"], &lines[0]["transport"]), (&json!("transcript"), &json!("http")));
        assert!(lines.iter().any(|line| line["message"]["params"]["name"] == "add"), "{lines:?}");
    }
    let refused = page.call("auto", "add", json!({"a": "x"})).await;
    assert_eq!(refused["result"]["isError"], true);
    page.inspector.close().await;
}

/// Issue 12: the test kit replays an exported transcript, of a session that was opened twice.
#[tokio::test]
async fn an_exported_transcript_is_replayed_by_the_test_kit() {
    for era in ["handshake", "envelope"] {
        let mut page = Page::open().await;
        assert_eq!(page.call(era, "add", json!({"a": 1, "b": 2})).await["ok"], true);
        page.post("close", json!({"session": era})).await;
        assert_eq!(page.call(era, "add", json!({"a": 20, "b": 22})).await["ok"], true);
        let exported = page.get(&format!("transcript?session={era}")).await;
        page.inspector.close().await;

        let recorded = Transcript::parse(exported.as_str().unwrap()).unwrap();
        let connections: BTreeSet<u64> =
            recorded.messages().iter().map(|message| message.connection).collect();
        assert_eq!(connections, BTreeSet::from([1, 2]), "{era}: ids of requests begin anew");
        let client = TestClient::new(&recorded.server().unwrap()).await.unwrap();
        assert_eq!(client.server_info().unwrap().name, "test");
        for (arguments, sum) in [(json!({"a": 1, "b": 2}), "3"), (json!({"a": 20, "b": 22}), "42")] {
            assert_eq!(client.call_tool("add", arguments).await.unwrap().to_text(), sum, "{era}");
        }
        let other = client.call_tool("add", json!({"a": 5, "b": 5})).await.unwrap_err().to_string();
        assert!(other.contains("only with other params"), "{era}: {other}");
        client.close().await;
    }
}

#[tokio::test]
async fn questions_of_the_server_are_answered_by_the_page() {
    for era in ["handshake", "envelope"] {
        let mut page = Page::open().await;
        let params = json!({"name": "greet", "arguments": {}});
        page.post("call", json!({"call": "c", "session": era, "method": "tools/call", "params": params}))
            .await;
        let question = page.event("question").await;
        assert_eq!(
            (&question["kind"], &question["params"]["message"]),
            (&json!("elicitation"), &json!("Who?"))
        );
        let answer = json!({"action": "accept", "content": {"name": "Ada"}});
        page.post("answer", json!({"question": question["question"], "result": answer})).await;
        page.event("done").await;
        let outcome = page.get("result?call=c").await;
        assert_eq!(outcome["result"]["content"][0]["text"], "Hello Ada");
        let late = json!({"question": question["question"], "error": "late"});
        assert_eq!(page.post("answer", late).await["open"], false);
        page.inspector.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends() {
    let mut page = Page::open().await;
    let params = json!({"name": "wait", "arguments": {}});
    let call = json!({"call": "c", "session": "auto", "method": "tools/call", "params": params});
    page.post("call", call.clone()).await;
    assert_eq!(page.api(Method::POST, "call", &call).await.0, StatusCode::TOO_MANY_REQUESTS);
    page.event("frame").await;
    assert_eq!(page.post("cancel", json!({"call": "c"})).await["cancelled"], true);
    assert_eq!(page.event("done").await["ok"], false);
    assert_eq!(page.get("result?call=c").await["error"]["message"], "cancelled");
    assert_eq!(page.post("cancel", json!({"call": "c"})).await["cancelled"], false);
}

#[tokio::test]
async fn the_api_needs_the_token_of_this_start() {
    let page = Page::open().await;
    let request = |path: &str, peer: Option<&str>, token: &str| {
        let mut request = Request::builder().uri(path.to_owned()).header("host", "localhost");
        if !token.is_empty() {
            request = request.header("authorization", token);
        }
        let mut request = request.body(Full::default()).unwrap();
        if let Some(peer) = peer {
            request.extensions_mut().insert::<SocketAddr>(peer.parse().unwrap());
        }
        request
    };
    let (near, api) = (Some("127.0.0.1:9"), "/inspector/api/info");
    let good = format!("Bearer {}", page.token);
    for (token, status) in
        [("", 401), ("Bearer ", 401), ("Bearer x", 401), (&*page.token, 401), (&*good, 200)]
    {
        assert_eq!(page.send(request(api, near, token)).await.status(), status, "{token}");
    }
    for (path, peer, status) in [
        ("/", near, 200),
        ("/inspector/app.js", near, 200),
        ("/inspector/../Cargo.toml", near, 404),
        ("/other", near, 404),
        ("/", Some("192.0.2.1:9"), 403),
        ("/", None, 403),
        (api, None, 403),
    ] {
        assert_eq!(page.send(request(path, peer, &good)).await.status(), status, "{path} {peer:?}");
    }
    let reply = page.send(request("/", near, "")).await;
    let policy = reply.headers()["content-security-policy"].to_str().unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("require-trusted-types-for"),
        "{policy}"
    );
    let other = Page::open().await;
    assert_ne!(page.token, other.token);
}

#[tokio::test]
async fn bad_requests_get_a_reason() {
    let page = Page::open().await;
    for (method, path, body, status) in [
        (Method::POST, "call", json!({}), 400),
        (Method::POST, "session", json!({"session": "new"}), 400),
        (Method::POST, "level", json!({"session": "auto", "level": "loud"}), 400),
        (Method::POST, "roots", json!({"roots": ["http://a"]}), 400),
        (Method::POST, "answer", json!({"question": 1}), 400),
        (Method::POST, "nothing", json!({}), 404),
        (Method::GET, "events?after=x", json!({}), 400),
        (Method::GET, "frame?n=9", json!({}), 404),
        (Method::DELETE, "info", json!({}), 405),
    ] {
        let (got, reply) = page.api(method, path, &body).await;
        assert_eq!(got.as_u16(), status, "{path}");
        assert!(!reply["error"]["message"].as_str().unwrap().is_empty());
    }
    page.post("roots", json!({"roots": ["file:///home/ada"]})).await;
}

/// Sends a request to the second origin. Returns head and body.
async fn visit(origin: &str, request: &str) -> String {
    let mut stream = TcpStream::connect(origin.strip_prefix("http://").unwrap()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// APP-12, APP-D5: a view comes from another origin, under its own policy, and what was blocked is reported.
#[tokio::test]
async fn a_view_has_an_origin_and_a_policy_of_its_own() {
    let mut page = Page::open().await;
    let origin = page.get("info").await["sandbox"].as_str().unwrap().to_owned();
    let csp = json!({"connectDomains": ["https://api.example", "*"]});
    let made = page.post("view", json!({"html": "<!doctype html><html>hi</html>", "csp": csp})).await;
    let (name, policy) = (made["view"].as_str().unwrap(), made["policy"].as_str().unwrap());
    assert_eq!(made["ignored"].as_array().unwrap().len(), 1);
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n");
    let view = visit(&origin, &get(&format!("/view/{name}"))).await;
    assert!(view.contains(policy) && view.ends_with("hi</html>"), "{view}");
    assert!(visit(&origin, &get("/sandbox.html")).await.contains("frame-src 'self'"));
    assert!(visit(&origin, &get("/view/0000")).await.starts_with("HTTP/1.1 404"));
    let evil = "GET /sandbox.html HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert!(visit(&origin, evil).await.starts_with("HTTP/1.1 403"));
    let report =
        json!({"csp-report": {"blocked-uri": "https://evil.example", "effective-directive": "connect-src"}});
    let report = report.to_string();
    let length = report.len();
    let post = format!(
        "POST /report/{name} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{report}"
    );
    assert!(visit(&origin, &post).await.starts_with("HTTP/1.1 204"));
    let blocked = page.event("blocked").await;
    assert_eq!(
        (&blocked["uri"], &blocked["directive"]),
        (&json!("https://evil.example"), &json!("connect-src"))
    );
}
