//! Streams of `subscriptions/listen`.

use duplexer_types::subscription::SubscriptionFilter;
use serde_json::{Value, json};

use super::super::{Change, Client, ClientError, ListenStream};
use super::{ScriptedServer, builder, envelope_session, handshake_session};
use duplexer_core::error::CallError;

const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

async fn listening(client: &Client, server: &mut ScriptedServer) -> (ListenStream, Value) {
    let filter = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    let script = async {
        let request = server.expect("subscriptions/listen").await;
        let acknowledged =
            json!({"notifications": {"toolsListChanged": true}, "_meta": {SUBSCRIPTION: request["id"]}});
        server.notify("notifications/subscriptions/acknowledged", acknowledged).await;
        request["id"].clone()
    };
    let (subscription, id) = tokio::join!(client.listen(filter), script);
    (subscription.unwrap(), id)
}

async fn change(server: &mut ScriptedServer, method: &str, id: &Value, uri: Option<&str>) {
    let mut params = json!({"_meta": {SUBSCRIPTION: id}});
    if let Some(uri) = uri {
        params["uri"] = uri.into();
    }
    server.notify(method, params).await;
}

/// CLT-10, P-SUB-14, P-SUB-15: the stream begins with the acknowledgement, and each stream gets its own changes.
#[tokio::test(start_paused = true)]
async fn changes_reach_the_stream_they_are_tagged_for() {
    let (client, mut server) = envelope_session(builder()).await;
    let (mut one, first) = listening(&client, &mut server).await;
    let (mut two, second) = listening(&client, &mut server).await;
    assert_eq!((&first, &second), (&json!("listen-1"), &json!("listen-2")));
    assert_eq!(one.acknowledged(), &SubscriptionFilter::new().tools_list_changed(true));
    change(&mut server, "notifications/tools/list_changed", &first, None).await;
    change(&mut server, "notifications/tools/list_changed", &first, None).await;
    change(&mut server, "notifications/resources/updated", &second, Some("a:b")).await;
    change(&mut server, "notifications/prompts/list_changed", &first, None).await;
    change(&mut server, "notifications/prompts/list_changed", &json!("listen-9"), None).await;
    assert_eq!(two.next().await.unwrap().unwrap(), Change::Resource("a:b".into()));
    assert_eq!(one.next().await.unwrap().unwrap(), Change::Tools);
    assert_eq!(one.next().await.unwrap().unwrap(), Change::Prompts);
    server.send(json!({"jsonrpc": "2.0", "id": first, "result": {"resultType": "complete"}})).await;
    assert!(one.next().await.is_none(), "the server has ended the stream");
}

/// CLT-10: a stream that ends without the server's result is lost, with its cause.
#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_is_lost() {
    let (client, mut server) = envelope_session(builder()).await;
    let (mut stream, id) = listening(&client, &mut server).await;
    change(&mut server, "notifications/tools/list_changed", &id, None).await;
    drop(server);
    assert_eq!(stream.next().await.unwrap().unwrap(), Change::Tools);
    assert!(stream.next().await.unwrap().is_err());
}

/// CLT-10: a reader that falls too far behind loses the stream, not the connection.
#[tokio::test(start_paused = true)]
async fn a_reader_that_falls_behind_loses_the_stream() {
    let (client, mut server) = envelope_session(builder()).await;
    let (mut stream, id) = listening(&client, &mut server).await;
    for number in 0..1030 {
        let uri = format!("a:{number}");
        change(&mut server, "notifications/resources/updated", &id, Some(&uri)).await;
    }
    // The response arrives after the notifications, so the client has read all of them.
    let (listed, ()) = tokio::join!(client.list_tools(), async {
        let request = server.expect("tools/list").await;
        server.respond(&request, json!({"resultType": "complete", "tools": []})).await;
    });
    listed.unwrap();
    for number in 0..1024 {
        assert_eq!(stream.next().await.unwrap().unwrap(), Change::Resource(format!("a:{number}")));
    }
    assert!(stream.next().await.unwrap().is_err());
}

/// CLT-10: a refusal is the caller's error; dropping the stream cancels the request.
#[tokio::test(start_paused = true)]
async fn a_refused_stream_is_an_error_and_a_dropped_one_is_cancelled() {
    let (client, mut server) = envelope_session(builder()).await;
    let (refused, ()) = tokio::join!(client.listen(SubscriptionFilter::new()), async {
        let request = server.expect("subscriptions/listen").await;
        server.respond_with_error(&request, -32603, None).await;
    });
    assert!(matches!(refused, Err(ClientError::Call(CallError::Rpc(_)))), "{refused:?}");
    let (stream, id) = listening(&client, &mut server).await;
    drop(stream);
    let cancelled = server.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], id);
}

/// CLT-10: only the envelope era has `subscriptions/listen`.
#[tokio::test(start_paused = true)]
async fn listening_is_unavailable_in_the_handshake_era() {
    let (client, _server) = handshake_session(builder(), "2025-11-25").await;
    let refused = client.listen(SubscriptionFilter::new()).await;
    assert!(matches!(refused, Err(ClientError::Unavailable { .. })), "{refused:?}");
}
