//! The client and the server of this project, in sessions over HTTP, through a relay that can cut every connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use duplexer_client::{Client, ClientError, Negotiation, ServerNotification};
use duplexer_core::error::McpError;
use duplexer_http::{MemoryEventStore, StreamableHttp};
use duplexer_http_client::HttpTransport;
use duplexer_server::{Context, Server};
use duplexer_types::methods;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::tool::{CallToolParams, CallToolResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::{ENVELOPE, HANDSHAKE};

/// Events that handlers wait for, and values that they return.
#[derive(Default)]
struct Stage {
    go: Notify,
    closed: Notify,
    /// Number of connections that have been cut.
    cuts: AtomicUsize,
}

async fn call(cx: Context<Arc<Stage>>, params: CallToolParams) -> Result<CallToolResult, McpError> {
    let (stage, connection) = (Arc::clone(cx.state()), cx.connection());
    Ok(CallToolResult::text(match &*params.name {
        "announce" => {
            connection.tools_changed().await;
            String::new()
        }
        "slow" => {
            cx.progress(1.0).await;
            stage.go.notified().await;
            cx.progress(2.0).await;
            "done".to_owned()
        }
        "roots" => connection.list_roots().await?.roots.len().to_string(),
        "hook" => {
            connection.on_close(move || async move { stage.closed.notify_one() });
            String::new()
        }
        _ => connection.session_id().unwrap_or("none").to_owned(),
    }))
}

/// A server, and a relay in front of it.
struct Site {
    stage: Arc<Stage>,
    address: SocketAddr,
    relay: SocketAddr,
    cut: Arc<Notify>,
    _tasks: JoinSet<()>,
}

impl Site {
    async fn new() -> Self {
        let stage = Arc::<Stage>::default();
        let server = Server::builder("s", "0").state(Arc::clone(&stage)).on(methods::ToolsCall, call);
        let service = StreamableHttp::builder(server.build().unwrap())
            .event_store(MemoryEventStore::new())
            .sse_retry(std::time::Duration::from_millis(1));
        let bound = service.build().unwrap().bind("127.0.0.1:0").await.unwrap();
        let address = bound.local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (relay, cut) = (listener.local_addr().unwrap(), Arc::<Notify>::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { bound.serve_until(std::future::pending()).await });
        tasks.spawn(pass(listener, address, Arc::clone(&cut), Arc::clone(&stage)));
        Self { stage, address, relay, cut, _tasks: tasks }
    }

    async fn client(&self, mode: Negotiation) -> (Client, mpsc::Receiver<ServerNotification>) {
        let (say, heard) = mpsc::channel(64);
        let options = Client::builder("c", "1")
            .negotiation(mode)
            .on_roots(|| async { Ok(ListRootsResult::new(vec![Root::new("file:///a")])) })
            .on_notification(move |received| drop(say.try_send(received)));
        let transport = HttpTransport::new(&format!("http://{}/mcp", self.relay)).unwrap();
        (options.connect(transport).await.unwrap(), heard)
    }

    /// Terminates a session without its client.
    async fn end(&self, session: &str) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "DELETE /mcp HTTP/1.1\r\nhost: localhost\r\nmcp-session-id: {session}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    }
}

/// Forwards connections until they are cut.
async fn pass(listener: TcpListener, to: SocketAddr, cut: Arc<Notify>, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut here, _) = listener.accept().await.unwrap();
        let (cut, stage) = (Arc::clone(&cut), Arc::clone(&stage));
        connections.spawn(async move {
            let cut = cut.notified();
            let mut there = TcpStream::connect(to).await.unwrap();
            tokio::select! {
                // Either side can disconnect in the middle.
                _ = copy_bidirectional(&mut here, &mut there) => {}
                () = cut => drop(stage.cuts.fetch_add(1, Ordering::SeqCst)),
            }
        });
    }
}

async fn tool_text(client: &Client, tool: &str) -> Result<String, ClientError> {
    let result = client.call_tool(tool, ()).await?;
    Ok(serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned())
}

/// Triggers a change notification until the client receives it: one that is sent before the client listens is lost.
async fn wait_for_change(client: &Client, heard: &mut mpsc::Receiver<ServerNotification>) {
    while heard.try_recv().is_ok() {}
    loop {
        tool_text(client, "announce").await.unwrap();
        if let Ok(received) = heard.try_recv() {
            return assert_eq!(received, ServerNotification::ToolsListChanged);
        }
    }
}

/// P-LEG-8, P-LEG-13, P-LEG-22, HTTPL-15, CLT-02: a session carries notifications outside requests, and server requests.
#[tokio::test]
async fn a_session_goes_both_ways() {
    let site = Site::new().await;
    let (client, mut heard) = site.client(Negotiation::Handshake).await;
    assert_eq!(client.protocol_version().as_str(), HANDSHAKE);
    let session = tool_text(&client, "who").await.unwrap();
    assert_eq!((session.len(), tool_text(&client, "who").await.unwrap()), (32, session));
    wait_for_change(&client, &mut heard).await;
    assert_eq!(tool_text(&client, "roots").await.unwrap(), "1");
    // The same endpoint in the other era, for a client that negotiates first.
    let (other, _) = site.client(Negotiation::Auto).await;
    assert_eq!(other.protocol_version().as_str(), ENVELOPE);
    assert_eq!(tool_text(&other, "who").await.unwrap(), "none");
}

/// HTTPL-10, HTTPL-19, HTTPL-20, P-CAN-6, P-LEG-16, P-LEG-18: a cut connection loses neither a response nor an event, nor a
/// notification outside requests.
#[tokio::test]
async fn a_cut_connection_loses_nothing() {
    let site = Site::new().await;
    let (client, mut heard) = site.client(Negotiation::Handshake).await;
    wait_for_change(&client, &mut heard).await;
    let (steps, begun) = (Arc::<Mutex<Vec<f64>>>::default(), Arc::<Notify>::default());
    let (noted, first) = (Arc::clone(&steps), Arc::clone(&begun));
    let slow = client.call_tool("slow", ()).on_progress(move |report| {
        noted.lock().unwrap().push(report.progress);
        first.notify_one();
    });
    let cutting = async {
        begun.notified().await;
        site.cut.notify_waiters();
        site.stage.go.notify_one();
    };
    let (result, ()) = tokio::join!(slow.into_future(), cutting);
    assert_eq!(result.unwrap(), CallToolResult::text("done"));
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0]);
    wait_for_change(&client, &mut heard).await;
    assert!(site.stage.cuts.load(Ordering::SeqCst) >= 2, "the call's stream and the session's stream");
}

/// P-LEG-11, CHTTP-02: a client whose session is gone opens a new one, and its call succeeds there.
#[tokio::test]
async fn a_session_that_is_gone_is_opened_again() {
    let site = Site::new().await;
    let (client, _) = site.client(Negotiation::Handshake).await;
    let session = tool_text(&client, "who").await.unwrap();
    site.end(&session).await;
    let renewed = tool_text(&client, "who").await.unwrap();
    assert_ne!(renewed, session);
    assert_eq!(tool_text(&client, "who").await.unwrap(), renewed);
}

/// P-LEG-12, CHTTP-03, HTTPL-16: closing the client terminates the session on the server, and its hooks run.
#[tokio::test]
async fn closing_ends_the_session() {
    let site = Site::new().await;
    let (client, _) = site.client(Negotiation::Handshake).await;
    tool_text(&client, "hook").await.unwrap();
    client.close().await.unwrap();
    site.stage.closed.notified().await;
}
