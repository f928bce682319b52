//! What a server publishes reaches its clients, in both eras.

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

/// SUB-02, SUB-04, SUB-07: acknowledged in part, told of a change by another call, ended in order by the server.
async fn listens(client: &Client, shutdown: impl Future<Output = ()>) {
    let asked = SubscriptionFilter::new().tools_list_changed(true).prompts_list_changed(true);
    let mut subscription = client.listen(asked).await.unwrap();
    assert_eq!(*subscription.honoured(), SubscriptionFilter::new().tools_list_changed(true));
    client.call_tool(CallToolParams::new("change")).await.unwrap();
    assert_eq!(subscription.next().await.unwrap().unwrap(), Change::Tools);
    shutdown.await;
    assert!(subscription.next().await.is_none(), "the server has ended it in order");
}

#[tokio::test]
async fn a_client_of_the_envelope_era_listens() {
    let bus = MemoryBus::new();
    let client = TestClient::new(&server(&bus)).await.unwrap();
    listens(&client, client.running.shutdown()).await;
    client.close().await;
    let running = server(&bus).start().await.unwrap();
    let client = in_process(&running, options(Mode::Auto)).await.unwrap();
    // In one process the shutdown waits for the session, which the client ends.
    let mut ending = JoinSet::new();
    let shutdown = async {
        let running = running.clone();
        ending.spawn(async move { running.shutdown().await });
    };
    listens(&client, shutdown).await;
    client.close().await.unwrap();
    ending.join_all().await;
    assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
}

#[tokio::test]
async fn a_client_of_the_handshake_era_is_told() {
    let bus = MemoryBus::new();
    let (told, mut tales) = mpsc::channel(8);
    let options = options(Mode::Handshake).on_notification(move |tale| {
        told.try_send(tale).unwrap();
    });
    let client = TestClient::with_options(&server(&bus), options).await.unwrap();
    while format!("{bus:?}") != "MemoryBus { listeners: 1 }" {
        tokio::task::yield_now().await;
    }
    client.call_tool(CallToolParams::new("change")).await.unwrap();
    assert!(matches!(tales.recv().await, Some(ServerNotification::ToolsListChanged)));
    bus.tell(&Event::PromptsChanged);
    bus.tell(&Event::ToolsChanged);
    assert!(matches!(tales.recv().await, Some(ServerNotification::ToolsListChanged)));
    client.close().await;
    assert_eq!(format!("{bus:?}"), "MemoryBus { listeners: 0 }");
}
