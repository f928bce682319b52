//! Work beside requests, resources that change, and what extensions need of the builder.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer::client::{Change, Client};
use duplexer::server::{CatalogItem, RunContext};
use duplexer::testing::{TestClient, in_process};
use duplexer::{BoxError, Context, McpError, Resource, Server, ServerBuilder, Tool};
use duplexer_types::subscription::SubscriptionFilter;
use tokio::sync::Notify;

use crate::common::both;

/// Counts how often it is dropped.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server whose work never ends by itself.
fn endless(started: &Arc<Notify>, dropped: &Arc<AtomicUsize>) -> Server {
    let (started, dropped) = (Arc::clone(started), Arc::clone(dropped));
    Server::builder("s", "0")
        .state(7_u8)
        .while_running(move |cx: RunContext<u8>| {
            let (started, dropped) = (Arc::clone(&started), Dropped(Arc::clone(&dropped)));
            async move {
                assert_eq!((*cx.state(), cx.server().server().server_info().name.as_str()), (7, "s"));
                let _dropped = dropped;
                started.notify_one();
                std::future::pending::<()>().await;
            }
        })
        .build()
        .unwrap()
}

/// The work starts with each run and ends before its lifespans.
#[tokio::test]
async fn work_beside_requests_ends_with_the_server() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let server = endless(&started, &dropped);
    for run in 0..2 {
        let running = server.start().await.unwrap();
        started.notified().await;
        assert_eq!(dropped.load(Ordering::SeqCst), run);
        running.shutdown().await;
        assert_eq!(dropped.load(Ordering::SeqCst), run + 1);
    }
}

/// A server that is dropped without a shutdown leaves no task behind: the work does not keep its own server alive.
#[tokio::test]
async fn work_beside_requests_ends_when_the_server_is_dropped() {
    let (started, dropped) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let running = endless(&started, &dropped).start().await.unwrap();
    started.notified().await;
    drop(running.clone());
    tokio::task::yield_now().await;
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    drop(running);
    while dropped.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
}

/// A panic ends the work and nothing else.
#[tokio::test]
async fn a_panic_of_work_beside_requests_is_contained() {
    let server = Server::builder("s", "0")
        .while_running(|_| async { panic!("on purpose") })
        .tool(Tool::new("fine", || async { "fine" }))
        .build()
        .unwrap();
    let client = TestClient::new(&server).await.unwrap();
    assert!(client.call_tool("fine", ()).await.is_ok());
    client.close().await;
}

/// Resources can change without the other lists: they are declared, and clients hear of them.
#[tokio::test]
async fn resources_alone_can_change() {
    let go = Arc::new(Notify::new());
    let wait = Arc::clone(&go);
    let server = Server::builder("s", "0")
        .dynamic_resources()
        .while_running(move |cx| {
            let wait = Arc::clone(&wait);
            async move {
                wait.notified().await;
                let page = Resource::text("page://new", "new");
                cx.catalog().unwrap().edit(|edit| edit.replace_resource(page)).await.unwrap();
            }
        })
        .build()
        .unwrap();
    both(&server, async |client, era| {
        let capabilities = client.server_capabilities();
        assert_eq!(capabilities.resources.as_ref().unwrap().list_changed, Some(true), "{era:?}");
        assert!(capabilities.tools.is_none() && capabilities.prompts.is_none());
        let filter = SubscriptionFilter::new().resources_list_changed(true);
        let mut changes = client.changes(filter).await.unwrap();
        // The server has confirmed the handshake when it answers.
        client.all_resources().await.unwrap();
        go.notify_one();
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resources);
        assert_eq!(client.all_resources().await.unwrap()[0].uri, "page://new");
    })
    .await;
}

/// A handler learns which resources its caller can see.
#[tokio::test]
async fn a_handler_knows_which_resources_its_caller_sees() {
    let seen = |cx: Context<()>| async move {
        let seen = ["a://open", "a://hidden", "a://missing"].map(|uri| cx.sees_resource(uri));
        format!("{seen:?}")
    };
    let resources = || {
        let both = Server::builder("s", "0").resource(Resource::text("a://open", ""));
        both.resource(Resource::text("a://hidden", "")).tool(Tool::new("seen", seen))
    };
    let hide = |item: CatalogItem<'_>| !matches!(item, CatalogItem::Resource("a://hidden"));
    let filtered = resources().visible(move |_, item| hide(item));
    for (server, expected) in [(resources(), "[true, true, false]"), (filtered, "[true, false, false]")] {
        let running = server.build().unwrap().start().await.unwrap();
        let client = in_process(&running, Client::builder("c", "0")).await.unwrap();
        let result = client.call_tool("seen", ()).await.unwrap();
        assert_eq!(result.content[0].as_text(), Some(expected));
        client.close().await.unwrap();
        running.shutdown().await;
    }
}

/// An extension can make the build fail, with every fault it finds.
#[test]
fn a_failed_part_fails_the_build() {
    let faults: [BoxError; 2] = ["one".into(), McpError::internal("x").into()];
    let builder = faults.into_iter().fold(Server::builder("s", "0"), ServerBuilder::fail);
    let error = builder.build().unwrap_err().to_string();
    assert!(error.starts_with("one\n"), "{error}");
}
