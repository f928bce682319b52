//! Servers that lie about what they offer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer::Server;
use duplexer::client::prelude::*;
use duplexer::proxy::{BackendSettings, Gateway};
use duplexer::server::subscriptions::{Event, MemoryBus};
use duplexer::server::{Outcome, Reply};
use duplexer::testing::TestClient;
use duplexer::types::methods;
use duplexer::types::page::PaginatedParams;
use duplexer::types::tool::ListToolsResult;
use duplexer::types::version::Era;

use crate::support::{Speaks, client, proxied};

/// A server whose pages of tools are this text. Counts the requests.
fn listing(page: impl Fn(usize) -> String + Send + Sync + 'static) -> (Server, Arc<AtomicUsize>) {
    let requests = Arc::new(AtomicUsize::new(0));
    let (page, counted) = (Arc::new(page), Arc::clone(&requests));
    let server = Server::builder("liar", "1")
        .on(methods::ToolsList, move |_: PaginatedParams| {
            let text = page(counted.fetch_add(1, Ordering::SeqCst));
            async move { Ok::<_, McpError>(Reply::<ListToolsResult>::Other(Outcome::raw(text))) }
        })
        .build()
        .unwrap();
    (server, requests)
}

async fn listed(server: &Server) -> Vec<String> {
    let gateway = Gateway::new("g", "1").backend(BackendSettings::new("x"), proxied(server, Speaks::Both));
    let (server, _handle) = gateway.server().unwrap();
    let client = TestClient::connect(&server, client(Era::Handshake)).await.unwrap();
    let tools = client.all_tools().await.unwrap();
    client.close().await;
    tools.into_iter().map(|tool| tool.name).collect()
}

fn tool(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

#[tokio::test]
async fn endless_pages_end() {
    let page =
        |number: usize| format!(r#"{{"tools":[{}],"nextCursor":"more"}}"#, tool(&format!("t{number}")));
    let (server, requests) = listing(page);
    assert_eq!(listed(&server).await.len(), 100);
    assert_eq!(requests.load(Ordering::SeqCst), 100);
}

#[tokio::test]
async fn huge_lists_are_cut() {
    let page = |_| {
        let tools: Vec<_> = (0..20_000).map(|number| tool(&format!("t{number}"))).collect();
        format!(r#"{{"tools":[{}]}}"#, tools.join(","))
    };
    assert_eq!(listed(&listing(page).0).await.len(), 10_000);
}

/// A server that reports changes without end has its lists requested at a bounded rate.
#[tokio::test(start_paused = true)]
async fn a_flood_of_changes_is_merged() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let server = Server::builder("liar", "1")
        .notification_options(duplexer::server::NotificationOptions::all())
        .subscriptions(MemoryBus::new())
        .on(methods::ToolsList, move |_: PaginatedParams| {
            counted.fetch_add(1, Ordering::SeqCst);
            let text = format!(r#"{{"tools":[{}]}}"#, tool("t"));
            async move { Ok::<_, McpError>(Reply::<ListToolsResult>::Other(Outcome::raw(text))) }
        })
        .while_running(|cx| async move {
            loop {
                cx.server().publish(Event::ToolsChanged).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
        .build()
        .unwrap();
    let remote = proxied(&server, Speaks::OnlyHandshake);
    let gateway = Gateway::new("g", "1").backend(BackendSettings::new("x"), remote);
    let (server, _handle) = gateway.server().unwrap();
    let client = TestClient::connect(&server, client(Era::Handshake)).await.unwrap();
    assert_eq!(client.all_tools().await.unwrap().len(), 1);
    let before = requests.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let more = requests.load(Ordering::SeqCst) - before;
    assert!((1..=101).contains(&more), "{more} requests in 10 s");
    client.close().await;
}

/// Names that are repeated, empty, not strings, or that a terminal would interpret are left out.
#[tokio::test]
async fn invalid_names_are_left_out() {
    let page = |_| {
        let names = ["good", "good", "", "bad\\u001b[2J", "bad\\u202e", "fine/too"];
        let mut tools: Vec<_> = names.map(tool).into();
        tools.push(r#"{"name":7,"inputSchema":{}}"#.to_owned());
        tools.push("null".to_owned());
        format!(r#"{{"tools":[{}]}}"#, tools.join(","))
    };
    assert_eq!(listed(&listing(page).0).await, ["x__good", "x__fine/too"]);
}

#[tokio::test]
async fn results_that_are_no_lists_are_empty_lists() {
    for page in [r#"{"tools":7}"#, "{}", r#"{"tools":[1,2]}"#] {
        assert_eq!(listed(&listing(move |_| page.to_owned()).0).await, [""; 0], "{page}");
    }
}
