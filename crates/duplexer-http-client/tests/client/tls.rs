//! https with the default settings: certificates are checked against the roots of the platform.

use std::process::Command;
use std::sync::Arc;

use duplexer_client::ErrorKind;
use duplexer_http_client::HttpTransport;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::script::options;

/// Set for the process that plays the client: the URL of the server.
const URL: &str = "DUPLEXER_TEST_TLS_URL";

/// Starts a TLS server that refuses every request with 403. Returns its URL and its certificate.
async fn server(tasks: &mut JoinSet<()>) -> (String, String) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    // Creating a transport chooses the library for cryptography of this process.
    HttpTransport::new("https://localhost").unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/mcp", listener.local_addr().unwrap().port());
    tasks.spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            // A client that does not trust the certificate ends the handshake.
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut request = vec![0; 65536];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 5\r\n\r\nhello").await;
            let _ = stream.shutdown().await;
        }
    });
    (url, cert.pem())
}

/// D-1: TLS is there by default, and a certificate without a known issuer is refused.
#[tokio::test]
async fn an_unknown_certificate_is_refused() {
    let mut tasks = JoinSet::new();
    let (url, _) = server(&mut tasks).await;
    let error = options().connect(HttpTransport::new(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("certificate"), "{error}");
}

/// D-1: the default client accepts the roots of the platform, which the process gets through its environment.
#[tokio::test(flavor = "multi_thread")]
async fn https_works_with_the_roots_of_the_platform() {
    let mut tasks = JoinSet::new();
    let (url, certificate) = server(&mut tasks).await;
    let folder = std::env::temp_dir().join(format!("duplexer-tls-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let roots = folder.join("roots.pem");
    std::fs::write(&roots, certificate).unwrap();
    let mut client = Command::new(std::env::current_exe().unwrap());
    client.args(["--exact", "tls::client_in_its_own_process", "--ignored", "--nocapture"]);
    client.env("SSL_CERT_FILE", &roots).env(URL, url);
    let output = tokio::task::spawn_blocking(move || client.output()).await.unwrap().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

/// D-1: a package outside this workspace that takes only the feature `http-client` gets TLS. Inside the workspace other
/// packages would switch it on for everybody, so that the features are resolved for that one package.
#[test]
fn tls_needs_no_other_feature() {
    let shown = users_of_rustls(&["duplexer", "--features", "http-client"]);
    assert!(shown.contains("reqwest"), "{shown}");
    // What others switch on is not seen.
    let without = users_of_rustls(&["duplexer-http-client"]);
    assert!(!without.contains("reqwest"), "{without}");
}

/// Returns which packages use TLS if only these packages and features are built.
fn users_of_rustls(selected: &[&str]) -> String {
    let mut tree = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    tree.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    // The features of the whole workspace, if the build that runs this test has asked for them.
    tree.env_remove("CARGO_RESOLVER_FEATURE_UNIFICATION").env_remove("CARGO_UNSTABLE_FEATURE_UNIFICATION");
    tree.args(["tree", "--no-default-features", "--package"]).args(selected);
    tree.args(["--edges", "normal", "--invert", "rustls", "--depth", "1", "--locked"]);
    let output = tree.output().unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[tokio::test]
#[ignore = "runs in a process of its own, with roots of its own"]
async fn client_in_its_own_process() {
    let url = std::env::var(URL).unwrap();
    let error = options().connect(HttpTransport::new(&url).unwrap()).await.unwrap_err();
    assert_eq!(error.to_string(), "could not open the session: 403 Forbidden: hello");
}
