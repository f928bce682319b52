//! TLS without a proxy: a listener that accepts with rustls and offers HTTP/2 and HTTP/1.1.
//!
//! Run: `cargo run -p duplexer-examples --bin tls -- cert.pem key.pem`; it listens on port 8443. A certificate for this machine:
//! `openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`
//! Try: `curl --cacert cert.pem https://localhost:8443/livez -i`, and `SSL_CERT_FILE=cert.pem duplexer list https://localhost:8443/mcp`.
//! A slow handshake delays no other one. A renewed certificate is read at the next start, which socket activation makes seamless.

#![expect(clippy::print_stderr, reason = "a program for the terminal")]

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use duplexer::http::{Listener, StreamableHttp};
use duplexer::prelude::*;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{error::Elapsed, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

/// Time for the handshake of a peer.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent handshakes. Further peers wait to be accepted.
const HANDSHAKES: usize = 1024;

struct Tls {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<Result<io::Result<TlsStream<TcpStream>>, Elapsed>>,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;

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

    fn peer_address(io: &Self::Io) -> Option<SocketAddr> {
        io.get_ref().0.peer_addr().ok()
    }
}

fn config(certificate: &str, key: &str) -> Result<ServerConfig, BoxError> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key, rest @ ..] = &arguments[..] else {
        return Err("usage: tls CERT KEY [ADDRESS]".into());
    };
    let address = rest.first().map_or("127.0.0.1:8443", String::as_str);
    let acceptor = TlsAcceptor::from(Arc::new(config(certificate, key)?));
    let tcp = TcpListener::bind(address).await?;
    eprintln!("https://{}/mcp", tcp.local_addr()?);
    let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
    let service = StreamableHttp::new(server);
    let tls = Tls { tcp, acceptor, handshakes: JoinSet::new() };
    Ok(service.with_listener(tls).health_routes().serve().await?)
}
