//! Attacks on sessions: guessed, abandoned and foreign session ids, and too many sessions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::site::{Post, Reply, Site, Socket};
use super::{echo, request, reveals_no_internals};
use crate::HANDSHAKE;
use crate::wire::initialize;

/// A session, from the client's side.
pub struct Session<'a> {
    site: &'a Site,
    id: String,
}

pub fn opening() -> Post {
    let able = json!({ "elicitation": {} });
    let frame = request(HANDSHAKE, 0, "initialize", initialize(HANDSHAKE, able));
    Post::raw(HANDSHAKE, frame.to_string())
}

fn notification(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}

impl<'a> Session<'a> {
    pub async fn open(site: &'a Site) -> Self {
        let reply = site.send(&opening()).await;
        let session = Self { site, id: reply.headers["mcp-session-id"].clone() };
        let reply = session.send(&notification("notifications/initialized", &json!({}))).await;
        assert_eq!(reply.status, 202);
        session
    }

    pub fn post(&self, frame: &Value) -> Post {
        Post::raw(HANDSHAKE, frame.to_string()).header("Mcp-Session-Id", &self.id)
    }

    pub async fn send(&self, frame: &Value) -> Reply {
        self.site.send(&self.post(frame)).await
    }

    pub async fn echo(&self, id: i64) -> Reply {
        self.send(&echo(HANDSHAKE, id, "honest")).await
    }

    /// Starts a call and returns its stream.
    async fn call(&self, tool: &str, until: &str) -> (Socket, String) {
        let params =
            json!({ "name": tool, "arguments": { "text": "hello" }, "_meta": { "progressToken": 1 } });
        let mut socket = self.site.connect().await;
        socket.send(&self.post(&request(HANDSHAKE, 1, "tools/call", params)).bytes()).await;
        let mut begun = socket.until(until.as_bytes()).await.expect("a first message");
        begun.extend(socket.until(b"\r\n\r\n").await.expect("the rest of the message"));
        (socket, String::from_utf8(begun).unwrap())
    }
}

/// P-LEG-7, section 4, session id quality: long enough, never repeated, and with entropy in every bit.
#[tokio::test]
async fn session_ids_cannot_be_guessed() {
    const OPENED: usize = 1000;
    let site = Site::with_sessions().await;
    let mut ids = BTreeSet::new();
    let mut socket = site.connect().await;
    for _ in 0..OPENED {
        socket.send(&opening().bytes()).await;
        ids.insert(socket.reply().await.unwrap().headers["mcp-session-id"].clone());
    }
    assert_eq!(ids.len(), OPENED);
    let bits: Vec<_> = ids.iter().map(|id| u128::from_str_radix(id, 16).unwrap()).collect();
    for bit in 0..128 {
        let set = bits.iter().filter(|id| *id >> bit & 1 == 1).count();
        assert!((OPENED / 3..OPENED * 2 / 3).contains(&set), "bit {bit} is set in {set}");
    }
}

/// R-H90, R-H94: a request without a session id, or with an unknown one, is rejected and gets no session.
#[tokio::test]
async fn a_rejected_request_gets_no_session() {
    let site = Site::with_sessions().await;
    let session = Session::open(&site).await;
    for method in ["POST", "GET", "DELETE"] {
        let post = session.post(&echo(HANDSHAKE, 1, "x")).method(method).without("mcp-session-id");
        let unknown = post.clone().header("Mcp-Session-Id", &"0".repeat(32));
        for (post, status) in [(post, 400), (unknown, 404)] {
            let reply = site.send(&post).await;
            assert_eq!((reply.status, reply.code()), (status, -32600), "{method}");
            assert_eq!(reply.headers.get("mcp-session-id"), None, "{method}");
        }
    }
    assert_eq!(session.echo(2).await.text_of_tool(), "honest");
}

/// Section 4, cross-session cancel, R-H86: a cancellation from another session has no effect; a duplicate id in flight
/// is rejected and the first request keeps its response.
#[tokio::test]
async fn a_session_cannot_cancel_for_another() {
    let site = Site::with_sessions().await;
    let (own, foreign) = (Session::open(&site).await, Session::open(&site).await);
    let (mut stream, _) = own.call("wait", "notifications/progress").await;
    for id in [json!(1), json!("1")] {
        let cancel = notification("notifications/cancelled", &json!({ "requestId": id }));
        assert_eq!(foreign.send(&cancel).await.status, 202);
    }
    let again = own.echo(1).await;
    assert_eq!((again.status, again.code()), (409, -32600), "it is still in flight");
    let cancel = notification("notifications/cancelled", &json!({ "requestId": 1 }));
    assert_eq!(own.send(&cancel).await.status, 202);
    stream.until(b"-32800").await.expect("the end of it");
    assert_eq!(own.echo(1).await.text_of_tool(), "honest", "and the id is free again");
}

/// Section 4, isolation: a session cannot answer a server request of another session.
#[tokio::test]
async fn a_session_cannot_answer_for_another() {
    let site = Site::with_sessions().await;
    let (own, foreign) = (Session::open(&site).await, Session::open(&site).await);
    let (mut stream, asked) = own.call("ask", "elicitation/create").await;
    let question = asked.lines().find_map(|line| line.strip_prefix("data: {")).expect("a question");
    let question: Value = serde_json::from_str(&format!("{{{question}")).unwrap();
    let answer = |name: &str| {
        let result = json!({ "action": "accept", "content": { "text": name } });
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
    };
    assert_eq!(foreign.send(&answer("Eve")).await.status, 202);
    assert_eq!(own.send(&answer("Ada")).await.status, 202);
    stream.until(b"hello Ada").await.expect("the response of the session that was asked");
}

/// R-H97, section 1.3, replay isolation: events are replayed only to their own session; any other event id replays nothing.
#[tokio::test]
async fn events_are_replayed_to_their_own_session_only() {
    let site = Site::with_sessions().await;
    let (own, foreign) = (Session::open(&site).await, Session::open(&site).await);
    let body = own.echo(1).await.body;
    let first = body.lines().find_map(|line| line.strip_prefix("id: ")).expect("an event's id");
    let read = async |session: &Session<'_>, last: &str| {
        let get = session.post(&Value::Null).method("GET").header("Last-Event-ID", last);
        let reply = site.send(&Post { body: String::new(), ..get }).await;
        assert_eq!(reply.status, 200, "{last}");
        reply.body
    };
    assert!(read(&own, first).await.contains("honest"));
    let (stream, count) = first.split_once('-').unwrap();
    let forged =
        [first, stream, count, "0", "-1", "../../etc/passwd", "%00", "' OR 1=1 --", &"9".repeat(4000)];
    for last in forged {
        let replayed = read(&foreign, last).await;
        assert!(!replayed.contains("data: {"), "{last}: {replayed}");
        reveals_no_internals(&replayed);
    }
    site.send(&own.post(&Value::Null).method("DELETE")).await;
    let gone = own.post(&Value::Null).method("GET").header("Last-Event-ID", first);
    assert_eq!(site.send(&gone).await.status, 404, "a terminated session is not resumed indefinitely");
}

/// Section 1: no input within a session ends it.
#[tokio::test]
async fn garbage_does_not_end_a_session() {
    let site = Site::with_sessions().await;
    let session = Session::open(&site).await;
    for body in ["", "{", "null", "[]", "[[]]", r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#, "\u{0}", "5"] {
        let reply = site.send(&Post { body: body.to_owned(), ..session.post(&Value::Null) }).await;
        assert_eq!(reply.status, 400, "{body:?}");
        reveals_no_internals(&reply.body);
    }
    let unsolicited = json!({ "jsonrpc": "2.0", "id": 77, "result": {} });
    assert_eq!(session.send(&unsolicited).await.status, 202);
    let panics = request(HANDSHAKE, 3, "tools/call", json!({ "name": "panic" }));
    reveals_no_internals(&session.send(&panics).await.body);
    assert_eq!(session.echo(4).await.text_of_tool(), "honest");
}

/// Section 3.1, churn in a short form: closed sessions leave no memory behind, open sessions still serve.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn sessions_that_come_and_go_leave_nothing_behind() {
    let site = Site::with_sessions().await;
    let left_open = Session::open(&site).await;
    let mut socket = site.connect().await;
    let mut churn = async |rounds: usize| {
        for _ in 0..rounds {
            socket.send(&opening().bytes()).await;
            let id = socket.reply().await.unwrap().headers["mcp-session-id"].clone();
            let session = Session { site: &site, id };
            for post in
                [session.post(&echo(HANDSHAKE, 1, "honest")), session.post(&Value::Null).method("DELETE")]
            {
                socket.send(&post.bytes()).await;
                assert_eq!(socket.reply().await.unwrap().status, 200);
            }
        }
    };
    churn(500).await;
    let before = super::load::peak(site.child.id().unwrap());
    churn(2000).await;
    let grown = super::load::peak(site.child.id().unwrap()) - before;
    assert!(grown < 4 << 20, "{grown} bytes of 2000 sessions");
    assert_eq!(left_open.echo(1).await.text_of_tool(), "honest");
}
