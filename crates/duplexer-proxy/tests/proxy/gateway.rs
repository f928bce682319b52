//! Gateways: names, lists, changes, health, and servers that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duplexer::client::prelude::*;
use duplexer::proxy::{BackendSettings, Gateway, Remote};
use duplexer::testing::TestClient;
use duplexer::types::completion::PromptReference;
use duplexer::types::version::Era;
use duplexer::{Resource, Server, Tool};
use serde_json::json;
use tokio::time::timeout;

use crate::support::{Speaks, client, everything, proxied, text, values};

fn small(name: &'static str) -> Server {
    Server::builder(name, "1")
        .tool(Tool::new("who", move || async move { name }))
        .tool(Tool::new("secret", || async { "s" }))
        .resource(Resource::text(format!("{name}://about"), name))
        .resource(Resource::text("same://uri", name))
        .build()
        .unwrap()
}

fn refusing() -> Remote {
    Remote::new(|_: ClientBuilder| async { Err::<Client, BoxError>("it is switched off".into()) })
}

fn hanging() -> Remote {
    Remote::new(|_: ClientBuilder| std::future::pending::<Result<Client, BoxError>>())
}

async fn names(client: &Client) -> Vec<String> {
    client.list_tools().fresh().await.unwrap().tools.into_iter().map(|tool| tool.name).collect()
}

#[tokio::test]
async fn many_servers_are_one() {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::Both, Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let gateway = Gateway::new("office", "1")
                .backend(BackendSettings::new("a"), proxied(&everything(), speaks))
                .backend(BackendSettings::new("b").prefix("b.").deny(["sec*"]), proxied(&small("b"), speaks))
                .backend(BackendSettings::new("c").prefix("").allow(["who"]), proxied(&small("c"), speaks));
            let (server, _handle) = gateway.server().unwrap();
            let client = TestClient::connect(&server, client(era)).await.unwrap();
            let tools = names(&client).await;
            assert!(tools.contains(&"a__add".to_owned()), "{tools:?}");
            assert_eq!(tools[tools.len() - 2..], ["b.who", "who"], "{era:?} {speaks:?}");
            let call = async |name: &str| text(&client.call_tool(name, ()).await.unwrap().content);
            assert_eq!((call("b.who").await, call("who").await), ("b".to_owned(), "c".to_owned()));
            assert_eq!(call("a__book").await, r#"Ok("7a")"#, "{era:?} {speaks:?}");
            let sum = client.call_tool("a__add", json!({ "a": 2, "b": 3 })).await.unwrap();
            assert_eq!(text(&sum.content), "5");
            for denied in ["b.secret", "secret", "a__none", "none"] {
                let error = client.call_tool(denied, ()).await.unwrap_err().to_string();
                assert!(error.contains(denied), "{error}");
            }
            let read = async |uri: &str| format!("{:?}", client.read_resource(uri).await.unwrap());
            assert!(read("b://about").await.contains("\"b\""));
            assert!(read("same://uri").await.contains("\"b\""), "the first server that has a URI answers");
            assert!(read("note://two").await.contains("two"));
            assert!(client.read_resource("no://where").await.is_err());
            let prompt = client.get_prompt("a__greet", [("name", "ada")]).await.unwrap();
            assert!(format!("{prompt:?}").contains("Greet ada"));
            let found = client.complete(PromptReference::new("a__greet"), "name", "a").await.unwrap();
            assert_eq!(values(&found), ["ada", "bob"]);
            client.close().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fails_or_hangs_does_not_hold_up_the_rest() {
    let gateway = Gateway::new("office", "1")
        .backend(BackendSettings::new("down"), refusing())
        .backend(BackendSettings::new("stuck"), hanging().open_timeout(Duration::from_secs(20)))
        .backend(BackendSettings::new("b"), proxied(&small("b"), Speaks::Both));
    let (server, handle) = gateway.server().unwrap();
    let client = TestClient::connect(&server, client(Era::Envelope)).await.unwrap();
    let listed = timeout(Duration::from_secs(10), names(&client)).await.expect("lists do not hang");
    assert_eq!(listed, ["b__who", "b__secret"]);
    assert_eq!(text(&client.call_tool("b__who", ()).await.unwrap().content), "b");
    // A server that hangs has had its time: nothing waits for it again.
    let begun = tokio::time::Instant::now();
    assert_eq!(names(&client).await, ["b__who", "b__secret"]);
    assert!(client.call_tool("stuck__any", ()).await.unwrap_err().to_string().contains("stuck__any"));
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    tokio::time::sleep(Duration::from_secs(100)).await;
    let health = handle.health();
    let down: Vec<_> = health.iter().map(|health| (health.name.as_str(), health.is_up)).collect();
    assert_eq!(down, [("down", false), ("stuck", false), ("b", true)]);
    assert!(health[0].failure.as_ref().unwrap().contains("switched off"), "{health:?}");
    assert!(health[1].failure.as_ref().unwrap().contains("no session within"), "{health:?}");
    client.close().await;
}

/// Two servers that have a name in common: the first one has it, in lists and for calls.
#[tokio::test]
async fn a_name_of_two_servers_is_that_of_the_first() {
    let settings = |name: &str| BackendSettings::new(name).prefix("");
    let gateway = Gateway::new("office", "1")
        .backend(settings("a"), proxied(&small("a"), Speaks::Both))
        .backend(settings("b"), proxied(&small("b"), Speaks::Both));
    let (server, _handle) = gateway.server().unwrap();
    let client = TestClient::connect(&server, client(Era::Envelope)).await.unwrap();
    assert_eq!(names(&client).await, ["who", "secret"]);
    assert_eq!(text(&client.call_tool("who", ()).await.unwrap().content), "a");
    client.close().await;
}

#[tokio::test]
async fn changes_of_servers_are_passed_on() {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let shared = everything().start().await.unwrap();
            let one = Remote::new(move |builder: ClientBuilder| {
                let shared = shared.clone();
                async move { crate::support::open_running(&shared, speaks, builder).await }
            });
            let gateway = Gateway::new("office", "1").backend(BackendSettings::new("a"), one);
            let (server, _handle) = gateway.server().unwrap();
            let client = TestClient::connect(&server, client(era)).await.unwrap();
            assert!(names(&client).await.contains(&"a__grow".to_owned()));
            let filter = SubscriptionFilter::new()
                .tools_list_changed(true)
                .resource_subscriptions(["note://one".to_owned()]);
            let mut changes = client.changes(filter).await.unwrap();
            client.call_tool("a__grow", ()).await.unwrap();
            let next = async |changes: &mut duplexer::client::Changes| {
                timeout(Duration::from_secs(10), changes.next()).await.expect("a change").unwrap().unwrap()
            };
            while next(&mut changes).await != Change::Tools {}
            while !names(&client).await.contains(&"a__extra".to_owned()) {
                next(&mut changes).await;
            }
            // The subscription at the server is opened beside the client's own.
            let updated = async {
                loop {
                    client.call_tool("a__touch", ()).await.unwrap();
                    if let Ok(Some(Ok(Change::Resource(uri)))) =
                        timeout(Duration::from_millis(100), changes.next()).await
                    {
                        return uri;
                    }
                }
            };
            assert_eq!(timeout(Duration::from_secs(20), updated).await.unwrap(), "note://one");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn servers_are_replaced_while_the_gateway_runs() {
    let settings = |name: &str| BackendSettings::new(name).fingerprint("1");
    let gateway = Gateway::new("office", "1").backend(settings("a"), proxied(&small("a"), Speaks::Both));
    let (server, handle) = gateway.server().unwrap();
    let client = TestClient::connect(&server, client(Era::Handshake)).await.unwrap();
    assert_eq!(names(&client).await, ["a__who", "a__secret"]);
    let mut changes = client.changes(SubscriptionFilter::new().tools_list_changed(true)).await.unwrap();
    let was_opened = Arc::new(AtomicBool::new(false));
    let opened = Arc::clone(&was_opened);
    let untouched = Remote::new(move |_: ClientBuilder| {
        opened.store(true, Ordering::SeqCst);
        async { Err::<Client, BoxError>("a server with the same settings is kept".into()) }
    });
    let other = proxied(&small("b"), Speaks::Both);
    handle.replace(vec![(settings("b"), other), (settings("a"), untouched)]).await;
    let expected = ["b__who", "b__secret", "a__who", "a__secret"];
    let replaced = async {
        while names(&client).await != expected {
            changes.next().await.unwrap().unwrap();
        }
    };
    timeout(Duration::from_secs(20), replaced).await.expect("the list changes");
    assert_eq!(text(&client.call_tool("b__who", ()).await.unwrap().content), "b");
    assert_eq!(text(&client.call_tool("a__who", ()).await.unwrap().content), "a");
    assert!(!was_opened.load(Ordering::SeqCst));
    handle.replace(Vec::new()).await;
    let gone = async { while !names(&client).await.is_empty() {} };
    timeout(Duration::from_secs(20), gone).await.expect("the list is empty");
    client.close().await;
}

/// A remote server is a part of another one, under a prefix or without.
#[tokio::test]
async fn a_remote_server_is_merged_and_nested() {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let server = Server::builder("near", "1")
                .tool(Tool::new("here", || async { "near" }))
                .merge(proxied(&everything(), speaks).part())
                .nest("b", proxied(&small("b"), speaks).part())
                .build()
                .unwrap();
            let client = TestClient::connect(&server, client(era)).await.unwrap();
            let complete = async {
                loop {
                    let listed = names(&client).await;
                    let all = ["here", "add", "b_who"];
                    if all.iter().all(|name| listed.iter().any(|listed| listed == name)) {
                        return;
                    }
                    tokio::task::yield_now().await;
                }
            };
            timeout(Duration::from_secs(20), complete).await.expect("all tools are listed");
            let call = async |name: &str| text(&client.call_tool(name, ()).await.unwrap().content);
            assert_eq!((call("here").await, call("b_who").await), ("near".to_owned(), "b".to_owned()));
            assert_eq!(call("book").await, r#"Ok("7a")"#, "{era:?} {speaks:?}");
            let sum = client.call_tool("add", json!({ "a": 2, "b": 3 })).await.unwrap();
            assert_eq!(text(&sum.content), "5");
            assert!(format!("{:?}", client.read_resource("note://two").await.unwrap()).contains("two"));
            let prompt = client.get_prompt("greet", [("name", "ada")]).await.unwrap();
            assert!(format!("{prompt:?}").contains("Greet ada"));
            let found = client.complete(PromptReference::new("greet"), "name", "a").await.unwrap();
            assert_eq!(values(&found), ["ada", "bob"]);
            client.close().await;
        }
    }
}
