//! Sessions that are lost: calls in flight fail with a clear error, later ones use a new session.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::client::prelude::*;
use duplexer::dispatch::DispatchOptions;
use duplexer::proxy::{Remote, Sessions};
use duplexer::server::driver::StreamServer;
use duplexer::transport::memory;
use duplexer::types::logging::LoggingLevel;
use duplexer::types::version::Era;
use duplexer::{Context, Server, Tool};
use duplexer_core::tasks::TaskTracker;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::support::{client, everything, text, through};

/// A far end whose sessions can be cut, and that can refuse new ones.
#[derive(Clone, Default)]
struct FarEnd {
    sessions: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>>,
    opened: Arc<AtomicUsize>,
    is_down: Arc<AtomicBool>,
}

impl FarEnd {
    fn remote(&self, server: &Server) -> Remote {
        let (far, server) = (self.clone(), server.clone());
        Remote::new(move |builder: ClientBuilder| {
            let (far, server) = (far.clone(), server.clone());
            async move { far.open(&server, builder).await }
        })
    }

    async fn open(&self, server: &Server, builder: ClientBuilder) -> Result<Client, BoxError> {
        if self.is_down.load(Ordering::SeqCst) {
            return Err("it is switched off\x1b[2J".into());
        }
        let running = server.start().await?;
        let (ours, theirs) = memory::pair();
        let (stream, _) = StreamServer::new(&running, theirs, DispatchOptions::default());
        let serving = TaskTracker::new().spawn(async move { drop(stream.run().await) });
        self.sessions.lock().unwrap().push(serving);
        self.opened.fetch_add(1, Ordering::SeqCst);
        Ok(builder.connect(ours).await?)
    }

    fn cut(&self) {
        for session in self.sessions.lock().unwrap().drain(..) {
            session.abort();
        }
    }
}

#[tokio::test]
async fn a_lost_session_is_opened_again() {
    for era in [Era::Handshake, Era::Envelope] {
        let far = FarEnd::default();
        let client = through(far.remote(&everything()), client(era)).await;
        for round in 1..=3 {
            let sum = client.call_tool("add", json!({ "a": round, "b": 1 })).await.unwrap();
            assert_eq!(text(&sum.content), (round + 1).to_string(), "{era:?}");
            far.cut();
            let again = timeout(Duration::from_secs(20), answered(&client)).await;
            assert_eq!(again.expect("a new session is opened"), "2", "{era:?}");
        }
        assert!(far.opened.load(Ordering::SeqCst) >= 4);
        client.close().await;
    }
}

/// A server whose lists never change does not declare that it reports changes. Its restart can change them all the same.
#[tokio::test]
async fn a_client_hears_that_the_lists_of_a_restarted_server_can_change() {
    let server = Server::builder("fixed", "1").tool(Tool::new("add", || async { "2" })).build().unwrap();
    let far = FarEnd::default();
    let client = through(far.remote(&server), client(Era::Handshake)).await;
    let declared = client.server_capabilities();
    assert_eq!(declared.tools.as_ref().and_then(|tools| tools.list_changed), Some(true));
    assert!(declared.prompts.is_none() && declared.resources.is_none());
    let filter = SubscriptionFilter::new().tools_list_changed(true);
    let mut changes = client.changes(filter).await.unwrap();
    far.cut();
    let change = timeout(Duration::from_secs(20), changes.next()).await.expect("a change is reported");
    assert!(matches!(change, Some(Ok(Change::Tools))), "{change:?}");
    client.close().await;
}

/// Calls until there is an answer: a call can still meet the lost session.
async fn answered(client: &Client) -> String {
    loop {
        match client.call_tool("add", json!({ "a": 1, "b": 1 })).await {
            Ok(result) => return text(&result.content),
            Err(error) => assert!(error.to_string().contains("behind this proxy"), "{error}"),
        }
    }
}

#[tokio::test]
async fn a_call_in_flight_fails_when_the_session_is_lost() {
    for era in [Era::Handshake, Era::Envelope] {
        let started = Arc::new(Notify::new());
        let begins = Arc::clone(&started);
        let wait = Tool::new("wait", move |_: Context| {
            let begins = Arc::clone(&begins);
            async move {
                begins.notify_one();
                std::future::pending::<()>().await;
            }
        });
        let server = Server::builder("slow", "1").tool(wait).build().unwrap();
        let far = FarEnd::default();
        let client = through(far.remote(&server), client(era)).await;
        let (call, ()) = tokio::join!(client.call_tool("wait", ()), async {
            started.notified().await;
            far.cut();
        });
        let error = call.unwrap_err().to_string();
        assert!(error.starts_with("The connection to the server behind this proxy was lost"), "{error}");
        client.close().await;
    }
}

/// A server that is down is not tried with every call, and its texts cannot control a terminal.
#[tokio::test]
async fn a_server_that_is_down_is_reported_and_tried_again_later() {
    let far = FarEnd::default();
    let client = through(far.remote(&everything()), client(Era::Handshake)).await;
    far.is_down.store(true, Ordering::SeqCst);
    far.cut();
    let error = loop {
        let error = client.call_tool("add", json!({ "a": 1, "b": 1 })).await.unwrap_err().to_string();
        if error.contains("switched off") {
            break error;
        }
    };
    let expected = r"The server behind this proxy is not available: it is switched off\u{1b}[2J";
    assert!(error.starts_with(expected), "{error}");
    far.is_down.store(false, Ordering::SeqCst);
    let back = timeout(Duration::from_secs(20), answered(&client)).await;
    assert_eq!(back.expect("it is tried again"), "2");
    client.close().await;
}

/// The new session knows the log level and the subscriptions of the earlier one.
#[tokio::test]
async fn a_new_session_gets_the_log_level_and_the_subscriptions() {
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&logged);
    let builder =
        client(Era::Handshake).on_log(move |message| log.lock().unwrap().push(message.data.to_string()));
    let far = FarEnd::default();
    let client = through(far.remote(&everything()), builder).await;
    client.set_log_level(LoggingLevel::Warning).await.unwrap();
    let filter = SubscriptionFilter::new().resource_subscriptions(["note://one".to_owned()]);
    let mut changes = client.changes(filter).await.unwrap();
    far.cut();
    timeout(Duration::from_secs(20), answered(&client)).await.unwrap();
    client.call_tool("log", ()).await.unwrap();
    assert_eq!(*logged.lock().unwrap(), [r#""careful""#]);
    client.call_tool("touch", ()).await.unwrap();
    let change = timeout(Duration::from_secs(10), changes.next()).await.expect("the change arrives");
    assert_eq!(change.unwrap().unwrap(), Change::Resource("note://one".to_owned()));
    client.close().await;
}

/// All clients of a shared session use one, and none of them is asked in the name of another.
#[tokio::test]
async fn clients_can_share_one_session() {
    let far = FarEnd::default();
    let server = far.remote(&everything()).sessions(Sessions::Shared).server().unwrap();
    let running = server.start().await.unwrap();
    let first = duplexer::testing::in_process(&running, client(Era::Handshake)).await.unwrap();
    let second = duplexer::testing::in_process(&running, client(Era::Envelope)).await.unwrap();
    for client in [&first, &second] {
        let sum = client.call_tool("add", json!({ "a": 1, "b": 1 })).await.unwrap();
        assert_eq!(text(&sum.content), "2");
    }
    assert_eq!(far.opened.load(Ordering::SeqCst), 1);
    let refused = first.call_tool("book", ()).await;
    let refused = refused.map_or_else(|error| error.to_string(), |result| text(&result.content));
    assert!(refused.contains("declare"), "{refused}");
    first.close().await.unwrap();
    second.close().await.unwrap();
    running.shutdown().await;
}

/// The sessions of clients without a connection end when they have not been used for a while.
#[tokio::test(start_paused = true)]
async fn idle_sessions_are_closed() {
    let far = FarEnd::default();
    let server = far.remote(&everything()).idle_timeout(Duration::from_secs(60)).server().unwrap();
    let running = server.start().await.unwrap();
    let client = duplexer::testing::in_process(&running, client(Era::Envelope)).await.unwrap();
    client.call_tool("add", json!({ "a": 1, "b": 1 })).await.unwrap();
    let session = far.sessions.lock().unwrap().pop().unwrap();
    assert!(!session.is_finished());
    timeout(Duration::from_secs(600), session).await.expect("the session is closed").unwrap();
    client.call_tool("add", json!({ "a": 1, "b": 1 })).await.unwrap();
    assert_eq!(far.opened.load(Ordering::SeqCst), 2);
    client.close().await.unwrap();
    running.shutdown().await;
}
