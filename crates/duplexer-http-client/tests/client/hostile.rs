//! Hostile servers: every call ends with a typed error within a bound, and nothing grows.

use std::time::Duration;

use duplexer_client::{ClientError, ErrorKind};
use serde_json::json;

use crate::script::{Piped, Script, calling, options};

/// D-6: a server that accepts and says nothing.
#[tokio::test]
async fn a_mute_server_times_out() {
    let mut script = Script::start().await;
    let client = script.session(options().timeout(Duration::from_millis(300))).await;
    let (result, asked) = calling(&client, &mut script, async |_, asked| asked).await;
    assert_eq!(result, Err((ErrorKind::Timeout, "Request 'tools/call' timed out".to_owned())));
    drop(asked);
}

/// D-10: a server that has its client wait and come again indefinitely.
#[tokio::test]
async fn an_endless_retry_times_out() {
    let mut script = Script::start().await;
    let client = script.session(options().timeout(Duration::from_millis(500))).await;
    for retry in ["0", "99999999999"] {
        let call = client.call_tool("x", ()).into_future();
        tokio::pin!(call);
        let mut connections = 0;
        let error = loop {
            tokio::select! {
                biased;
                result = &mut call => break result.unwrap_err(),
                asked = script.next() => {
                    if asked.body["method"] == "notifications/cancelled" {
                        asked.status(202);
                    } else {
                        connections += 1;
                        let event = format!("id: 1\nretry: {retry}\ndata:\n\n");
                        asked.events().raw(&event).await;
                    }
                }
            }
        };
        assert_eq!(error.kind(), ErrorKind::Timeout);
        // At most one connection in 100 ms, whatever the server sends.
        assert!((1..=8).contains(&connections), "{retry}: {connections}");
        while let Some(rest) = script.unexpected() {
            rest.status(202);
        }
    }
}

/// D-7: a list without end. The stream and the collected list stop at the same page.
#[tokio::test]
async fn endless_pages_have_an_end() {
    let mut script = Script::start().await;
    let client = script.session(options().max_pages(20)).await;
    let serve = async |script: &mut Script, next: &dyn Fn(u32) -> String| {
        for page in 1.. {
            let asked = script.next().await;
            if asked.body["method"] != "tools/list" {
                return asked.status(202);
            }
            let tool = json!({"name": format!("t-{page}"), "inputSchema": {"type": "object"}});
            let result = json!({"tools": [tool], "nextCursor": next(page)});
            let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result});
            asked.json(&answer);
        }
    };
    let endless = |page: u32| "x".repeat(1000) + &page.to_string();
    let error = tokio::select! {
        all = client.all_tools() => all.unwrap_err(),
        () = serve(&mut script, &endless) => panic!("it never stops"),
    };
    assert!(matches!(error, ClientError::TooManyPages { pages: 20, .. }), "{error:?}");
    let (mut tools, mut count) = (client.tools(), 0);
    let error = tokio::select! {
        error = async {
            loop {
                match tools.next().await.unwrap() {
                    Ok(_) => count += 1,
                    Err(error) => break error,
                }
            }
        } => error,
        () = serve(&mut script, &endless) => panic!("it never stops"),
    };
    assert_eq!((error.kind(), count), (ErrorKind::Protocol, 19));
    assert!(tools.next().await.is_none(), "the stream has ended");
    let circle = |page: u32| (page % 3).to_string();
    let error = tokio::select! {
        all = client.all_tools() => all.unwrap_err(),
        () = serve(&mut script, &circle) => panic!("it never stops"),
    };
    assert!(matches!(error, ClientError::RepeatedCursor(_)), "{error:?}");
}

/// A body of 10 MB where the limit is 10 kB, in every form: none of it is kept.
#[tokio::test]
async fn a_response_of_ten_megabytes_is_cut_off() {
    let large = "x".repeat(10_000_000);
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    for (status, kind) in
        [(200, "application/json"), (200, "text/event-stream"), (400, "application/json"), (400, "text/html")]
    {
        let (result, ()) = calling(&client, &mut script, async |_, asked| {
            asked.reply(status, &[("content-type", kind)], Piped::whole(&large));
        })
        .await;
        let (found, text) = result.unwrap_err();
        assert_eq!(found, if status == 200 { ErrorKind::Protocol } else { ErrorKind::Http }, "{kind}");
        assert!(text.len() < 300, "{}", text.len());
    }
}

/// Responses to requests that were never sent, and other messages without a receiver: none of them answers the call.
#[tokio::test]
async fn a_flood_of_foreign_messages_does_not_answer_a_call() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let filler = "x".repeat(4000);
    let (result, ()) = calling(&client, &mut script, async |_, asked| {
        let answer = asked.text_result("at last");
        let events = asked.events();
        for number in 0..1000 {
            let progress = json!({"progressToken": "unknown", "progress": number, "message": filler});
            for foreign in [
                json!({"jsonrpc": "2.0", "id": format!("stray-{number}"), "result": {"x": filler}}),
                json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": filler}}),
                json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}),
                json!({"x": filler}),
            ] {
                events.message(&foreign).await;
            }
        }
        events.message(&answer).await;
    })
    .await;
    assert_eq!(result.as_deref(), Ok("at last"));
}
