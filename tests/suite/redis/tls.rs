//! SCL-80, SCL-89: `rediss://` URLs. The pinned Valkey is built without TLS, so a proxy in front of it ends TLS.

use std::sync::Arc;

use duplexer_core::error::Chain;
use duplexer_redis::{Connect, Shared};
use rcgen::CertifiedKey;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::store::Store;

fn certificate() -> CertifiedKey<rcgen::KeyPair> {
    rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap()
}

/// A proxy that ends TLS, for clients that show a certificate if one is required.
struct TlsProxy {
    port: u16,
    _tasks: JoinSet<()>,
}

impl TlsProxy {
    async fn start(
        store: u16,
        own: &CertifiedKey<rcgen::KeyPair>,
        client: Option<&rcgen::Certificate>,
    ) -> Self {
        let builder = match client {
            None => ServerConfig::builder().with_no_client_auth(),
            Some(client) => {
                let mut roots = RootCertStore::empty();
                roots.add(client.der().clone()).unwrap();
                let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
                ServerConfig::builder().with_client_cert_verifier(verifier)
            }
        };
        let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
        let config = builder.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (node, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                connections.spawn(async move {
                    let Ok(mut node) = acceptor.accept(node).await else { return };
                    let mut store = TcpStream::connect(("127.0.0.1", store)).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut node, &mut store).await;
                });
            }
        });
        Self { port, _tasks: tasks }
    }

    fn connect(&self) -> Connect {
        Shared::connect(format!("rediss://:hunter2@localhost:{}", self.port))
    }
}

async fn refused(connect: Connect) -> String {
    let error = connect.await.unwrap_err();
    let text = Chain(&error).to_string();
    assert!(!text.contains("hunter2"), "{text}");
    text
}

#[tokio::test]
async fn a_store_is_reached_over_tls_if_its_certificate_is_trusted() {
    let Some(store) = Store::start_with("TLS", &["--requirepass", "hunter2"]).await else { return };
    let (own, other) = (certificate(), certificate());
    let proxy = TlsProxy::start(store.port, &own, None).await;
    proxy.connect().tls_roots(own.cert.pem()).await.unwrap();
    for untrusted in [proxy.connect(), proxy.connect().tls_roots(other.cert.pem())] {
        let text = refused(untrusted).await;
        assert!(
            text.starts_with(&format!("no Redis or Valkey answers at localhost:{}", proxy.port)),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_store_can_require_a_certificate() {
    let Some(store) = Store::start_with("TLS of clients", &["--requirepass", "hunter2"]).await else {
        return;
    };
    let (own, client) = (certificate(), certificate());
    let proxy = TlsProxy::start(store.port, &own, Some(&client.cert)).await;
    let connect = || proxy.connect().tls_roots(own.cert.pem());
    connect().tls_client(client.cert.pem(), client.signing_key.serialize_pem()).await.unwrap();
    refused(connect()).await;
    let other = certificate();
    refused(connect().tls_client(other.cert.pem(), other.signing_key.serialize_pem())).await;
}
