//! Streams of the handshake era: their messages and their resumption.

use std::sync::{Arc, Mutex};

use duplexer_client::{Client, ClientBuilder, ErrorKind, ServerNotification};
use duplexer_types::elicitation::ElicitResult;
use http::Method;
use serde_json::{Value, json};

use crate::script::{Asked, Events, NEWEST, Script, calling, options};

/// A client that records notifications and declines requests.
fn listener() -> (ClientBuilder, Arc<Mutex<Vec<String>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let (one, other) = (Arc::clone(&received), Arc::clone(&received));
    let options = options()
        .on_notification(move |notification| {
            one.lock().unwrap().push(match notification {
                ServerNotification::Log(log) => format!("log {}", log.data.as_str()),
                other => format!("{other:?}"),
            });
        })
        .on_elicitation(move |_| {
            other.lock().unwrap().push("asked".to_owned());
            async { Ok(ElicitResult::decline()) }
        });
    (options, received)
}

fn log(data: &str) -> Value {
    let params = json!({"level": "info", "data": data});
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
}

/// The server sends a request on `events`, and the client answers with a POST.
async fn ask(script: &mut Script, events: &Events, method: &str, params: Value) -> Value {
    let question = json!({"jsonrpc": "2.0", "id": "q", "method": method, "params": params});
    events.message(&question).await;
    let mut answer = script.next().await;
    assert_eq!((&answer.method, &answer.body["id"]), (&Method::POST, &json!("q")));
    assert_eq!(answer.belongs_to(), (Some("s-1"), Some(NEWEST)));
    let body = answer.body["result"].take();
    answer.status(202);
    body
}

fn question() -> Value {
    json!({"message": "who?", "requestedSchema": {"type": "object", "properties": {}}})
}

/// P-HTTP-5, P-LEG-6, CLT-11: all messages of a call arrive on its stream, in order, then its response.
#[tokio::test]
async fn a_server_asks_and_tells_on_the_stream_of_a_call() {
    let mut script = Script::start().await;
    let (options, received) = listener();
    let client = script.session(options).await;
    let steps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let call = client.call_tool("x", ());
    let call = call.on_progress(move |progress| seen.lock().unwrap().push(progress.progress)).into_future();
    let (called, ()) = tokio::join!(call, async {
        let asked = script.posted("tools/call").await;
        let (answer, token) =
            (asked.text_result("done"), asked.body["params"]["_meta"]["progressToken"].clone());
        let events = asked.events();
        for step in 1..=3 {
            let params = json!({"progressToken": token, "progress": step});
            let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
            events.message(&progress).await;
        }
        events.message(&log("one")).await.raw(": still here\n\n").await;
        events.raw("data: {\"nonsense\n\n").await;
        assert_eq!(ask(&mut script, &events, "ping", json!({})).await, json!({}));
        assert_eq!(
            ask(&mut script, &events, "elicitation/create", question()).await,
            json!({"action": "decline"})
        );
        let gone =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "q"}});
        events.message(&gone).await;
        events.message(&log("two")).await;
        events.message(&answer).await;
    });
    called.unwrap();
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(*received.lock().unwrap(), ["log \"one\"", "asked", "log \"two\""]);
}

/// CHTTP-03, P-LEG-14: messages without a request; a response on this stream is dropped.
#[tokio::test]
async fn a_server_asks_and_tells_on_its_own_stream() {
    let mut script = Script::start().await;
    let (options, received) = listener();
    let (client, stream) = script.session_in(options, NEWEST).await;
    let events = stream.events();
    events.raw("id: 1\ndata:\n\n").await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        events.message(&asked.text_result("on the wrong stream")).await;
        events.message(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})).await;
        let declined = ask(script, &events, "elicitation/create", question()).await;
        assert_eq!(declined, json!({"action": "decline"}));
        asked.say("on the right one");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("on the right one"));
    assert_eq!(*received.lock().unwrap(), ["ToolsListChanged", "asked"]);
}

/// Expects a GET that resumes a stream after `last`.
async fn resumed(script: &mut Script, last: &str) -> Asked {
    let again = script.plain(Method::GET).await;
    assert_eq!(again.header("last-event-id"), Some(last));
    assert_eq!(again.header("accept"), Some("text/event-stream"));
    assert_eq!(again.belongs_to(), (Some("s-1"), Some(NEWEST)));
    again
}

/// CHTTP-03, P-LEG-18: any number of resumptions, each after the last event.
#[tokio::test]
async fn a_stream_that_ends_without_its_answer_is_resumed() {
    let mut script = Script::start().await;
    let (options, received) = listener();
    let client = script.session(options).await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        let answer = asked.text_result("at last");
        let events = asked.events();
        events.raw("id: a-0\nretry: 1\ndata:\n\n").await;
        drop(events);
        // An orderly end without a new event is no failure.
        for _ in 0..3 {
            drop(resumed(script, "a-0").await.events());
        }
        let events = resumed(script, "a-0").await.events();
        events.raw(&format!("id: a-1\ndata: {}\n\n", log("one"))).await;
        // The client must have received the event before the connection breaks.
        assert_eq!(ask(script, &events, "ping", json!({})).await, json!({}));
        events.cut().await;
        let events = resumed(script, "a-1").await.events();
        events.raw(&format!("id: a-2\ndata: {answer}\n\n")).await;
        events.left().await;
    })
    .await;
    assert_eq!(result.as_deref(), Ok("at last"));
    assert_eq!(*received.lock().unwrap(), ["log \"one\""]);
}

/// A call whose stream ends after the first event; `again` serves the resumption.
async fn interrupted(
    client: &Client,
    script: &mut Script,
    first: &str,
    again: impl AsyncFnOnce(&mut Script, Value),
) -> Result<String, (ErrorKind, String)> {
    let (result, ()) = calling(client, script, async |script, asked| {
        let answer = asked.text_result("at last");
        let events = asked.events();
        events.raw(first).await;
        drop(events);
        again(script, answer).await;
    })
    .await;
    result
}

/// CHTTP-03: without an event id a stream cannot be resumed.
#[tokio::test]
async fn a_stream_without_ids_is_lost_at_its_end() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    for first in [": nothing\n\n", "retry: 1\n\n", "id: 1\ndata:\n\nid\ndata:\n\n"] {
        let result = interrupted(&client, &mut script, first, async |_, _| {}).await;
        assert_eq!(result, lost("ended without an answer"));
    }
    assert!(script.unexpected().is_none());
}

fn lost(reason: &str) -> Result<String, (ErrorKind, String)> {
    let text = format!("the connection was lost before the response: the stream {reason}");
    Err((ErrorKind::Closed, text))
}

/// CHTTP-03, SCL-94: a stream is resumed after failures that can pass, and its call fails with the reason after others.
#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_ends_its_call() {
    const FIRST: &str = "id: 1\nretry: 1\ndata:\n\n";
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let result = interrupted(&client, &mut script, FIRST, async |script, answer| {
        resumed(script, "1").await.status(500);
        resumed(script, "1").await.status(503);
        resumed(script, "1").await.events().cut().await;
        drop(resumed(script, "1").await);
        resumed(script, "1").await.events().message(&answer).await;
    });
    assert_eq!(result.await.as_deref(), Ok("at last"));
    let result = interrupted(&client, &mut script, FIRST, async |script, _| {
        resumed(script, "1").await.status(405);
    });
    assert_eq!(result.await, lost("ended without an answer, and the server does not resume streams"));
    // The session has ended while the request was in flight: it may have run, so it is not sent again.
    let result = interrupted(&client, &mut script, FIRST, async |script, _| {
        resumed(script, "1").await.status(404);
    });
    let text = "the connection was lost before the response: the server has ended the session".to_owned();
    assert_eq!(result.await, Err((ErrorKind::Closed, text)));
    let result = interrupted(&client, &mut script, FIRST, async |script, _| {
        resumed(script, "1").await.status(403);
    });
    assert_eq!(result.await, Err((ErrorKind::Forbidden, "403 Forbidden".to_owned())));
    assert!(script.unexpected().is_none());
}

/// CHTTP-03: resumed after its last event id, or reopened without one; a refusal ends it, which fails no call.
#[tokio::test]
async fn the_servers_own_stream_is_opened_again() {
    let mut script = Script::start().await;
    let (options, received) = listener();
    let (client, stream) = script.session_in(options, NEWEST).await;
    stream.events().raw("retry: 1\n\n").await;
    let anew = script.plain(Method::GET).await;
    assert_eq!(anew.header("last-event-id"), None);
    let events = anew.events();
    events.raw(&format!("id: g-1\ndata: {}\n\n", log("one"))).await;
    assert_eq!(ask(&mut script, &events, "ping", json!({})).await, json!({}));
    events.cut().await;
    let events = resumed(&mut script, "g-1").await.events();
    events.raw(&format!("id: g-2\ndata: {}\n\n", log("two"))).await;
    drop(events);
    resumed(&mut script, "g-2").await.status(500);
    resumed(&mut script, "g-2").await.status(403);
    let (result, ()) = calling(&client, &mut script, async |_, asked| {
        asked.say("unharmed");
    })
    .await;
    assert_eq!(result.as_deref(), Ok("unharmed"));
    assert_eq!(*received.lock().unwrap(), ["log \"one\"", "log \"two\""]);
}

/// Robustness C10: every path is limited; an event that is too large is not requested again.
#[tokio::test]
async fn an_event_beyond_the_bound_ends_its_call() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let large = "x".repeat(20_000);
    for event in [format!("data: {large}"), format!(": {large}"), "data: 1234567890\n".repeat(2000)] {
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            let events = asked.events();
            events.raw("id: 1\nretry: 1\ndata:\n\n").await.raw(&event).await;
            events.left().await;
        })
        .await;
        let text = "the server's response is not valid: it is larger than 10000 bytes".to_owned();
        assert_eq!(result, Err((ErrorKind::Protocol, text)));
    }
    assert!(script.unexpected().is_none());
}
