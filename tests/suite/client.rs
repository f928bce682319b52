//! Our own client over our own server, in sessions over HTTP, through a relay that can cut every connection.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use duplexer_client::{Client, ClientError, ClientOptions, Mode, ServerNotification};
use duplexer_core::error::{CallError, McpError};
use duplexer_http::{MemoryEvents, StreamableHttp};
use duplexer_http_client::HttpTransport;
use duplexer_server::{Context, Server};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::methods;
use duplexer_types::roots::{ListRootsResult, Root};
use duplexer_types::tool::{CallToolParams, CallToolResult};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

use crate::{ENVELOPE, HANDSHAKE};

/// What handlers wait for, and what they say.
#[derive(Default)]
struct Stage {
    go: Notify,
    closed: Notify,
    /// How many connections have been cut.
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

/// A server, and a relay before it.
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
            .event_store(MemoryEvents::new())
            .retry(std::time::Duration::from_millis(1));
        let bound = service.build().unwrap().bind("127.0.0.1:0").await.unwrap();
        let address = bound.local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (relay, cut) = (listener.local_addr().unwrap(), Arc::<Notify>::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { bound.run(std::future::pending()).await });
        tasks.spawn(pass(listener, address, Arc::clone(&cut), Arc::clone(&stage)));
        Self { stage, address, relay, cut, _tasks: tasks }
    }

    async fn client(&self, mode: Mode) -> (Client, mpsc::Receiver<ServerNotification>) {
        let (say, heard) = mpsc::channel(64);
        let options = ClientOptions::new(Implementation::new("c", "1"))
            .mode(mode)
            .on_roots(|| async { Ok(ListRootsResult::new(vec![Root::new("file:///a")])) })
            .on_notification(move |told| drop(say.try_send(told)));
        let transport = HttpTransport::new(&format!("http://{}/mcp", self.relay)).unwrap();
        (Client::connect(transport, options).await.unwrap(), heard)
    }

    /// Ends a session behind its client's back.
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

/// Passes connections on until they are cut.
async fn pass(listener: TcpListener, to: SocketAddr, cut: Arc<Notify>, stage: Arc<Stage>) {
    let mut connections = JoinSet::new();
    loop {
        let (mut here, _) = listener.accept().await.unwrap();
        let (cut, stage) = (Arc::clone(&cut), Arc::clone(&stage));
        connections.spawn(async move {
            let cut = cut.notified();
            let mut there = TcpStream::connect(to).await.unwrap();
            tokio::select! {
                // Either side may go away in the middle.
                _ = copy_bidirectional(&mut here, &mut there) => {}
                () = cut => drop(stage.cuts.fetch_add(1, Ordering::SeqCst)),
            }
        });
    }
}

async fn said(client: &Client, tool: &str) -> Result<String, ClientError> {
    let result = client.call_tool(CallToolParams::new(tool)).await?;
    Ok(serde_json::to_value(result).unwrap()["content"][0]["text"].as_str().unwrap().to_owned())
}

/// Has the server tell a change until it is heard: what is told before the client listens is lost.
async fn hears(client: &Client, heard: &mut mpsc::Receiver<ServerNotification>) {
    while heard.try_recv().is_ok() {}
    loop {
        said(client, "announce").await.unwrap();
        if let Ok(told) = heard.try_recv() {
            return assert_eq!(told, ServerNotification::ToolsListChanged);
        }
    }
}

/// P-LEG-8, P-LEG-13, P-LEG-22, HTTPL-15, CLT-02: a session from its handshake on: told beside requests, and asked.
#[tokio::test]
async fn a_session_goes_both_ways() {
    let site = Site::new().await;
    let (client, mut heard) = site.client(Mode::Handshake).await;
    assert_eq!(client.protocol_version().as_str(), HANDSHAKE);
    let session = said(&client, "who").await.unwrap();
    assert_eq!((session.len(), said(&client, "who").await.unwrap()), (32, session));
    hears(&client, &mut heard).await;
    assert_eq!(said(&client, "roots").await.unwrap(), "1");
    // The same endpoint in the other era, to a client that asks first.
    let (other, _) = site.client(Mode::Auto).await;
    assert_eq!(other.protocol_version().as_str(), ENVELOPE);
    assert_eq!(said(&other, "who").await.unwrap(), "none");
}

/// HTTPL-10, HTTPL-19, HTTPL-20, P-CAN-6, P-LEG-16, P-LEG-18: a cut connection costs neither an answer nor an event, nor what is
/// told beside requests.
#[tokio::test]
async fn a_cut_connection_loses_nothing() {
    let site = Site::new().await;
    let (client, mut heard) = site.client(Mode::Handshake).await;
    hears(&client, &mut heard).await;
    let (steps, begun) = (Arc::<Mutex<Vec<f64>>>::default(), Arc::<Notify>::default());
    let (noted, first) = (Arc::clone(&steps), Arc::clone(&begun));
    let slow = client.call_tool(CallToolParams::new("slow")).on_progress(move |told| {
        noted.lock().unwrap().push(told.progress);
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
    hears(&client, &mut heard).await;
    assert!(site.stage.cuts.load(Ordering::SeqCst) >= 2, "the call's stream and the one beside it");
}

/// P-LEG-11, CHTTP-02: a client whose session is gone is told so.
#[tokio::test]
async fn a_session_that_is_gone_is_a_clear_error() {
    let site = Site::new().await;
    let (client, _) = site.client(Mode::Handshake).await;
    let session = said(&client, "who").await.unwrap();
    site.end(&session).await;
    match said(&client, "who").await {
        Err(ClientError::Call(CallError::Peer(error))) => {
            assert_eq!((error.code.0, &*error.message), (-32600, "Session terminated"));
        }
        other => panic!("{other:?}"),
    }
}

/// P-LEG-12, CHTTP-03, HTTPL-16: closing the client ends the session at the server, and its hooks run.
#[tokio::test]
async fn closing_ends_the_session() {
    let site = Site::new().await;
    let (client, _) = site.client(Mode::Handshake).await;
    said(&client, "hook").await.unwrap();
    client.close().await.unwrap();
    site.stage.closed.notified().await;
}
