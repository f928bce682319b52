//! Sessions of the handshake era: their start, their messages and their end.

use std::future::poll_fn;
use std::sync::{Arc, Mutex};

use duplexer_client::{ConnectError, ErrorKind, Negotiation};
use duplexer_core::transport::{Frames, Incoming, Transport};
use duplexer_http_client::HttpTransport;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods::RootsListChanged;
use duplexer_types::roots::ListRootsResult;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::script::{Asked, NEWEST, Piped, Script, calling, options};

/// P-LEG-8, P-LEG-19, CHTTP-03, CLT-03, CLT-04: from `notifications/initialized` to the end.
#[tokio::test]
async fn every_message_of_a_session_names_it() {
    for (version, header) in
        [(NEWEST, Some(NEWEST)), ("2025-06-18", Some("2025-06-18")), ("2025-03-26", None)]
    {
        let mut script = Script::start().await;
        let check = |asked: &Asked| {
            assert_eq!(asked.belongs_to(), (Some("s-1"), header), "{asked:?}");
            assert_eq!(asked.header("x-own"), Some("1"), "{asked:?}");
        };
        let options = options()
            .negotiation(Negotiation::Handshake)
            .on_roots(|| async { Ok(ListRootsResult::new(vec![])) });
        let (client, stream) = script
            .connecting(options, async |script| {
                let opening = script.posted("initialize").await;
                assert_eq!(opening.belongs_to(), (None, None));
                assert_eq!(opening.body["params"]["protocolVersion"], NEWEST);
                opening.open(version, Some("s-1"));
                let opened = script.posted("notifications/initialized").await;
                check(&opened);
                opened.status(202);
                script.plain(Method::GET).await
            })
            .await;
        let client = client.unwrap();
        check(&stream);
        assert_eq!(stream.header("accept"), Some("text/event-stream"));
        assert_eq!(stream.header("last-event-id"), None);
        let stream = stream.events();
        client.notify::<RootsListChanged>(EmptyParams::new()).await.unwrap();
        let changed = script.posted("notifications/roots/list_changed").await;
        check(&changed);
        changed.status(202);
        stream.message(&json!({"jsonrpc": "2.0", "id": 7, "method": "roots/list"})).await;
        let answer = script.next().await;
        check(&answer);
        assert_eq!(answer.body, json!({"jsonrpc": "2.0", "id": 7, "result": {"roots": []}}));
        answer.status(202);
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            check(&asked);
            assert_eq!(asked.header("accept"), Some("application/json, text/event-stream"));
            assert_eq!((asked.header("mcp-method"), asked.header("mcp-name")), (None, None));
            asked.say("hello");
        })
        .await;
        assert_eq!(result.as_deref(), Ok("hello"));
        let (closed, ()) = tokio::join!(client.close(), async {
            let end = script.plain(Method::DELETE).await;
            check(&end);
            end.status(200);
        });
        closed.unwrap();
        stream.left().await;
    }
}

/// POSTs can overtake each other, and servers reject requests of a session that is not open.
#[tokio::test]
async fn the_first_request_does_not_overtake_the_opening() {
    let mut script = Script::start().await;
    let (client, opened) = script
        .connecting(options().negotiation(Negotiation::Handshake), async |script| {
            script.posted("initialize").await.open(NEWEST, Some("s-1"));
            script.posted("notifications/initialized").await
        })
        .await;
    let client = client.unwrap();
    let mut calls = JoinSet::new();
    calls.spawn(async move { client.call_tool("x", ()).await });
    // A request that did not wait would have arrived by now.
    let fence = reqwest::Client::new().delete(&script.url).send();
    let (fence, ()) = tokio::join!(fence, async { script.plain(Method::DELETE).await.status(200) });
    fence.unwrap();
    assert!(script.unexpected().is_none());
    opened.status(202);
    for _ in 0..2 {
        let next = script.next().await;
        if next.method == Method::GET {
            next.status(405);
        } else {
            next.say("hello");
        }
    }
    calls.join_next().await.unwrap().unwrap().unwrap();
}

/// CLT-02, P-ERA-6: after any rejection of the probe the same transport serves the other era.
#[tokio::test]
async fn a_refused_probe_is_followed_by_a_handshake() {
    let error = |code: i64| {
        let error = json!({"jsonrpc": "2.0", "error": {"code": code, "message": "no"}});
        (400, "application/json", error.to_string())
    };
    let refusals = [
        (400, "text/plain", "Bad Request: No valid session ID provided".to_owned()),
        (400, "text/plain", String::new()),
        (404, "text/plain", String::new()),
        (405, "text/plain", String::new()),
        error(-32000),
        error(-32600),
        error(-32601),
        (
            200,
            "application/json",
            json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "m"}}).to_string(),
        ),
    ];
    for (status, kind, body) in refusals {
        let mut script = Script::start().await;
        let (client, ()) = script
            .connecting(options(), async |script| {
                let probe = script.posted("server/discover").await;
                assert_eq!(probe.belongs_to(), (None, Some("2026-07-28")));
                probe.reply(status, &[("content-type", kind)], Piped::whole(&body));
                script.shake_hands(NEWEST).await.status(405);
            })
            .await;
        let client = client.unwrap();
        assert_eq!(client.protocol_version().as_str(), NEWEST, "{status} {body}");
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            assert_eq!(asked.belongs_to(), (Some("s-1"), Some(NEWEST)));
            asked.say("hello");
        })
        .await;
        assert_eq!(result.as_deref(), Ok("hello"), "{status} {body}");
    }
}

/// D-3, F-10, CLT-02: a server that was not reached, or refuses credentials or everything, is asked once. The error ends in the
/// outermost fact.
#[tokio::test]
async fn one_failing_connect_is_one_attempt() {
    let challenge =
        [("www-authenticate", "Basic realm=\"x\""), ("www-authenticate", "Bearer error=\"invalid_token\"")];
    let cases = [
        (401, &challenge[..], "no", ErrorKind::Unauthorized, "401 Unauthorized: invalid_token"),
        (403, &[], "not you", ErrorKind::Forbidden, "403 Forbidden: not you"),
        (500, &[], "", ErrorKind::Http, "500 Internal Server Error"),
        (503, &[("retry-after", "0")], "", ErrorKind::Http, "503 Service Unavailable"),
        (302, &[("location", "http://127.0.0.1:1/")], "", ErrorKind::Http, "302 Found"),
        (
            200,
            &[("content-type", "text/html")],
            "<html>",
            ErrorKind::Protocol,
            "the server's response is not valid: unexpected content type 'text/html'",
        ),
    ];
    for (status, headers, body, kind, text) in cases {
        let mut script = Script::start().await;
        let (client, ()) = script
            .connecting(options(), async |script| {
                script.posted("server/discover").await.reply(status, headers, Piped::whole(body));
            })
            .await;
        let error = client.unwrap_err();
        assert_eq!((error.kind(), error.to_string()), (kind, format!("could not open the session: {text}")));
        let refusal = error.refusal();
        assert_eq!(refusal.map(|refusal| refusal.status), (status != 200).then_some(status));
        let challenges = refusal.map_or(0, |refusal| refusal.challenges.len());
        assert_eq!(challenges, if status == 401 { 2 } else { 0 });
        assert!(script.unexpected().is_none(), "{status} was asked twice");
    }
}

/// SCL-94: a request that the server had no capacity for is sent again when the server says, a few times.
#[tokio::test]
async fn a_busy_server_is_asked_again_when_it_says() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let busy = |asked: Asked| asked.reply(503, &[("retry-after", "0")], Piped::whole("later"));
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        busy(asked);
        script.posted("tools/call").await.say("now");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("now"));
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        busy(asked);
        for _ in 0..3 {
            busy(script.posted("tools/call").await);
        }
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Http, "503 Service Unavailable: later".to_owned())));
    // Without a time, the caller decides.
    let (result, ()) = calling(&client, &mut script, async |_, asked| asked.status(503)).await;
    assert_eq!(result, Err((ErrorKind::Http, "503 Service Unavailable".to_owned())));
    assert!(script.unexpected().is_none());
}

/// CHTTP-01: the cancellation is sent, and later messages on that stream are still read.
#[tokio::test]
async fn giving_up_a_call_of_a_session_tells_the_server() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let call = client.call_tool("x", ()).into_future();
    let asked = tokio::select! {
        _ = call => panic!("it has no answer"),
        asked = script.posted("tools/call") => asked,
    };
    let cancelled = script.posted("notifications/cancelled").await;
    assert_eq!(cancelled.body["params"]["requestId"], asked.body["id"]);
    assert_eq!(cancelled.belongs_to(), (Some("s-1"), Some(NEWEST)));
    cancelled.status(202);
    let id = asked.body["id"].clone();
    let stream = asked.events();
    stream.message(&json!({"jsonrpc": "2.0", "id": "p", "method": "ping"})).await;
    let pong = script.next().await;
    assert_eq!(pong.body, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    pong.status(202);
    let over = json!({"code": -32800, "message": "cancelled"});
    stream.message(&json!({"jsonrpc": "2.0", "id": id, "error": over})).await;
    stream.left().await;
    let (result, ()) = calling(&client, &mut script, async |_, asked| {
        asked.say("next");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("next"));
}

/// CHTTP-03, P-LEG-12: the client sends a DELETE, whatever the server answers.
#[tokio::test]
async fn closing_ends_the_session_at_the_server() {
    for answer in [Some(200), Some(204), Some(405), Some(404), Some(500), None] {
        let mut script = Script::start().await;
        let client = script.session(options()).await;
        let (closed, end) = tokio::join!(client.close(), async {
            let end = script.plain(Method::DELETE).await;
            match answer {
                Some(status) => {
                    end.status(status);
                    None
                }
                // No response.
                None => Some(end),
            }
        });
        closed.unwrap();
        drop(end);
        assert!(script.unexpected().is_none());
    }
}

/// CHTTP-03: without a session id no DELETE is sent.
#[tokio::test]
async fn without_a_session_id_nothing_is_ended() {
    let mut script = Script::start().await;
    let (client, ()) = script
        .connecting(options().negotiation(Negotiation::Handshake), async |script| {
            script.posted("initialize").await.open(NEWEST, None);
            let opened = script.posted("notifications/initialized").await;
            assert_eq!(opened.belongs_to(), (None, Some(NEWEST)));
            opened.status(202);
            script.plain(Method::GET).await.status(405);
        })
        .await;
    let client = client.unwrap();
    let (result, ()) = calling(&client, &mut script, async |_, asked| asked.status(404)).await;
    assert_eq!(result, Err((ErrorKind::Http, "404 Not Found".to_owned())));
    client.close().await.unwrap();
    assert!(script.unexpected().is_none());
}

/// CHTTP-03: the id is in the response headers, the revision in the result.
#[tokio::test]
async fn the_answer_to_the_opening_may_come_late() {
    let mut script = Script::start().await;
    let (client, ()) = script
        .connecting(options().negotiation(Negotiation::Handshake), async |script| {
            let opening = script.posted("initialize").await;
            let answer = opening.welcome(NEWEST);
            let head = [("content-type", "text/event-stream"), ("mcp-session-id", "s-1")];
            opening.reply(200, &head, Piped::whole("id: 1\nretry: 1\ndata:\n\n"));
            let again = script.plain(Method::GET).await;
            assert_eq!(again.belongs_to(), (Some("s-1"), None));
            assert_eq!(again.header("last-event-id"), Some("1"));
            again.events().message(&answer).await;
            let opened = script.posted("notifications/initialized").await;
            assert_eq!(opened.belongs_to(), (Some("s-1"), Some(NEWEST)));
            opened.status(202);
            script.plain(Method::GET).await.status(405);
        })
        .await;
    assert_eq!(client.unwrap().protocol_version().as_str(), NEWEST);
}

/// All tasks end with the transport.
#[tokio::test]
async fn a_dropped_client_lets_go_of_its_streams() {
    let mut script = Script::start().await;
    let (client, stream) = script.session_in(options(), NEWEST).await;
    let stream = stream.events();
    let call = client.call_tool("x", ()).into_future();
    let asked = tokio::select! {
        _ = call => panic!("it has no answer"),
        asked = script.posted("tools/call") => asked,
    };
    let answer = asked.events();
    drop(client);
    stream.left().await;
    answer.left().await;
}

/// The transport works without a client: frames alone open and end a session.
#[tokio::test]
async fn frames_alone_open_a_session() {
    let mut script = Script::start().await;
    let (mut reader, mut writer) = HttpTransport::new(&script.url).unwrap().split();
    let mut send = async |frame: Value| {
        let mut frames = Frames::default();
        frames.push(frame.to_string().as_bytes(), None);
        poll_fn(|cx| writer.poll_write(cx, &mut frames)).await.unwrap();
    };
    send(json!({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": {}})).await;
    script.posted("initialize").await.open(NEWEST, Some("s-1"));
    let Some(Ok(Incoming::Message(answer))) = poll_fn(|cx| reader.poll_next(cx)).await else { panic!() };
    assert!(answer.text.contains("protocolVersion"));
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    script.posted("notifications/initialized").await.status(202);
    script.plain(Method::GET).await.status(405);
    send(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    let asked = script.posted("tools/list").await;
    assert_eq!(asked.belongs_to(), (Some("s-1"), Some(NEWEST)));
    asked.say("hello");
    poll_fn(|cx| reader.poll_next(cx)).await.unwrap().unwrap();
    let (closed, ()) = tokio::join!(poll_fn(|cx| writer.poll_close(cx)), async {
        script.plain(Method::DELETE).await.status(200);
    });
    closed.unwrap();
    drop(writer);
    assert!(poll_fn(|cx| reader.poll_next(cx)).await.is_none());
}

/// CLT-02: an unreachable server fails in both eras.
#[tokio::test]
async fn a_server_that_is_not_there_is_said_not_to_be_there() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let client = options().connect(HttpTransport::new(&url).unwrap()).await;
    let Err(ConnectError::Call(error)) = client else { panic!("{client:?}") };
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.is_retryable());
    let text = error.to_string();
    assert!(text.starts_with("the server could not be reached: Connection refused"), "{text}");
}

/// D-11: the log has the cause of a failed request, and not the URL, which can hold secrets.
#[tokio::test]
async fn the_log_names_the_cause_of_a_failed_request() {
    let log = Arc::new(Mutex::new(Vec::new()));
    let _logged = tracing_log(&log);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp?key=secret", listener.local_addr().unwrap());
    drop(listener);
    options().connect(HttpTransport::new(&url).unwrap()).await.unwrap_err();
    let log = String::from_utf8(log.lock().unwrap().clone()).unwrap();
    assert!(log.contains("an HTTP request failed") && log.contains("Connection refused"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

/// Writes the log of this thread to `log` until it is dropped.
fn tracing_log(log: &Arc<Mutex<Vec<u8>>>) -> impl Sized + use<> {
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    let log = Arc::clone(log);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::DEBUG)
        .with_ansi(false)
        .with_writer(move || Lines(Arc::clone(&log)))
        .finish();
    // While there is only one subscriber, `tracing` takes the word of the thread that reaches an event first, which can be
    // that of another test. With two it asks both.
    let second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    (second, tracing::subscriber::set_default(subscriber))
}

/// P-LEG-7: an invalid id is not sent back.
#[tokio::test]
async fn a_session_id_that_is_not_visible_ascii_fails_the_opening() {
    for wrong in ["a b", "", "\u{e4}"] {
        let mut script = Script::start().await;
        let (client, ()) = script
            .connecting(options().negotiation(Negotiation::Handshake), async |script| {
                script.posted("initialize").await.open(NEWEST, Some(wrong));
            })
            .await;
        let Err(ConnectError::Call(error)) = client else { panic!("{wrong:?}: {client:?}") };
        assert_eq!(error.kind(), ErrorKind::Protocol);
        assert_eq!(
            error.to_string(),
            "the server's response is not valid: its session id is not visible ASCII"
        );
    }
}

/// CLT-03: the server does not have to keep the session.
#[tokio::test]
async fn a_session_in_an_unknown_revision_is_ended() {
    let mut script = Script::start().await;
    let (client, ()) = script
        .connecting(options().negotiation(Negotiation::Handshake), async |script| {
            script.posted("initialize").await.open("1999-01-01", Some("s-1"));
            let end = script.plain(Method::DELETE).await;
            assert_eq!(end.belongs_to(), (Some("s-1"), None));
            end.status(200);
        })
        .await;
    assert!(matches!(client, Err(ConnectError::UnsupportedVersion(version)) if version == "1999-01-01"));
}

/// P-HTTP-5: only the revision with batches accepts a batch as a response.
#[tokio::test]
async fn an_answer_may_come_in_a_batch_where_there_are_batches() {
    let received = |version: &'static str| async move {
        let (log, logged) = std::sync::mpsc::sync_channel(1);
        let mut script = Script::start().await;
        let options = options().on_log(move |message| log.send(message.data.to_string()).unwrap());
        let (client, stream) = script.session_in(options, version).await;
        stream.status(405);
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            let answer = asked.text_result("hello");
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "info", "data": 1}});
            asked.json(&Value::Array(vec![log, answer]));
        })
        .await;
        (result, logged.try_recv().ok())
    };
    assert_eq!(received("2025-03-26").await, (Ok("hello".to_owned()), Some("1".to_owned())));
    let text = "the server's response is not valid: it does not answer the request".to_owned();
    assert_eq!(received(NEWEST).await, (Err((ErrorKind::Protocol, text)), None));
}
