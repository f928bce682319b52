//! A new session after 404: one handshake for all calls, which are sent again; log level and subscriptions are restored.

use std::sync::{Arc, Mutex};

use duplexer_client::{ErrorKind, ServerNotification};
use duplexer_types::logging::LoggingLevel;
use http::Method;
use serde_json::json;

use crate::script::{NEWEST, Script, calling, options};

/// Serves a request of the client that has an empty result.
async fn accept(script: &mut Script, method: &str, session: &str) -> serde_json::Value {
    let asked = script.posted(method).await;
    assert_eq!(asked.belongs_to(), (Some(session), Some(NEWEST)));
    let params = asked.body["params"].clone();
    let answer = json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": {}});
    asked.json(&answer);
    params
}

/// P-LEG-11, D-4: the request that was refused with 404 did not run and is sent again in the new session.
#[tokio::test]
async fn a_session_that_the_server_has_ended_is_opened_again() {
    let mut script = Script::start().await;
    let renewed = Arc::new(Mutex::new(0));
    let seen = Arc::clone(&renewed);
    let options = options().on_notification(move |notification| {
        if notification == ServerNotification::SessionRenewed {
            *seen.lock().unwrap() += 1;
        }
    });
    let client = script.session(options).await;
    let (level, _) = tokio::join!(
        client.set_log_level(LoggingLevel::Warning).into_future(),
        accept(&mut script, "logging/setLevel", "s-1")
    );
    level.unwrap();
    for uri in ["file:///a", "file:///b"] {
        let (subscribed, _) = tokio::join!(
            client.subscribe(uri).into_future(),
            accept(&mut script, "resources/subscribe", "s-1")
        );
        subscribed.unwrap();
    }
    let (gone, _) = tokio::join!(
        client.unsubscribe("file:///a").into_future(),
        accept(&mut script, "resources/unsubscribe", "s-1")
    );
    gone.unwrap();

    let calls = async {
        let (one, other) = (client.call_tool("x", ()), client.call_tool("y", ()));
        tokio::join!(one.into_future(), other.into_future())
    };
    let serve = async {
        for _ in 0..2 {
            script.posted("tools/call").await.status(404);
        }
        let opening = script.posted("initialize").await;
        assert_eq!(opening.belongs_to(), (None, None));
        assert_eq!(opening.body["params"]["protocolVersion"], NEWEST);
        opening.open(NEWEST, Some("s-2"));
        let opened = script.posted("notifications/initialized").await;
        assert_eq!(opened.belongs_to(), (Some("s-2"), Some(NEWEST)));
        opened.status(202);
        script.plain(Method::GET).await.status(405);
        assert_eq!(accept(&mut script, "logging/setLevel", "s-2").await, json!({"level": "warning"}));
        assert_eq!(accept(&mut script, "resources/subscribe", "s-2").await, json!({"uri": "file:///b"}));
        for _ in 0..2 {
            let again = script.posted("tools/call").await;
            assert_eq!(again.belongs_to(), (Some("s-2"), Some(NEWEST)));
            again.say("done");
        }
    };
    let ((one, other), ()) = tokio::join!(calls, serve);
    one.unwrap();
    other.unwrap();
    assert_eq!(*renewed.lock().unwrap(), 1);
    assert!(script.unexpected().is_none(), "there was one handshake");
}

/// A server that also refuses the new session, or ends it at once, fails the call with what it said.
#[tokio::test]
async fn a_session_that_cannot_be_renewed_fails_the_call() {
    let mut script = Script::start().await;
    let client = script.session(options()).await;
    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        asked.status(404);
        script.posted("initialize").await.status(500);
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Http, "500 Internal Server Error".to_owned())));

    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        asked.status(404);
        script.posted("initialize").await.open(NEWEST, Some("s-2"));
        script.posted("notifications/initialized").await.status(202);
        script.plain(Method::GET).await.status(405);
        script.posted("tools/call").await.status(404);
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Closed, "the server has ended the session".to_owned())));

    let (result, ()) = calling(&client, &mut script, async |script, asked| {
        asked.status(404);
        script.posted("initialize").await.open("2025-06-18", Some("s-3"));
    })
    .await;
    assert_eq!(result, Err((ErrorKind::Closed, "the server has ended the session".to_owned())));
    assert!(script.unexpected().is_none());
}
