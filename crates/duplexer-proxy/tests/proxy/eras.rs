//! Clients and servers of each era: what a client sees does not depend on the era of the server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::client::prelude::*;
use duplexer::types::completion::PromptReference;
use duplexer::types::logging::LoggingLevel;
use duplexer::types::version::Era;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{Speaks, client, everything, proxied, text, through, values};

/// Runs a check with a client of each era and a server of each.
async fn each<F: Future<Output = ()>>(check: impl Fn(Era, Speaks) -> F) {
    for era in [Era::Handshake, Era::Envelope] {
        for speaks in [Speaks::Both, Speaks::OnlyHandshake, Speaks::OnlyEnvelope] {
            let run = Box::pin(check(era, speaks));
            timeout(Duration::from_secs(60), run)
                .await
                .unwrap_or_else(|_| panic!("{era:?} {speaks:?} hangs"));
        }
    }
}

#[tokio::test]
async fn a_client_uses_what_the_server_offers() {
    each(|era, speaks| async move {
        let place = format!("{era:?} {speaks:?}");
        let client = through(proxied(&everything(), speaks), client(era)).await;
        assert_eq!(client.era(), era);
        assert_eq!(client.server_info().unwrap().name, "everything", "{place}");
        assert_eq!(client.instructions(), Some("Use it."), "{place}");
        assert!(client.server_capabilities().tools.is_some(), "{place}");
        let tools = client.all_tools().await.unwrap();
        assert!(tools.iter().any(|tool| tool.name == "add" && tool.description.as_deref() == Some("Adds.")));
        let sum = client.call_tool("add", json!({ "a": 2, "b": 3 })).await.unwrap();
        assert_eq!((text(&sum.content), sum.is_error), ("5".to_owned(), None), "{place}");
        let failed = client.call_tool("fail", ()).await.unwrap();
        assert_eq!(failed.is_error, Some(true), "{place}");
        let read = client.read_resource("note://two").await.unwrap();
        assert!(format!("{read:?}").contains("two"), "{place}");
        let prompt = client.get_prompt("greet", [("name", "ada")]).await.unwrap();
        assert!(format!("{prompt:?}").contains("Greet ada"), "{place}");
        let completed = client.complete(PromptReference::new("greet"), "name", "a").await.unwrap();
        assert_eq!(values(&completed), ["ada", "bob"], "{place}");
        let custom = duplexer::dispatch::OutboundRequest::new("com.example/echo").params(json!({ "x": 1 }));
        let echo = client.request_custom(custom).await.unwrap();
        assert_eq!(echo.member("unknown"), Some("[1,null]"), "{place}");
        let unknown = client.call_tool("none", ()).await.unwrap_err().to_string();
        assert!(unknown.contains("none"), "{place}: {unknown}");
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_server_asks_its_client() {
    each(|era, speaks| async move {
        let client = through(proxied(&everything(), speaks), client(era)).await;
        let booked = client.call_tool("book", ()).await.unwrap();
        assert_eq!(text(&booked.content), r#"Ok("7a")"#, "{era:?} {speaks:?}");
        let roots = client.call_tool("roots", ()).await.unwrap();
        assert_eq!(text(&roots.content), "file:///work", "{era:?} {speaks:?}");
        client.close().await;
    })
    .await;
}

/// A client that cannot be asked gets the refusal of the server, not a question.
#[tokio::test]
async fn a_client_without_the_capability_is_not_asked() {
    each(|era, speaks| async move {
        let silent = match era {
            Era::Handshake => Client::builder("t", "1").negotiation(Negotiation::Handshake),
            Era::Envelope => Client::builder("t", "1"),
        };
        let client = through(proxied(&everything(), speaks), silent).await;
        let refused = client.call_tool("book", ()).await;
        let text = refused.map_or_else(|error| error.to_string(), |result| text(&result.content));
        assert!(text.contains("declare"), "{era:?} {speaks:?}: {text}");
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn progress_and_log_messages_arrive_before_the_result() {
    each(|era, speaks| async move {
        let logged = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&logged);
        let builder = client(era)
            .log_level(LoggingLevel::Warning)
            .on_log(move |message| log.lock().unwrap().push(message.data.to_string()));
        let client = through(proxied(&everything(), speaks), builder).await;
        if era == Era::Handshake {
            client.set_log_level(LoggingLevel::Warning).await.unwrap();
        }
        let reports = Arc::new(Mutex::new(Vec::new()));
        let reported = Arc::clone(&reports);
        let counted = client.call_tool("count", ()).on_progress(move |report| {
            reported.lock().unwrap().push((report.progress, report.total, report.message));
        });
        assert_eq!(text(&counted.await.unwrap().content), "counted");
        let expected: Vec<_> =
            [1.0, 2.0, 3.0].map(|step| (step, Some(3.0), Some("step".to_owned()))).into_iter().collect();
        assert_eq!(*reports.lock().unwrap(), expected, "{era:?} {speaks:?}");
        client.call_tool("log", ()).await.unwrap();
        assert_eq!(*logged.lock().unwrap(), [r#""careful""#], "{era:?} {speaks:?}");
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn changes_reach_subscribed_clients() {
    each(|era, speaks| async move {
        let client = through(proxied(&everything(), speaks), client(era)).await;
        let filter = SubscriptionFilter::new()
            .tools_list_changed(true)
            .resource_subscriptions(["note://one".to_owned()]);
        let mut changes = client.changes(filter).await.unwrap();
        client.call_tool("touch", ()).await.unwrap();
        let first = changes.next().await.unwrap().unwrap();
        assert_eq!(first, Change::Resource("note://one".to_owned()), "{era:?} {speaks:?}");
        client.call_tool("grow", ()).await.unwrap();
        assert_eq!(changes.next().await.unwrap().unwrap(), Change::Tools, "{era:?} {speaks:?}");
        assert!(client.list_tools().fresh().await.unwrap().tools.iter().any(|tool| tool.name == "extra"));
        client.close().await;
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    each(|era, speaks| async move {
        let (sender, mut cancelled) = mpsc::channel(1);
        let slow = duplexer::Tool::new("slow", move |_: duplexer::Context| {
            let guard = SendOnDrop(sender.clone());
            async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            }
        });
        let server = duplexer::Server::builder("slow", "1").tool(slow).build().unwrap();
        let client = through(proxied(&server, speaks), client(era)).await;
        let call = client.call_tool("slow", ()).timeout(Duration::from_millis(50)).await;
        assert!(call.is_err());
        timeout(Duration::from_secs(10), cancelled.recv()).await.expect("the server hears of it").unwrap();
        client.close().await;
    })
    .await;
}

struct SendOnDrop(mpsc::Sender<()>);

impl Drop for SendOnDrop {
    fn drop(&mut self) {
        let _ = self.0.try_send(());
    }
}
