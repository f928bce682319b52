//! Catalogs that change while the server runs, and that differ between callers.

use std::sync::{Arc, Mutex};

use duplexer::client::ServerNotification;
use duplexer::server::CatalogItem;
use duplexer::testing::TestClient;
use duplexer::{Context, Prompt, Resource, Server, Tool, ToolError, tool};
use duplexer_types::error::ErrorCode;
use duplexer_types::version::Era;
use duplexer_types::wire::{CacheScope, Freshness};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::common::{both, call, options, refusal, text, try_call};

fn server() -> Server {
    let extra = || Tool::new("extra", || async { "extra" });
    Server::builder("test", "0")
        .dynamic()
        .tool(Tool::new("first", || async { "first" }))
        .tool(Tool::new("add", move |cx: Context<()>| async move {
            let catalog = cx.catalog()?;
            catalog.edit(|edit| edit.add_tool(extra())).await.map_err(ToolError::from)
        }))
        .tool(Tool::new("change", |cx: Context<()>| async move {
            let catalog = cx.catalog()?;
            let changed = catalog.edit(|edit| {
                edit.disable_tool("first")?;
                edit.remove_tool("extra")
            });
            changed.await.map_err(ToolError::from)
        }))
        .tool(Tool::new("restore", |cx: Context<()>| async move {
            let catalog = cx.catalog()?;
            catalog
                .edit(|edit| {
                    edit.enable_tool("first")?;
                    edit.add_prompt(Prompt::new("new", || async { "new" }))?;
                    edit.add_resource(Resource::text("new://one", "new")).map_err(ToolError::from)
                })
                .await
        }))
        .build()
        .unwrap()
}

/// Deletes everything.
#[tool(destructive)]
async fn purge(cx: Context) -> bool {
    cx.state().get::<u8>().is_some()
}

/// Adds `purge` to the catalog.
#[tool]
async fn unlock(cx: Context) -> Result<(), ToolError> {
    cx.catalog()?.edit(|edit| edit.replace_tool(purge)).await?;
    Ok(())
}

/// The tool of the guide: a context of any state edits the catalog of the server that its handler belongs to.
#[tokio::test]
async fn a_context_of_any_state_edits_its_own_catalog() {
    for state in [false, true] {
        let house = Server::builder("house", "0").dynamic();
        let server = if state { house.state(7_u8).tool(unlock).build() } else { house.tool(unlock).build() };
        both(&server.unwrap(), async |client, _| {
            assert_eq!(call(client, "unlock", json!({})).await.is_error, None);
            assert_eq!(text(&call(client, "purge", json!({})).await), state.to_string());
        })
        .await;
    }
    let nested = Server::builder("inner", "0").dynamic().tool(unlock);
    let outer = Server::builder("outer", "0").dynamic().nest("house", nested).state(7_u8);
    both(&outer.build().unwrap(), async |client, _| {
        assert_eq!(call(client, "house_unlock", json!({})).await.is_error, None);
        assert_eq!(names(client).await, ["house_unlock", "house_purge"]);
    })
    .await;
}

async fn names(client: &TestClient) -> Vec<String> {
    client.all_tools().await.unwrap().into_iter().map(|tool| tool.name).collect()
}

/// Peers B2: add, remove, disable, enable; atomically and in order.
#[tokio::test]
async fn tools_come_and_go() {
    for era in [Era::Handshake, Era::Envelope] {
        let client = &TestClient::connect(&server(), options(era)).await.unwrap();
        assert_eq!(call(client, "add", json!({})).await.is_error, None);
        assert_eq!(text(&call(client, "extra", json!({})).await), "extra");
        let again = call(client, "add", json!({})).await;
        assert_eq!(
            (again.is_error, text(&again)),
            (Some(true), "there are two tools 'extra': rename one of them")
        );
        call(client, "change", json!({})).await;
        assert_eq!(names(client).await, ["add", "change", "restore"]);
        for gone in ["first", "extra"] {
            assert_eq!(refusal(try_call(client, gone, json!({})).await).code, ErrorCode::INVALID_PARAMS);
        }
        assert_eq!(
            call(client, "change", json!({})).await.is_error,
            Some(true),
            "there is no extra any more"
        );
        call(client, "restore", json!({})).await;
        assert_eq!(names(client).await, ["first", "add", "change", "restore"], "in its old place");
        assert_eq!(client.all_prompts().await.unwrap().len(), 1);
        assert_eq!(client.all_resources().await.unwrap().len(), 1);
    }
}

/// A tool that signals its start and waits for permission to finish.
fn slow(begun: &Arc<Notify>, resume: &Arc<Notify>) -> Tool<()> {
    let (begun, resume) = (Arc::clone(begun), Arc::clone(resume));
    Tool::new("slow", move || {
        let (begun, resume) = (Arc::clone(&begun), Arc::clone(&resume));
        async move {
            begun.notify_one();
            resume.notified().await;
            "finished"
        }
    })
}

/// Replaces one item of every kind, and removes `slow`.
async fn swap(cx: Context<()>) -> Result<String, ToolError> {
    let catalog = cx.catalog()?;
    let changed = catalog.edit(|edit| {
        edit.remove_tool("slow")?;
        edit.replace_tool(Tool::new("swapped", || async { "new" }))?;
        edit.replace_prompt(Prompt::new("one", || async { "second" }))?;
        edit.replace_resource(Resource::text("a://one", "second"))?;
        edit.replace_resource(Resource::template("a://{x}/y", |_: Value| async { "second" }))?;
        // APP-02: a missing view is detected here too.
        let lost = edit.add_tool(Tool::new("lost", || async {}).view("ui://lost"));
        Ok::<_, ToolError>(lost.unwrap_err().to_string())
    });
    changed.await
}

/// Calls in flight finish on the snapshot they began with; a replaced item keeps its position.
#[tokio::test]
async fn a_call_in_flight_finishes_although_its_tool_is_removed() {
    for era in [Era::Handshake, Era::Envelope] {
        let (begun, resume) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let server = Server::builder("test", "0")
            .dynamic()
            .tool(slow(&begun, &resume))
            .tool(Tool::new("swap", swap))
            .prompt(Prompt::new("one", || async { "first" }))
            .prompt(Prompt::new("two", || async { "first" }))
            .resource(Resource::text("a://one", "first"))
            .resource(Resource::template("a://{x}/y", |_: Value| async { "first" }));
        let client = &TestClient::connect(&server.build().unwrap(), options(era)).await.unwrap();
        let change = async {
            begun.notified().await;
            let lost = call(client, "swap", json!({})).await;
            assert!(text(&lost).contains("'ui://lost' is not registered"), "{lost:?}");
            assert!(try_call(client, "slow", json!({})).await.is_err());
            resume.notify_one();
        };
        let (slow, ()) = tokio::join!(call(client, "slow", json!({})), change);
        assert_eq!(text(&slow), "finished");
        assert_eq!(names(client).await, ["swap", "swapped"]);
        let prompts = client.all_prompts().await.unwrap();
        assert_eq!(prompts.iter().map(|prompt| &*prompt.name).collect::<Vec<_>>(), ["one", "two"]);
        for uri in ["a://one", "a://x/y"] {
            let read = client.read_resource(uri).await.unwrap();
            assert!(format!("{read:?}").contains("second"), "{uri}");
        }
    }
}

/// MCPS-04 (deviation), P-TOOL-17, P-LEG-26: clients are notified once per edit.
#[tokio::test]
async fn a_client_is_notified_of_changes() {
    let received = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&received);
    let options = options(Era::Handshake).on_notification(move |notification: ServerNotification| {
        log.lock().unwrap().push(format!("{notification:?}"));
    });
    let client = TestClient::connect(&server(), options).await.unwrap();
    assert_eq!(client.server_capabilities().tools.as_ref().unwrap().list_changed, Some(true));
    call(&client, "add", json!({})).await;
    call(&client, "change", json!({})).await;
    for _ in 0..1000 {
        if received.lock().unwrap().len() >= 2 {
            break;
        }
        client.ping().await.unwrap();
    }
    let received = received.lock().unwrap().clone();
    assert!(
        !received.is_empty() && received.len() <= 2 && received.iter().all(|one| one.contains("Tools")),
        "{received:?}"
    );
    client.close().await;
}

/// P-CACHE-3, P-TOOL-7: a caller cannot use what it cannot see, and lists are private.
#[tokio::test]
async fn what_is_not_seen_cannot_be_used() {
    let server = Server::builder("test", "0")
        .tool(Tool::new("open", || async { "open" }))
        .tool(Tool::new("admin", || async { "admin" }))
        .resource(Resource::text("secret://one", "secret"))
        .resource(Resource::text("open://one", "open"))
        .cache_hint("resources/read", Freshness { ttl_ms: Some(1000), scope: Some(CacheScope::Public) })
        .prompt(Prompt::new("hidden", || async { "hidden" }))
        .visible(|cx, offered| {
            let admin = cx.principal().is_some();
            match offered {
                CatalogItem::Tool(tool) => admin || tool.name != "admin",
                CatalogItem::Resource(uri) => admin || uri.starts_with("open"),
                _ => admin,
            }
        })
        .build()
        .unwrap();
    both(&server, async |client, era| {
        assert_eq!(names(client).await, ["open"]);
        assert_eq!(text(&call(client, "open", json!({})).await), "open");
        let error = refusal(try_call(client, "admin", json!({})).await);
        assert_eq!(error.message, "Unknown tool: admin", "as if it were not there");
        assert!(client.read_resource("secret://one").await.is_err());
        assert_eq!(client.all_resources().await.unwrap().len(), 1);
        assert!(client.all_prompts().await.unwrap().is_empty());
        if era == Era::Envelope {
            let page = client.list_tools().await.unwrap();
            assert_eq!(page.cache_scope, Some(CacheScope::Private));
            let read = client.read_resource("open://one").await.unwrap();
            assert_eq!(read.cache_scope, Some(CacheScope::Private), "whatever the hint says");
            assert_eq!(read.ttl_ms, Some(1000));
        }
    })
    .await;
}
