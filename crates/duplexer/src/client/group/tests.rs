//! Groups: names, routes, duplicates, and servers that fail.

use duplexer_types::tool::ToolDefinition;
use serde_json::json;

use super::*;
use crate::client::{Change, ServeInProcess as _};
use crate::server::subscriptions::{Event, MemoryBus, SubscriptionBus as _};
use crate::types::subscription::SubscriptionFilter;
use crate::{Json, McpError, Server};
use duplexer_types::methods;
use duplexer_types::page::PaginatedParams;
use duplexer_types::tool::{CallToolParams, ListToolsResult};

/// A server with one tool, which answers with the name of the server and its own name.
fn server(name: &'static str, tool: &'static str) -> Server {
    Server::builder(name, "0")
        .on(methods::ToolsList, move |_: PaginatedParams| {
            let tools = vec![ToolDefinition::new(tool, Json::object())];
            std::future::ready(Ok::<_, McpError>(ListToolsResult::new(tools)))
        })
        .on(methods::ToolsCall, move |params: CallToolParams| {
            let text = format!("{name} {}", params.name);
            std::future::ready(Ok::<_, McpError>(CallToolResult::text(text)))
        })
        .build()
        .unwrap()
}

fn naming(name: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Naming {
    Arc::new(name)
}

async fn group(naming: Naming, servers: &[(&'static str, &'static str)]) -> ClientGroup {
    let mut members = Vec::new();
    for (name, tool) in servers {
        let client = Client::builder("test", "0").connect(server(name, tool).in_process()).await.unwrap();
        members.push(((*name).to_owned(), client));
    }
    ClientGroup { members, failures: Vec::new(), naming, routes: Routes::default() }
}

/// CLT-12: tools of several servers have names of the group, and calls reach the server that has the tool.
#[tokio::test]
async fn calls_are_routed_by_their_name_in_the_group() {
    let group =
        group(naming(|server, name| format!("{server}__{name}")), &[("a", "run"), ("b", "run")]).await;
    let text = group.call_tool("b__run", json!({})).await.unwrap().to_text();
    assert_eq!(text, "b run");
    let listing = group.tools().await;
    let names: Vec<_> = listing.items.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a__run", "b__run"]);
    assert!(listing.failures.is_empty());
    let unknown = group.call_tool("c__run", ()).await.unwrap_err();
    assert_eq!(unknown.to_string(), "no server of the group has the tool `c__run`");
    let resource = group.read_resource("file:///x").await.unwrap_err();
    assert_eq!(resource.to_string(), "no server of the group has the resource `file:///x`");
    group.close().await;
}

/// CLT-12: a name that two servers have is an error, and the first keeps it.
#[tokio::test]
async fn duplicate_names_are_failures_of_the_later_server() {
    let group = group(naming(|_, name| name.to_owned()), &[("a", "run"), ("b", "run"), ("c", "stop")]).await;
    let listing = group.tools().await;
    assert_eq!(listing.items.len(), 2);
    let (server, failure) = &listing.failures[0];
    assert_eq!(server, "b");
    assert_eq!(failure.to_string(), "`run` of the server `b` has the same name as an item of the server `a`");
    assert_eq!(group.call_tool("run", ()).await.unwrap().to_text(), "a run");
    assert_eq!(group.call_tool("stop", ()).await.unwrap().to_text(), "c stop");
}

/// CLT-12: a server that fails does not fail the others, neither at connect nor later.
#[tokio::test]
async fn one_server_that_fails_does_not_fail_the_others() {
    let builder = ClientGroup::builder(Client::builder("test", "0"));
    let twice = builder.server("a", "http://127.0.0.1:1").server("a", "http://127.0.0.1:1");
    let twice = twice.connect().await.unwrap_err();
    assert_eq!(twice.to_string(), "the group has two servers with the name `a`");
    let failed = ClientGroup::builder(Client::builder("test", "0")).server("x", "not a url").connect().await;
    let failed = failed.unwrap();
    assert_eq!(failed.failures().len(), 1);
    assert!(failed.failures()[0].1.to_string().starts_with("`not a url` is not a URL"));

    let group = group(naming(|server, name| format!("{server}/{name}")), &[("a", "run"), ("b", "run")]).await;
    assert_eq!(group.tools().await.items.len(), 2);
    group.client("a").unwrap().close().await.unwrap();
    let listing = group.tools().await;
    assert_eq!((listing.items.len(), listing.failures.len()), (1, 1));
    assert_eq!(listing.failures[0].0, "a");
    assert_eq!(group.call_tool("b/run", ()).await.unwrap().to_text(), "b run");
    assert!(matches!(group.call_tool("a/run", ()).await, Err(GroupError::Client(_))));
}

#[tokio::test]
async fn changes_of_a_group_name_their_server() {
    let bus = MemoryBus::new();
    let server = Server::builder("a", "0").subscriptions(bus.clone()).tool(noop).build().unwrap();
    let client = Client::builder("test", "0").connect(server.in_process()).await.unwrap();
    let quiet = Client::builder("test", "0").connect(self::server("b", "run").in_process()).await.unwrap();
    let members = vec![("a".to_owned(), client), ("b".to_owned(), quiet)];
    let naming = naming(|_, name| name.to_owned());
    let group = ClientGroup { members, failures: Vec::new(), naming, routes: Routes::default() };
    let mut changes = group.changes(&SubscriptionFilter::new().tools_list_changed(true));
    // The subscription opens in a task: publish until it hears of it.
    let change = loop {
        bus.publish(Event::ToolsChanged).await.unwrap();
        tokio::select! {
            biased;
            change = changes.next() => break change,
            () = tokio::task::yield_now() => {}
        }
    };
    assert_eq!(change, Some(("a".to_owned(), Change::Tools)));
    group.close().await;
    assert_eq!(changes.next().await, None);
}

/// Does nothing.
#[crate::tool]
async fn noop() -> String {
    String::new()
}
