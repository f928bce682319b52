//! Client id metadata documents, fetched over TLS from a local socket.
//!
//! The name `client.example` resolves to it and its certificate is trusted; everything else is as in production.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use duplexer_oauth_base::address::is_public;
use duplexer_oauth_base::fetch::Reach;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::client_metadata_document::ClientDocuments;
use super::{AuthorizationServer, DevBackend};
use crate::fetch;

const REDIRECT: &str = "https://client.example/cb";

/// A web server whose response depends on the path.
struct Web {
    port: u16,
    certificate: Vec<u8>,
    asked: Arc<AtomicUsize>,
    /// Notified when the client closes the connection of the slow document.
    left: Arc<Notify>,
    _serving: JoinSet<()>,
}

async fn web() -> Web {
    let made = rcgen::generate_simple_self_signed(["client.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (asked, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, leaving) = (Arc::clone(&asked), Arc::clone(&left));
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let head = String::from_utf8_lossy(&head[..read]).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
            for part in answer(&path, port) {
                if stream.write_all(part.as_bytes()).await.is_err() {
                    break;
                }
            }
            if path == "/slow" {
                // The body never completes: the client must time out.
                let _ = stream.read(&mut [0; 1]).await;
                leaving.notify_one();
            }
            let _ = stream.shutdown().await;
        }
    });
    Web { port, certificate: made.cert.der().to_vec(), asked, left, _serving: serving }
}

fn answer(path: &str, port: u16) -> Vec<String> {
    let mut document = json!({
        "client_id": format!("https://client.example:{port}{path}"),
        "client_name": "Self-made", "redirect_uris": [REDIRECT],
    });
    match path {
        "/redirect" => {
            return vec!["HTTP/1.1 302 Found\r\nlocation: /fine\r\ncontent-length: 0\r\n\r\n".into()];
        }
        "/absent" => return vec!["HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".into()],
        "/slow" => return vec!["HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{".into()],
        "/large" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-length: 10485760\r\n\r\n".to_owned();
            return [head].into_iter().chain((0..160).map(|_| " ".repeat(65_536))).collect();
        }
        "/foreign" => document["client_id"] = "https://other.example/x".into(),
        "/secret" => document["client_secret"] = "x".into(),
        "/signed" => document["token_endpoint_auth_method"] = "private_key_jwt".into(),
        "/script" => document["redirect_uris"] = json!(["javascript:alert(1)"]),
        _ => {}
    }
    let text = if path == "/text" { "<html>".to_owned() } else { document.to_string() };
    vec![format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len())]
}

/// With the timeout of production.
fn authorization_server(web: &Web) -> AuthorizationServer {
    with_timeout(web, Duration::from_secs(5))
}

fn with_timeout(web: &Web, timeout: Duration) -> AuthorizationServer {
    let there = SocketAddr::from(([127, 0, 0, 1], web.port));
    let certificate = reqwest::Certificate::from_der(&web.certificate).unwrap();
    let builder = fetch::builder().timeout(timeout).tls_certs_only([certificate]).https_only(true);
    let fetcher = fetch::build(builder.resolve("client.example", there), Reach::Any).unwrap();
    AuthorizationServer::builder("https://auth.example", DevBackend::new("ada"))
        .resource("https://auth.example/mcp")
        .documents(ClientDocuments::with(fetcher, is_public))
        .build()
        .unwrap()
}

async fn ask(authorization_server: &AuthorizationServer, client_id: &str) -> (u16, String) {
    let query = url::form_urlencoded::Serializer::new(String::new())
        .append_pair("client_id", client_id)
        .append_pair("response_type", "code")
        .append_pair("code_challenge", &"x".repeat(43))
        .finish();
    let request = http::Request::get(format!("/authorize?{query}")).header("host", "auth.example");
    let reply = authorization_server.respond(request.body(Full::<bytes::Bytes>::default()).unwrap()).await;
    let body = Full::new(reply.body().clone()).collect().await.unwrap().to_bytes();
    (reply.status().as_u16(), String::from_utf8(body.to_vec()).unwrap())
}

/// A document is fetched once, shown with its URL, and cached.
#[tokio::test]
async fn a_client_is_what_its_document_says() {
    let web = web().await;
    let authorization_server = authorization_server(&web);
    let id = format!("https://client.example:{}/fine", web.port);
    for _ in 0..2 {
        let (status, page) = ask(&authorization_server, &id).await;
        assert_eq!(status, 200, "{page}");
        assert!(page.contains("Self-made") && page.contains(&id), "{page}");
    }
    assert_eq!(web.asked.load(Ordering::SeqCst), 1);
}

/// O15: a redirect, ten megabytes, a missing document, not JSON, another client's, or one with a secret is rejected.
#[tokio::test]
async fn a_document_that_is_not_one_makes_no_client() {
    let web = web().await;
    let authorization_server = authorization_server(&web);
    for path in ["redirect", "large", "absent", "text", "foreign", "secret", "signed", "script"] {
        let id = format!("https://client.example:{}/{path}", web.port);
        let (status, text) = ask(&authorization_server, &id).await;
        assert_eq!(status, 400, "{path}: {text}");
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert!(answer["error"].as_str().unwrap().starts_with("invalid_"), "{answer}");
    }
    assert_eq!(web.asked.load(Ordering::SeqCst), 8, "the redirect was not followed");
}

/// O15: the fetch of a document that does not complete times out, and other requests are served meanwhile.
#[tokio::test]
async fn a_slow_document_is_given_up() {
    let web = web().await;
    let authorization_server = with_timeout(&web, Duration::from_millis(200));
    let id = format!("https://client.example:{}/slow", web.port);
    let (status, _) = ask(&authorization_server, &id).await;
    assert_eq!(status, 400);
    web.left.notified().await;
}

/// A document that could not be fetched is not fetched again for half a minute, and neither is another one of a host that
/// does not respond: slow documents do not occupy the fetches of others.
#[tokio::test]
async fn a_failed_fetch_is_not_repeated_at_once() {
    let web = web().await;
    let authorization_server = with_timeout(&web, Duration::from_millis(200));
    let id = |path: &str| format!("https://client.example:{}/{path}", web.port);
    for (path, reason) in [("absent", "it cannot be fetched"), ("foreign", "it names another client_id")] {
        for _ in 0..3 {
            let (status, text) = ask(&authorization_server, &id(path)).await;
            assert!(status == 400 && text.contains(reason), "{text}");
        }
    }
    assert_eq!(web.asked.load(Ordering::SeqCst), 2);
    assert_eq!(ask(&authorization_server, &id("fine")).await.0, 200, "the host responds");
    assert_eq!(ask(&authorization_server, &id("slow")).await.0, 400);
    web.left.notified().await;
    let (status, text) = ask(&authorization_server, &id("slow?x")).await;
    assert_eq!(status, 400);
    assert!(text.contains("its host did not respond a moment ago"), "{text}");
    assert_eq!(web.asked.load(Ordering::SeqCst), 4);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(30)).await;
    tokio::time::resume();
    assert_eq!(ask(&authorization_server, &id("other")).await.0, 200);
    assert_eq!(web.asked.load(Ordering::SeqCst), 5);
}

/// O15: addresses of this machine, its network and its cloud are not called, as IP addresses or as names; nor is any
/// scheme but https.
#[tokio::test]
async fn private_addresses_are_not_called() {
    let web = web().await;
    let authorization_server = AuthorizationServer::builder("https://auth.example", DevBackend::new("ada"));
    let authorization_server = authorization_server.resource("https://auth.example/mcp").build().unwrap();
    for host in [
        "127.0.0.1",
        "[::1]",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::ffff:127.0.0.1]",
        "0x7f.1",
        "2130706433",
    ] {
        let (status, text) = ask(&authorization_server, &format!("https://{host}:{}/fine", web.port)).await;
        assert_eq!(status, 400, "{host}: {text}");
    }
    for wrong in
        ["https://client.example", "https://client.example/", "https://a@client.example/x", "https:///x"]
    {
        assert_eq!(ask(&authorization_server, wrong).await.0, 400, "{wrong}");
    }
    for wrong in ["http://client.example/x", "ftp://client.example/x"] {
        assert!(ask(&authorization_server, wrong).await.1.contains("not found"), "{wrong}");
    }
    assert_eq!(web.asked.load(Ordering::SeqCst), 0);
}
