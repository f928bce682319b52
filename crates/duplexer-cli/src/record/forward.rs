//! A reverse proxy that reads along.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use duplexer::Server;
use duplexer::testing::Sender;
use duplexer_oauth_base::address::is_loopback;
use duplexer_oauth_base::fetch;
use http::header::{ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use url::{Host, Url};

use super::Recorder;
use super::observed::{Observed, Sessions};
use crate::arguments::RecordArguments;
use crate::failure::{Exit, Failure, chain};
use crate::serving::{configured, not_listening};
use crate::target::Endpoint;
use duplexer_http::ServeError;

/// Maximum connections of clients.
const MAX_CONNECTIONS: usize = 256;
/// Maximum bytes of a request.
const MAX_REQUEST: usize = 16 * 1024 * 1024;
/// Maximum time for the headers of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that belong to one connection, and those that this program sets.
const OWN_HEADERS: [HeaderName; 5] = [HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING];

type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the headers that the user adds to every request.
pub(super) fn headers(endpoint: &Endpoint, arguments: &RecordArguments) -> Result<HeaderMap, Failure> {
    let token =
        arguments.login.token.iter().map(|token| ("authorization".to_owned(), format!("Bearer {token}")));
    let mut all = HeaderMap::new();
    for (name, value) in endpoint.headers.iter().chain(&arguments.headers).cloned().chain(token) {
        match (HeaderName::try_from(&name), HeaderValue::try_from(&value)) {
            (Ok(name), Ok(value)) => drop(all.insert(name, value)),
            _ => return Err(Failure::usage(format!("'{name}' is not a header, or its value is not one"))),
        }
    }
    Ok(all)
}

/// What all connections share.
struct Forward {
    client: reqwest::Client,
    /// The endpoint of the server.
    target: Url,
    headers: HeaderMap,
    /// The address that clients connect to.
    address: IpAddr,
    sessions: Sessions,
    recorder: Recorder,
}

/// Serves a URL until it is dropped.
pub(super) async fn serve(
    url: &str,
    headers: HeaderMap,
    address: SocketAddr,
    recorder: Recorder,
) -> Result<(), Failure> {
    let target = Url::parse(url).map_err(|error| Failure::usage(format!("`{url}` is not a URL: {error}")))?;
    // A stream stays open for as long as the client wants it.
    let builder =
        fetch::builder(concat!("duplexer-record/", env!("CARGO_PKG_VERSION"))).timeout(Duration::MAX);
    let client = builder.build().map_err(|error| Failure::new(Exit::Connect, chain(&error)))?;
    let listener = TcpListener::bind(address).await;
    let listener =
        listener.map_err(|error| not_listening(address, &ServeError::Bind(error), "record --listen"))?;
    let bound = listener.local_addr().map_err(|error| Failure::new(Exit::Connect, error.to_string()))?;
    let place = format!("http://{bound}{}", target.path());
    recorder.terminal.note(&format!("The recorder listens at {place}. Ctrl-C ends it."));
    let sessions = Sessions::default();
    let forward = Forward { client, target, headers, address: address.ip(), sessions, recorder };
    accept(listener, Arc::new(forward)).await;
    Ok(())
}

/// Serves a program, through a server of this process that offers it over HTTP.
pub(super) async fn serve_program(
    server: Server,
    address: SocketAddr,
    recorder: Recorder,
) -> Result<(), Failure> {
    let broken = |error: &(dyn std::error::Error + 'static)| Failure::new(Exit::Connect, chain(error));
    let inner = SocketAddr::from(([127, 0, 0, 1], 0));
    let service = configured(server, inner.ip()).build().map_err(|error| Failure::usage(chain(&error)))?;
    let bound = service.bind(inner).await.map_err(|error| not_listening(inner, &error, "record --listen"))?;
    let url = format!("http://{}/mcp", bound.local_addr().map_err(|error| broken(&error))?);
    tokio::select! {
        ended = bound.serve() => ended.map_err(|error| broken(&error)),
        done = serve(&url, HeaderMap::new(), address, recorder) => done,
    }
}

async fn accept(listener: TcpListener, forward: Arc<Forward>) {
    let (permits, numbers) = (Arc::new(Semaphore::new(MAX_CONNECTIONS)), AtomicU64::new(1));
    let mut connections = JoinSet::new();
    loop {
        let Ok(permit) = Arc::clone(&permits).acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (forward, number) = (Arc::clone(&forward), numbers.fetch_add(1, Ordering::Relaxed));
        connections.spawn(async move {
            connection(stream, forward, number).await;
            drop(permit);
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(stream: TcpStream, forward: Arc<Forward>, number: u64) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let forward = Arc::clone(&forward);
        async move { Ok::<_, Infallible>(forward.exchange(request, number).await) }
    });
    let mut server = hyper::server::conn::http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    // A client that leaves is no failure.
    let _ = server.serve_connection(TokioIo::new(stream), service).await;
}

impl Forward {
    async fn exchange(&self, request: Request<Incoming>, connection: u64) -> Response<Body> {
        if let Err(host) = self.check_host(request.headers()) {
            let text = format!("the recorder is not reached by the name {host:?}\n");
            return plain(StatusCode::FORBIDDEN, text);
        }
        let (head, body) = request.into_parts();
        let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "the body is too large\n".to_owned());
        };
        let body = body.to_bytes();
        let session = self.sessions.of(&head.headers);
        let connection = session.unwrap_or(connection);
        if let Ok(text) = std::str::from_utf8(&body) {
            self.recorder.write(Sender::Client, connection, text);
        }
        let mut headers = head.headers;
        for name in &OWN_HEADERS {
            headers.remove(name);
        }
        headers.extend(self.headers.clone());
        let mut url = self.target.clone();
        url.set_path(head.uri.path());
        url.set_query(head.uri.query().or(self.target.query()));
        let sent = self.client.request(head.method, url).headers(headers).body(body).send().await;
        match sent {
            Ok(response) => {
                self.sessions.note(response.headers(), connection);
                answer(response, self.recorder.clone(), connection)
            }
            Err(error) => {
                let text = format!("the server cannot be reached: {}\n", chain(&error.without_url()));
                plain(StatusCode::BAD_GATEWAY, text)
            }
        }
    }

    /// A web page that rebinds its name must not get past the server's own check, which sees another Host.
    fn check_host(&self, headers: &HeaderMap) -> Result<(), String> {
        if self.address.is_unspecified() {
            return Ok(());
        }
        let value = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let host = Url::parse(&format!("http://{value}")).ok();
        let host = host.as_ref().and_then(Url::host);
        let is_allowed = host.is_some_and(|host| match host {
            _ if self.address.is_loopback() => is_loopback(&host),
            Host::Ipv4(address) => IpAddr::V4(address) == self.address,
            Host::Ipv6(address) => IpAddr::V6(address) == self.address,
            Host::Domain(_) => false,
        });
        if is_allowed { Ok(()) } else { Err(value.to_owned()) }
    }
}

fn answer(response: reqwest::Response, recorder: Recorder, connection: u64) -> Response<Body> {
    let response: Response<reqwest::Body> = response.into();
    let (mut head, body) = response.into_parts();
    for name in [CONNECTION, TRANSFER_ENCODING] {
        head.headers.remove(name);
    }
    head.version = http::Version::HTTP_11;
    head.extensions = http::Extensions::new();
    let body = Observed::new(body, &head.headers, recorder, connection);
    Response::from_parts(head, body.boxed_unsync())
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let body = Full::new(Bytes::from(text)).map_err(|never: Infallible| match never {});
    let mut response = Response::new(body.boxed_unsync());
    *response.status_mut() = status;
    response
}
