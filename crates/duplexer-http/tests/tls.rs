//! TLS through a custom listener.
//!
//! [`Tls`] is complete and can be copied. Handshakes run concurrently, so a peer with a slow handshake does not delay
//! other peers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::McpError;
use duplexer_http::{Listener, StreamableHttp};
use duplexer_server::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, server::TlsStream};

/// Time for the handshake of a peer.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent handshakes. Further peers wait to be accepted.
const HANDSHAKES: usize = 1024;

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Result<io::Result<TlsStream<TcpStream>>, Elapsed>>,
}

impl Tls {
    fn new(tcp: TcpListener, config: ServerConfig) -> Self {
        Self { tcp, acceptor: TlsAcceptor::from(Arc::new(config)), handshakes: JoinSet::new() }
    }
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;

    /// Cancel-safe: pending handshakes stay with the listener.
    async fn accept(&mut self) -> Self::Io {
        loop {
            tokio::select! {
                stream = Listener::accept(&mut self.tcp), if self.handshakes.len() < HANDSHAKES => {
                    self.handshakes.spawn(timeout(HANDSHAKE, self.acceptor.accept(stream)));
                }
                // A peer that fails or gives up affects no other.
                Some(done) = self.handshakes.join_next() => if let Ok(Ok(Ok(stream))) = done {
                    return stream;
                }
            }
        }
    }
}

fn server() -> Server {
    let echo = |params: Value| async move { Ok::<_, McpError>(json!({ "said": params["say"] })) };
    Server::builder("tls", "0").on_custom("x/echo", echo).build().unwrap()
}

/// A self-signed certificate, and the settings of both sides.
fn configs() -> (ServerConfig, ClientConfig) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone()).unwrap();
    let server =
        ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    (server, ClientConfig::builder().with_root_certificates(trusted).with_no_client_auth())
}

fn request() -> String {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "say": "hello", "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "x/echo", "params": params }).to_string();
    let head = [
        "POST /mcp HTTP/1.1",
        "host: localhost",
        "connection: close",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: x/echo",
    ];
    format!("{}\r\ncontent-length: {}\r\n\r\n{body}", head.join("\r\n"), body.len())
}

#[tokio::test]
async fn a_call_is_answered_over_tls_while_another_peer_says_nothing() {
    let (server_config, client_config) = configs();
    let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = tcp.local_addr().unwrap();
    let (end, ended) = oneshot::channel::<()>();
    let service = StreamableHttp::new(server()).with_listener(Tls::new(tcp, server_config));
    let mut serving = JoinSet::new();
    serving.spawn(service.serve_until(async { drop(ended.await) }));

    let _silent = TcpStream::connect(address).await.unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(client_config)).connect(name, stream).await.unwrap();
    stream.write_all(request().as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap()["result"]["said"], "hello");

    end.send(()).unwrap();
    serving.join_next().await.unwrap().unwrap();
}
