//! Changes with one interface in both eras, handlers of list changes, and hooks of a session.

use std::time::Duration;

use duplexer_types::subscription::SubscriptionFilter;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{ScriptedServer, builder, envelope_session, handshake_session};
use crate::{Change, Changes, Client};

fn filter() -> SubscriptionFilter {
    SubscriptionFilter::new().tools_list_changed(true).resource_subscriptions(["file:///a".to_owned()])
}

/// Accepts a `subscriptions/listen` request and returns its id.
async fn accept(server: &mut ScriptedServer) -> Value {
    let request = server.expect("subscriptions/listen").await;
    let meta = json!({"io.modelcontextprotocol/subscriptionId": request["id"]});
    let params = json!({"notifications": request["params"]["notifications"], "_meta": meta});
    server.notify("notifications/subscriptions/acknowledged", params).await;
    request["id"].clone()
}

async fn tools_changed(server: &mut ScriptedServer, id: &Value) {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    server.notify("notifications/tools/list_changed", json!({"_meta": meta})).await;
}

async fn next(changes: &mut Changes) -> Option<Change> {
    changes.next().await.map(Result::unwrap)
}

#[tokio::test(start_paused = true)]
async fn changes_of_the_handshake_era_are_notifications_and_subscribed_resources() {
    let (client, mut server) = handshake_session(builder(), "2025-11-25").await;
    let (changes, ()) = tokio::join!(client.changes(filter()), async {
        let request = server.expect("resources/subscribe").await;
        assert_eq!(request["params"]["uri"], "file:///a");
        server.respond(&request, json!({})).await;
    });
    let mut changes = changes.unwrap();
    server.notify("notifications/prompts/list_changed", json!({})).await;
    server.notify("notifications/resources/updated", json!({"uri": "file:///b"})).await;
    server.notify("notifications/resources/updated", json!({"uri": "file:///a"})).await;
    server.notify("notifications/tools/list_changed", json!({})).await;
    assert_eq!(next(&mut changes).await, Some(Change::Resource("file:///a".to_owned())));
    assert_eq!(next(&mut changes).await, Some(Change::Tools));
    drop(changes);
    let request = server.expect("resources/unsubscribe").await;
    assert_eq!(request["params"]["uri"], "file:///a");
}

#[tokio::test(start_paused = true)]
async fn changes_end_with_the_session() {
    let (client, _server) = handshake_session(builder(), "2025-11-25").await;
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.changes(filter).await.unwrap();
    client.close().await.unwrap();
    assert_eq!(next(&mut changes).await, None);
}

/// SCL-94, P-SUB-13: the subscription survives the loss of its stream, and reports what can have been missed.
#[tokio::test(start_paused = true)]
async fn a_lost_subscription_of_the_envelope_era_is_opened_again() {
    let (client, mut server) = envelope_session(builder()).await;
    let (changes, id) = tokio::join!(client.changes(filter()), accept(&mut server));
    let mut changes = changes.unwrap();
    tools_changed(&mut server, &id).await;
    assert_eq!(next(&mut changes).await, Some(Change::Tools));
    server.respond_with_error(&json!({"id": id}), -32000, None).await;
    let refused = server.expect("subscriptions/listen").await;
    server.respond_with_error(&refused, -32603, None).await;
    let id = accept(&mut server).await;
    assert_eq!(next(&mut changes).await, Some(Change::Tools));
    assert_eq!(next(&mut changes).await, Some(Change::Resource("file:///a".to_owned())));
    tools_changed(&mut server, &id).await;
    assert_eq!(next(&mut changes).await, Some(Change::Tools));
}

/// Answers `tools/list` with an empty list that is fresh for an hour.
async fn list_nothing(server: &mut ScriptedServer) {
    let request = server.expect("tools/list").await;
    let page = json!({"resultType": "complete", "tools": [], "ttlMs": 3_600_000, "cacheScope": "private"});
    server.respond(&request, page).await;
}

/// CCACHE-01: what can have changed while the stream was lost is not taken from the cache.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_is_opened_again_invalidates_the_cache() {
    let (client, mut server) = envelope_session(builder()).await;
    let (changes, id) = tokio::join!(client.changes(filter()), accept(&mut server));
    let mut changes = changes.unwrap();
    let (listed, ()) = tokio::join!(client.list_tools(), list_nothing(&mut server));
    listed.unwrap();
    client.list_tools().await.expect("the cache has it");
    server.respond_with_error(&json!({"id": id}), -32000, None).await;
    accept(&mut server).await;
    assert_eq!(next(&mut changes).await, Some(Change::Tools));
    let (listed, ()) = tokio::join!(client.list_tools(), list_nothing(&mut server));
    listed.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_cannot_be_opened_again_is_lost() {
    let (client, mut server) = envelope_session(builder()).await;
    let (changes, id) = tokio::join!(client.changes(filter()), accept(&mut server));
    let mut changes = changes.unwrap();
    server.respond_with_error(&json!({"id": id}), -32000, None).await;
    let (lost, ()) = tokio::join!(changes.next(), async {
        for _ in 0..10 {
            let refused = server.expect("subscriptions/listen").await;
            server.respond_with_error(&refused, -32603, None).await;
        }
    });
    assert!(lost.unwrap().is_err());
}

/// A server that accepts every stream and ends it at once is not asked indefinitely; one that keeps it for a while is.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_ends_at_once_is_lost_after_ten_attempts() {
    let (client, mut server) = envelope_session(builder()).await;
    let (changes, mut id) = tokio::join!(client.changes(filter()), accept(&mut server));
    let mut changes = changes.unwrap();
    let end = |id: &Value| json!({"id": id});
    for _ in 0..20 {
        sleep(Duration::from_secs(6)).await;
        server.respond(&end(&id), json!({"resultType": "complete"})).await;
        id = accept(&mut server).await;
    }
    // The last stream that lasted was the first attempt of this row.
    for _ in 1..10 {
        server.respond(&end(&id), json!({"resultType": "complete"})).await;
        id = accept(&mut server).await;
    }
    server.respond(&end(&id), json!({"resultType": "complete"})).await;
    // Changes that can have been missed are reported before.
    let lost = loop {
        if let Err(lost) = changes.next().await.unwrap() {
            break lost;
        }
    };
    assert_eq!(lost.to_string(), "the subscription was lost");
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
}

/// Answers `tools/list` with one tool.
async fn list(server: &mut ScriptedServer, name: &str) {
    let request = server.expect("tools/list").await;
    let tools = json!([{"name": name, "inputSchema": {}}]);
    server.respond(&request, json!({"resultType": "complete", "tools": tools})).await;
}

/// A burst of changes is one call of the handler, with the fresh list, in either era.
#[tokio::test(start_paused = true)]
async fn a_handler_of_list_changes_gets_the_fresh_list_once_for_a_burst() {
    for era in ["handshake", "envelope"] {
        let (say, mut heard) = mpsc::channel(8);
        let builder = builder().on_tools_changed(move |tools| say.try_send(tools[0].name.clone()).unwrap());
        let (client, mut server, id) = if era == "handshake" {
            let (client, server) = handshake_session(builder, "2025-11-25").await;
            // The handler subscribes in a task of its own.
            tokio::task::yield_now().await;
            (client, server, Value::Null)
        } else {
            let (client, mut server) = envelope_session(builder).await;
            let id = accept(&mut server).await;
            (client, server, id)
        };
        for _ in 0..3 {
            tools_changed(&mut server, &id).await;
        }
        list(&mut server, "fresh").await;
        assert_eq!(heard.recv().await.unwrap(), "fresh", "{era}");
        tools_changed(&mut server, &id).await;
        list(&mut server, "later").await;
        assert_eq!(heard.recv().await.unwrap(), "later", "{era}");
        assert!(heard.try_recv().is_err());
        drop(client);
        while server.next_message().await.is_some() {}
    }
}

#[tokio::test(start_paused = true)]
async fn hooks_of_a_session_run_once_after_its_end_and_the_last_comes_first() {
    let (client, mut server) = envelope_session(builder()).await;
    let (say, mut heard) = mpsc::channel(8);
    for name in ["first", "second"] {
        let (say, session) = (say.clone(), client.clone());
        client.on_close(move || async move {
            say.send((name, session.0.task.has_ended())).await.unwrap();
        });
    }
    client.close().await.unwrap();
    client.close().await.unwrap();
    assert_eq!(server.next_message().await, None);
    drop((client, say));
    assert_eq!(heard.recv().await, Some(("second", true)));
    assert_eq!(heard.recv().await, Some(("first", true)));
    assert_eq!(heard.recv().await, None);
}

/// Dropping the last clone ends the session, although tasks of the session run.
#[tokio::test(start_paused = true)]
async fn tasks_of_a_session_do_not_keep_it_open() {
    let (client, mut server) = envelope_session(builder().on_tools_changed(|_| ())).await;
    accept(&mut server).await;
    let (changes, _) = tokio::join!(client.changes(filter()), accept(&mut server));
    let mut changes = changes.unwrap();
    let clone: Client = client.clone();
    drop((client, clone));
    while server.next_message().await.is_some() {}
    assert_eq!(next(&mut changes).await, None);
}
