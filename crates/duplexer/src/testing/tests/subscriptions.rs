//! Delivery of published changes to clients of both eras.

use duplexer_types::subscription::SubscriptionFilter;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::*;
use crate::client::{Change, ServerNotification};
use crate::server::subscriptions::{Event, MemoryBus};

fn server(bus: &MemoryBus) -> Server {
    Server::builder("demo", "0")
        .on(methods::ToolsList, async |_: PaginatedParams| {
            Ok::<_, McpError>(ListToolsResult::new(Vec::new()))
        })
        .on(methods::ToolsCall, async |cx: Context<()>, _: CallToolParams| {
            cx.notify_tools_changed().await;
            Ok::<_, McpError>(CallToolResult::text("done"))
        })
        .subscriptions(bus.clone())
        .build()
        .unwrap()
}

/// SUB-02, SUB-04, SUB-07: the server acknowledges a part of the filter, reports a change made by another call, and ends
/// the stream on shutdown.
async fn check_listening(client: &Client, shutdown: impl Future<Output = ()>) {
    let filter = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    let mut stream = client.listen(filter).await.unwrap();
    assert_eq!(*stream.acknowledged(), SubscriptionFilter::new().tools_list_changed(true));
    client.call_tool("change", ()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), Change::Tools);
    shutdown.await;
    assert!(stream.next().await.is_none(), "the server has ended the stream");
}

#[tokio::test]
async fn a_client_of_the_envelope_era_listens() {
    let bus = MemoryBus::new();
    let client = TestClient::new(&server(&bus)).await.unwrap();
    check_listening(&client, client.running.shutdown()).await;
    client.close().await;
    let running = server(&bus).start().await.unwrap();
    let client = in_process(&running, builder(Negotiation::Auto)).await.unwrap();
    // In-process, the shutdown waits for the session, and the client ends the session.
    let mut ending = JoinSet::new();
    let shutdown = async {
        let running = running.clone();
        ending.spawn(async move { running.shutdown().await });
    };
    check_listening(&client, shutdown).await;
    client.close().await.unwrap();
    ending.join_all().await;
    assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
}

#[tokio::test]
async fn a_client_of_the_handshake_era_is_notified() {
    let bus = MemoryBus::new();
    let (sender, mut notifications) = mpsc::channel(8);
    let client = builder(Negotiation::Handshake).on_notification(move |notification| {
        sender.try_send(notification).unwrap();
    });
    let client = TestClient::connect(&server(&bus), client).await.unwrap();
    while format!("{bus:?}") != "MemoryBus { listeners: 1 }" {
        tokio::task::yield_now().await;
    }
    client.call_tool("change", ()).await.unwrap();
    assert!(matches!(notifications.recv().await, Some(ServerNotification::ToolsListChanged)));
    bus.tell(&Event::PromptsChanged);
    bus.tell(&Event::ToolsChanged);
    assert!(matches!(notifications.recv().await, Some(ServerNotification::ToolsListChanged)));
    client.close().await;
    assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
}
