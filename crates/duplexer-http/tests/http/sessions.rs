//! The handshake era with sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use duplexer_http::{Handshake, Responses, StreamableHttp, StreamableHttpBuilder};
use duplexer_server::Principal;
use http::StatusCode;
use serde_json::{Value, json};

use crate::support::{Client, Post, Site, ask, mounted, open, server};

fn response(id: i64, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// MGR-03, HTTPL-22, P-LEG-7: the handshake opens a session, whose id is 128 random bits in visible ASCII.
#[tokio::test]
async fn a_handshake_opens_a_session() {
    let site = Site::new().await;
    let (one, two) = (Client::open(&site).await, Client::open(&site).await);
    assert_ne!(one.id, two.id);
    for client in [&one, &two] {
        assert_eq!(client.id.len(), 32);
        assert!(client.id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
        let reply = client.call(1, "echo").await;
        assert_eq!((reply.status, reply.header("mcp-session-id")), (200, Some(client.id.as_str())));
        assert_eq!(reply.json()["result"]["content"][0]["text"], "echo");
    }
}

/// HTTPL-07, MGR-06, P-LEG-9, P-LEG-10, robustness H90: without a session 400, with an unknown one 404, and no error
/// response contains an id.
#[tokio::test]
async fn a_session_must_be_named_and_known() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let call = || client.tool(1, "echo").without("mcp-session-id");
    let text = |reply: &crate::support::Reply| reply.json()["error"]["message"].clone();
    let reply = site.post(&call()).await;
    assert_eq!(
        (reply.status, reply.code(), text(&reply)),
        (400, -32600, json!("Bad Request: Missing session ID"))
    );
    assert_eq!(reply.header("mcp-session-id"), None);
    for unknown in ["0", "", "00000000000000000000000000000000", "a b"] {
        let reply = site.post(&call().header("mcp-session-id", unknown)).await;
        assert_eq!((reply.status, reply.code(), text(&reply)), (404, -32600, json!("Session not found")));
        assert_eq!(reply.header("mcp-session-id"), None);
    }
    let twice = client.tool(1, "echo").header("mcp-session-id", &client.id);
    assert_eq!(site.post(&twice).await.status, 400);
    for post in [client.get(), client.delete()] {
        assert_eq!(site.post(&post.clone().without("mcp-session-id")).await.status, 400);
        let unknown = post.without("mcp-session-id").header("mcp-session-id", "0");
        assert_eq!(site.post(&unknown).await.status, 404, "robustness H94");
    }
}

/// MGR-05, robustness klai #1198: a rejected handshake leaves nothing behind, and a stale id is ignored.
#[tokio::test]
async fn a_refused_opening_leaves_nothing() {
    let site = Site::with(|builder| builder.max_sessions(1)).await;
    for _ in 0..3 {
        let malformed = Post::body(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#);
        let reply = site.post(&malformed).await;
        assert_eq!((reply.code(), reply.header("mcp-session-id")), (-32602, None));
    }
    let again = Client::handshake("2025-06-18").header("mcp-session-id", "stale");
    let reply = site.post(&again).await;
    assert_eq!(reply.status, 200);
    assert!(reply.header("mcp-session-id").is_some_and(|id| id != "stale"));
}

/// MGR-04: at the limit new sessions are rejected and the open ones go on; an ended one returns its permit.
#[tokio::test]
async fn there_are_only_so_many_sessions() {
    let site = Site::with(|builder| builder.max_sessions(2)).await;
    let (one, _two) = (Client::open(&site).await, Client::open(&site).await);
    let reply = site.post(&Client::handshake("2025-11-25")).await;
    assert_eq!((reply.status, reply.code()), (503, -32603));
    assert_eq!(reply.json()["error"]["message"], "Too many open sessions");
    assert_eq!((reply.header("retry-after"), reply.header("mcp-session-id")), (Some("1"), None));
    assert_eq!(one.call(1, "echo").await.status, 200);
    assert_eq!(site.post(&one.delete()).await.status, 200);
    Client::open(&site).await;
}

/// HTTPL-02: a session serves three methods; HTTPL-04 and HTTPL-15: each requires its formats to be accepted.
#[tokio::test]
async fn methods_and_media_types_are_checked() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    for method in ["PUT", "PATCH", "OPTIONS", "HEAD"] {
        let reply = site.post(&client.tool(1, "echo").method(method)).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("GET, POST, DELETE")), "{method}");
    }
    let both = "Not Acceptable: Client must accept both application/json and text/event-stream";
    for accept in ["application/json", "text/event-stream", "text/html"] {
        let reply = site.post(&client.tool(1, "echo").without("accept").header("accept", accept)).await;
        assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (406, Some(both)));
    }
    let reply = site.post(&client.get().without("accept").header("accept", "application/json")).await;
    let events = "Not Acceptable: Client must accept text/event-stream";
    assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (406, Some(events)));
    let reply = site.post(&client.tool(1, "echo").without("content-type")).await;
    assert_eq!(reply.status, 415);
    let json_only = Site::with(|builder| builder.responses(Responses::JsonOnly)).await;
    let client = Client::open(&json_only).await;
    let json = client.tool(1, "echo").without("accept").header("accept", "application/json");
    assert_eq!(json_only.post(&json).await.status, 200);
    let reply = json_only.post(&client.tool(1, "echo").without("accept").header("accept", "text/html")).await;
    let text = "Not Acceptable: Client must accept application/json";
    assert_eq!((reply.status, reply.json()["error"]["message"].as_str()), (406, Some(text)));
}

/// HTTPL-16, HTTPL-01, MGR-08, P-LEG-12, robustness H21: the client ends its session, and no request finds it; its
/// hooks have run. Without sessions there is nothing to end.
#[tokio::test]
async fn a_session_can_be_ended_by_its_client() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    client.call(1, "hook").await;
    let foreign = client.delete().header("origin", "http://evil.example.com");
    assert_eq!(site.post(&foreign).await.status, 403);
    let mut listening = client.listen().await;
    let reply = site.post(&client.delete()).await;
    assert_eq!((reply.status, reply.text().as_str()), (200, ""));
    assert_eq!(listening.chunk().await, None, "its stream ends");
    for post in [client.delete(), client.get(), client.tool(2, "echo")] {
        assert_eq!(site.post(&post).await.status, 404);
    }
    site.stage.until(&site.stage.closed, 1).await;
    let stateless = Site::with(|builder| builder.handshake(Handshake::Stateless)).await;
    for post in [client.delete(), client.get()] {
        let reply = stateless.post(&post).await;
        assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
    }
}

/// HTTPL-11: a request in flight at the end of its session is answered, as a body or as the last event.
#[tokio::test]
async fn the_end_of_a_session_answers_what_is_in_flight() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut waiting = site.connect().await;
    waiting.send(&client.tool(1, "wait").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 1).await;
    let mut streaming = client.stream(2, "tell then wait").await;
    streaming.event().await.unwrap();
    site.post(&client.delete()).await;
    let reply = waiting.reply().await;
    assert_eq!((reply.status, reply.code()), (500, -32603));
    assert_eq!(reply.json()["error"]["message"], "Session terminated before the request completed");
    let last = streaming.event().await.unwrap().json();
    assert_eq!((&last["id"], &last["error"]["code"]), (&json!(2), &json!(-32603)));
    assert_eq!(streaming.event().await, None);
    site.stage.until(&site.stage.ended, 2).await;
}

/// HTTPL-09, HTTPL-17, P-LEG-13, P-LEG-14, P-LEG-15: the notifications of a request come on its own stream, before its
/// response; all others on the standalone stream, and none on both.
#[tokio::test]
async fn notifications_of_a_request_come_on_its_stream() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut listening = client.listen().await;
    let mut stream = client.stream("a", "tell").await;
    for step in 1..=3 {
        let event = stream.event().await.unwrap();
        assert_eq!(event.json()["params"]["progress"], json!(step));
        assert_eq!(event.id, None, "nothing is kept, so there is nothing to come back for");
    }
    assert_eq!(stream.event().await.unwrap().json()["id"], "a");
    assert_eq!(stream.event().await, None);
    let reply = client.call(3, "announce").await;
    assert_eq!(reply.header("content-type"), Some("application/json"), "nothing comes before its answer");
    site.post(&client.delete()).await;
    let mut heard = Vec::new();
    while let Some(event) = listening.event().await {
        heard.push(event.json()["method"].clone());
    }
    assert_eq!(heard, ["notifications/tools/list_changed"]);
}

/// HTTPL-08, P-LEG-22: a request to the client is sent on the stream of its request, or on the standalone stream, and
/// its response is routed back.
#[tokio::test]
async fn the_client_is_asked_and_its_answer_is_correlated() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut listening = client.listen().await;
    let mut stream = client.stream(1, "question").await;
    let question = stream.event().await.unwrap().json();
    assert_eq!(question["method"], "roots/list");
    let answer = response(question["id"].as_i64().unwrap(), &json!({"roots": [{"uri": "file:///a"}]}));
    let reply = site.post(&client.body(&answer)).await;
    assert_eq!((reply.status, reply.text().as_str()), (202, ""));
    let text = stream.event().await.unwrap().json()["result"]["content"][0]["text"].clone();
    assert_eq!(text, "1 roots");
    let aside = async { client.call(2, "question aside").await };
    let answering = async {
        let question = listening.event().await.unwrap().json();
        site.post(&client.body(&response(question["id"].as_i64().unwrap(), &json!({"roots": []})))).await;
    };
    let (reply, ()) = tokio::join!(aside, answering);
    assert_eq!(reply.json()["result"]["content"][0]["text"], "0 roots");
    // A response to no request, and an error without an id, are ignored.
    for odd in [response(99, &json!({})), json!({"jsonrpc": "2.0", "error": {"code": 1, "message": "x"}})] {
        assert_eq!(site.post(&client.body(&odd)).await.status, 202);
    }
}

/// HTTPL-11, HTTPL-17: a request to a client that cannot receive it fails at once.
#[tokio::test]
async fn a_request_that_cannot_reach_the_client_fails_at_once() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let reply = client.call(1, "question aside").await;
    let text = reply.json()["result"]["content"][0]["text"].to_string();
    assert!(text.contains("roots/list"), "{text}");
    let json_only = Site::with(|builder| builder.responses(Responses::JsonOnly)).await;
    let client = Client::open(&json_only).await;
    let reply = client.call(1, "question").await;
    assert!(reply.json()["result"]["content"][0]["text"].to_string().contains("roots/list"));
    let reply = client.call(2, "tell").await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    assert_eq!(reply.json()["result"]["content"][0]["text"], "done");
}

/// HTTPL-15: the standalone stream has one reader at a time.
#[tokio::test]
async fn a_second_standalone_stream_is_refused() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let first = client.listen().await;
    let reply = site.post(&client.get()).await;
    assert_eq!((reply.status, reply.code()), (409, -32600));
    let text = "Conflict: Only one SSE stream is allowed per session";
    assert_eq!(reply.json()["error"]["message"], text);
    drop(first);
    loop {
        let mut wire = site.connect().await;
        wire.send(&client.get().bytes(site.address)).await;
        if wire.head().await.unwrap().status == 200 {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// HTTPL-14 as in design item 2, robustness H86: an id in flight is rejected, and the first request keeps its response.
/// An id of another type is another id.
#[tokio::test]
async fn an_id_in_flight_is_refused_and_the_first_keeps_its_answer() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut first = site.connect().await;
    first.send(&client.tool(1, "go").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 1).await;
    let reply = client.call(1, "echo").await;
    assert_eq!((reply.status, reply.code(), &reply.json()["id"]), (409, -32600, &json!(1)));
    assert_eq!(client.call("1", "echo").await.status, 200);
    site.stage.go.notify_one();
    assert_eq!(first.reply().await.json()["result"]["content"][0]["text"], "done");
    assert_eq!(client.call(1, "echo").await.status, 200, "and the id is free again");
}

/// HTTPL-13: a cancelled request ends its stream with -32800, and its handler is dropped.
#[tokio::test]
async fn a_cancelled_request_ends_its_stream() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut stream = client.stream(1, "tell then wait").await;
    stream.event().await.unwrap();
    let reply = client.tell("notifications/cancelled", &json!({"requestId": 1})).await;
    assert_eq!(reply.status, 202);
    let last = stream.event().await.unwrap().json();
    assert_eq!(last["error"], json!({"code": -32800, "message": "Request cancelled"}));
    assert_eq!(last["id"], 1);
    assert_eq!(stream.event().await, None);
    site.stage.until(&site.stage.ended, 1).await;
    let mut waiting = site.connect().await;
    waiting.send(&client.tool(2, "wait").bytes(site.address)).await;
    site.stage.until(&site.stage.started, 2).await;
    client.tell("notifications/cancelled", &json!({"requestId": "2"})).await;
    assert_eq!(waiting.reply().await.code(), -32800);
}

/// Sessions do not reach each other: neither by cancelling nor by answering.
#[tokio::test]
async fn sessions_do_not_reach_each_other() {
    let site = Site::new().await;
    let (one, two) = (Client::open(&site).await, Client::open(&site).await);
    let mut stream = one.stream(1, "question").await;
    let question = stream.event().await.unwrap().json();
    two.tell("notifications/cancelled", &json!({"requestId": 1})).await;
    let answer = response(question["id"].as_i64().unwrap(), &json!({"roots": []}));
    assert_eq!(site.post(&two.body(&answer)).await.status, 202);
    site.post(
        &one.body(&response(question["id"].as_i64().unwrap(), &json!({"roots": [{"uri": "file:///a"}]}))),
    )
    .await;
    assert_eq!(stream.event().await.unwrap().json()["result"]["content"][0]["text"], "1 roots");
}

/// HTTPL-10: a client that leaves has not cancelled anything.
#[tokio::test]
async fn leaving_does_not_cancel() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    for (count, name) in [(1, "go"), (2, "tell then wait")] {
        let mut wire = site.connect().await;
        wire.send(&client.tool(count, name).bytes(site.address)).await;
        site.stage.until(&site.stage.started, usize::try_from(count).unwrap()).await;
        drop(wire);
        // Its handler still runs, and its id is in flight.
        let reply = client.call(count, "echo").await;
        assert_eq!(reply.status, 409);
        site.stage.go.notify_one();
        site.stage.until(&site.stage.ended, usize::try_from(count).unwrap()).await;
    }
}

/// A handler that only sends notifications, to a client that has gone, can still be cancelled.
#[tokio::test]
async fn a_handler_that_sends_without_a_reader_can_be_cancelled() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    drop(client.stream(1, "tell for ever").await);
    site.stage.until(&site.stage.sent, 1000).await;
    client.tell("notifications/cancelled", &json!({"requestId": 1})).await;
    site.stage.until(&site.stage.ended, 1).await;
}

/// HTTPL-24: an unread stream does not delay other requests.
#[tokio::test]
async fn a_slow_reader_does_not_block_other_requests() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let unread = client.stream(1, "flood").await;
    for id in 2..20 {
        assert_eq!(client.call(id, "echo").await.status, 200);
    }
    let mut listening = client.listen().await;
    client.call(20, "announce").await;
    assert!(listening.event().await.is_some());
    drop(unread);
}

/// P-HTTP-24: any number of concurrent streams.
#[tokio::test]
async fn streams_of_one_session_are_independent() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let mut streams = Vec::new();
    for id in 0..20 {
        let mut stream = client.stream(id, "tell then wait").await;
        stream.event().await.unwrap();
        streams.push(stream);
    }
    site.stage.go.notify_waiters();
    for (id, stream) in streams.iter_mut().enumerate().rev() {
        stream.event().await.unwrap();
        assert_eq!(stream.event().await.unwrap().json()["id"], json!(id));
    }
}

fn echo(session: &str) -> Post {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}});
    Post::body(body.to_string()).header("mcp-session-id", session)
}

/// MGR-07, P-AUS-13, P-LEG-25: a session belongs to its principal. Other principals do not find it.
#[tokio::test]
async fn a_session_belongs_to_its_principal() {
    let (service, _) = mounted(|builder| builder);
    let principal = |client: &str, subject: Option<&str>| {
        let mut principal = Principal::new(client);
        principal.subject = subject.map(Into::into);
        Some(Arc::new(principal))
    };
    let own = principal("a", Some("x"));
    let session = open(&service, own.as_ref()).await;
    let mut refreshed = Principal::new("a");
    refreshed.subject = Some("x".into());
    refreshed.scopes = vec!["more".into()];
    for same in [own.clone(), Some(Arc::new(refreshed))] {
        assert_eq!(ask(&service, &echo(&session), same.as_ref()).await.status(), StatusCode::OK);
    }
    for other in [None, principal("a", None), principal("a", Some("y")), principal("b", Some("x"))] {
        for method in ["POST", "GET", "DELETE"] {
            let reply = ask(&service, &echo(&session).method(method), other.as_ref()).await;
            assert_eq!(reply.status(), StatusCode::NOT_FOUND, "{method} {other:?}");
        }
    }
    let anonymous = open(&service, None).await;
    assert_eq!(ask(&service, &echo(&anonymous), own.as_ref()).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(ask(&service, &echo(&anonymous), None).await.status(), StatusCode::OK);
}

/// P-AUS-15: the standalone stream ends with the token it was opened with; the session does not.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_its_token() {
    let (service, _) = mounted(|builder| builder);
    let mut principal = Principal::new("a");
    principal.expires_at = Some(std::time::SystemTime::now() + Duration::from_secs(100));
    let principal = Some(Arc::new(principal));
    let session = open(&service, principal.as_ref()).await;
    let mut listen = echo(&session).method("GET");
    listen.body.clear();
    let start = tokio::time::Instant::now();
    let mut body = ask(&service, &listen, principal.as_ref()).await.into_body();
    let next = |body: &mut duplexer_http::ResponseBody, cx: &mut std::task::Context<'_>| {
        http_body::Body::poll_frame(std::pin::Pin::new(body), cx)
    };
    while std::future::poll_fn(|cx| next(&mut body, cx)).await.is_some() {}
    assert!((90..=101).contains(&start.elapsed().as_secs()), "{:?}", start.elapsed());
    let renewed = Some(Arc::new(Principal::new("a")));
    assert_eq!(ask(&service, &echo(&session), renewed.as_ref()).await.status(), StatusCode::OK);
}

/// HTTPL-23: the idle time counts from the end of the last exchange; a running call and an open stream are exchanges.
#[tokio::test(start_paused = true)]
async fn an_idle_session_ends() {
    let minute = Duration::from_secs(60);
    let almost = Duration::from_secs(59);
    let (service, stage) = mounted(|builder| builder.session_idle_timeout(minute));
    let session = open(&service, None).await;
    let status = async |session: &str| ask(&service, &echo(session), None).await.status();
    tokio::time::sleep(almost).await;
    assert_eq!(status(&session).await, StatusCode::OK);
    tokio::time::sleep(almost).await;
    assert_eq!(status(&session).await, StatusCode::OK, "it counts anew");
    let mut listen = echo(&session).method("GET");
    listen.body.clear();
    let stream = ask(&service, &listen, None).await;
    tokio::time::sleep(minute / 2).await;
    drop(stream);
    tokio::time::sleep(almost).await;
    assert_eq!(status(&session).await, StatusCode::OK, "an open stream is no idleness");
    let body = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "go"}});
    let call = Post::body(body.to_string()).header("mcp-session-id", &session);
    // Its response becomes a stream, from which the client disconnects.
    drop(ask(&service, &call, None).await);
    tokio::time::sleep(minute * 4).await;
    assert_eq!(status(&session).await, StatusCode::OK, "a running call is no idleness");
    stage.go.notify_one();
    tokio::time::sleep(minute + Duration::from_secs(1)).await;
    assert_eq!(status(&session).await, StatusCode::NOT_FOUND);
    assert_eq!(ask(&service, &Client::handshake("2025-11-25"), None).await.status(), StatusCode::OK);
}

/// HTTPL-23, MGR-08: an abandoned session is removed without a request: its permit is returned, and its hooks run.
#[tokio::test(start_paused = true)]
async fn abandoned_sessions_make_room() {
    let minute = Duration::from_secs(60);
    let (service, stage) = mounted(|builder| builder.session_idle_timeout(minute).max_sessions(1));
    let session = open(&service, None).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "hook"}});
    ask(&service, &Post::body(body.to_string()).header("mcp-session-id", &session), None).await;
    let refused = ask(&service, &Client::handshake("2025-11-25"), None).await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    tokio::time::sleep(minute * 2).await;
    assert_eq!(stage.closed.load(Ordering::SeqCst), 1);
    open(&service, None).await;
}

/// A session without an idle timeout lives as long as its process.
#[tokio::test(start_paused = true)]
async fn a_session_may_live_for_ever() {
    let (service, _) = mounted(|builder| builder.session_idle_timeout(None));
    let session = open(&service, None).await;
    tokio::time::sleep(Duration::from_secs(1_000_000)).await;
    assert_eq!(ask(&service, &echo(&session), None).await.status(), StatusCode::OK);
}

/// MGR-10: settings are checked when the service is built.
#[test]
fn settings_are_checked() {
    let check = |configure: fn(StreamableHttpBuilder) -> StreamableHttpBuilder, text: &str| {
        let built = configure(StreamableHttp::builder(server(&Arc::default()))).build();
        assert_eq!(built.unwrap_err().to_string(), text);
    };
    check(|builder| builder.max_sessions(0), "the number of sessions must be at least 1");
    check(
        |builder| builder.session_idle_timeout(Duration::ZERO),
        "the idle time of sessions must be longer than zero",
    );
    check(|builder| builder.max_body(0), "the largest body must be at least 1");
}

/// Robustness H120 with sessions: the shutdown answers requests in flight, ends streams, and runs the hooks before the teardown.
#[tokio::test]
async fn the_end_of_the_service_ends_its_sessions() {
    let mut site = Site::with(|builder| builder.shutdown_grace(Duration::from_millis(300))).await;
    let stage = Arc::clone(&site.stage);
    let (mut listening, mut stuck) = {
        let client = Client::open(&site).await;
        client.call(1, "hook").await;
        let listening = client.listen().await;
        let mut stuck = client.stream(2, "tell then wait").await;
        stuck.event().await.unwrap();
        (listening, stuck)
    };
    assert!(site.finish().await < Duration::from_secs(5));
    assert_eq!(listening.chunk().await, None);
    assert_eq!(stuck.event().await.unwrap().json()["error"]["code"], -32000);
    assert_eq!((stage.closed.load(Ordering::SeqCst), stage.torn_down.load(Ordering::SeqCst)), (1, 1));
}

/// MGR-02 (deviation), MGR-11: one service, one lifespan, whatever the requests.
#[tokio::test]
async fn sessions_share_one_lifespan() {
    let mut site = Site::new().await;
    for _ in 0..3 {
        Client::open(&site).await.call(1, "echo").await;
    }
    let stage = Arc::clone(&site.stage);
    site.finish().await;
    assert_eq!(stage.torn_down.load(Ordering::SeqCst), 1);
}

/// HTTPL-12: a handler that panics is answered with an error, and the session goes on.
#[tokio::test]
async fn a_panic_is_an_answer() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    for (id, name) in [(1, "panic"), (2, "panic later")] {
        let reply = client.call(id, name).await;
        assert_eq!((reply.status, reply.code()), (200, -32603));
        assert!(!reply.text().contains("badly"));
    }
    assert_eq!(client.call(3, "echo").await.status, 200);
}

/// P-ERA-2: one endpoint serves both eras at once, and neither disturbs the other.
#[tokio::test]
async fn both_eras_share_an_endpoint() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    let envelope = Post::tool("echo").header("mcp-session-id", &client.id);
    let (one, two) = tokio::join!(site.post(&envelope), client.call(1, "echo"));
    assert_eq!(one.json()["result"]["resultType"], "complete");
    assert_eq!(one.header("mcp-session-id"), None);
    assert_eq!(two.json()["result"]["resultType"], Value::Null);
    let get = client.get().without("mcp-protocol-version").header("mcp-protocol-version", "2026-07-28");
    let reply = site.post(&get).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
}

/// MGR-08, robustness 3.1: however sessions end, nothing of them is left, with or without open streams.
#[tokio::test]
async fn ended_sessions_leave_no_state_behind() {
    const SESSIONS: usize = 2000;
    let (service, stage) = mounted(|builder| builder.event_store(duplexer_http::MemoryEventStore::new()));
    for number in 0..SESSIONS {
        let session = open(&service, None).await;
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "keep"}});
        let keep = Post::body(body.to_string()).header("mcp-session-id", &session);
        let answer = ask(&service, &keep, None).await;
        assert_eq!(answer.status(), StatusCode::OK);
        // Some clients read what they are sent, some leave while a request is in flight.
        let mut left = None;
        if number % 2 == 0 {
            drop(answer);
            let body = body.to_string().replace("keep", "wait");
            let wait = Post::body(body.replace("\"id\":1", "\"id\":2")).header("mcp-session-id", &session);
            left = Some(ask(&service, &wait, None).await);
        }
        let mut end = echo(&session).method("DELETE");
        end.body.clear();
        stage.until(&stage.kept, number + 1).await;
        assert_eq!(ask(&service, &end, None).await.status(), StatusCode::OK);
        drop(left);
    }
    stage.until(&stage.forgotten, SESSIONS).await;
    assert_eq!(stage.kept.load(Ordering::SeqCst), SESSIONS);
}

/// Hardening, other defects 5: a list change waits for the standalone stream, once, also after a reader has left.
#[tokio::test]
async fn a_list_change_waits_for_the_standalone_stream() {
    let site = Site::new().await;
    let client = Client::open(&site).await;
    for id in 1..4 {
        client.call(id, "announce").await;
    }
    let mut listening = client.listen().await;
    assert_eq!(listening.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
    // The next event is a question: the changes were one event.
    let answering = async {
        let question = listening.event().await.unwrap().json();
        assert_eq!(question["method"], "roots/list");
        site.post(&client.body(&response(question["id"].as_i64().unwrap(), &json!({"roots": []})))).await;
    };
    tokio::join!(client.call(4, "question aside"), answering);
    drop(listening);
    let mut again = loop {
        let mut wire = site.connect().await;
        wire.send(&client.get().bytes(site.address)).await;
        // Until the server has noticed that the first reader has left.
        if wire.head().await.unwrap().status == 200 {
            break wire;
        }
    };
    client.call(5, "announce").await;
    assert_eq!(again.event().await.unwrap().json()["method"], "notifications/tools/list_changed");
}
