//! The listener on this machine to which the browser is redirected (RFC 8252, section 7.3).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::error::OAuthError;
use crate::flow::callback::Callback;
use crate::flow::pending::Pending;

/// Maximum size of a request.
const MAX_REQUEST: usize = 16 * 1024;
/// Maximum connections at a time. A further one replaces the oldest: programs that connect and say nothing must not keep the
/// browser out.
const MAX_CONNECTIONS: usize = 16;
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay after a failed connection, which can be for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Time for the browser to read the last page.
const GRACE: Duration = Duration::from_secs(1);

const DONE: &str = "<!doctype html><meta charset=utf-8><title>Login</title><p>The login is finished. You can close this window.";
const WRONG: &str = "<!doctype html><meta charset=utf-8><title>Login</title><p>This page belongs to another login. Go back to the program and start again.";
const NOTHING: &str = "<!doctype html><meta charset=utf-8><title>Login</title><p>There is nothing here.";

/// Redirect URI on this machine. The default is `http://127.0.0.1:<free port>/callback`.
///
/// ```
/// use duplexer_oauth::{ClientIdentity, Loopback, OAuth};
///
/// // As the client is registered: http://localhost:3118/callback
/// let login = OAuth::login_with_browser("my-program")
///     .client(ClientIdentity::public("1601185624273"))
///     .redirect(Loopback::localhost().port(3118).path("/callback"))
///     .build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Loopback {
    host: &'static str,
    port: Option<u16>,
    path: String,
}

impl Default for Loopback {
    fn default() -> Self {
        Self { host: "127.0.0.1", port: None, path: "/callback".to_owned() }
    }
}

impl Loopback {
    /// Uses the host `127.0.0.1`, as RFC 8252 recommends.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses the host `localhost`, for authorization servers at which it is registered.
    pub fn localhost() -> Self {
        Self { host: "localhost", ..Self::default() }
    }

    /// Uses this port, for authorization servers at which it is registered. The default is a free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = Some(port);
        self
    }

    /// Uses this path, which must begin with a slash.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.path.starts_with('/')
            && self.path.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#".contains(&byte))
    }

    /// Starts to listen. `preferred` is the port of an earlier login, at which the client may be registered.
    pub(crate) async fn bind(&self, preferred: Option<u16>) -> Result<Listener, OAuthError> {
        let first = match (self.port, preferred) {
            (Some(port), _) => {
                TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(|_| OAuthError::Port { port })?
            }
            (None, Some(port)) => match TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await {
                Ok(listener) => listener,
                Err(_) => free().await?,
            },
            (None, None) => free().await?,
        };
        let port = first.local_addr().map_err(|_| OAuthError::Port { port: 0 })?.port();
        let second = match self.host {
            // A browser may prefer the other protocol. Without it, the first one is used.
            "localhost" => TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok(),
            _ => None,
        };
        Ok(Listener { first, second, authority: format!("{}:{port}", self.host), path: self.path.clone() })
    }

    /// Returns the port of an earlier redirect URI that these settings could have made.
    pub(crate) fn port_of(&self, redirect_uri: &str) -> Option<u16> {
        let rest = redirect_uri.strip_prefix(&format!("http://{}:", self.host))?;
        rest.strip_suffix(&self.path)?.parse().ok()
    }
}

async fn free() -> Result<TcpListener, OAuthError> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(|_| OAuthError::Port { port: 0 })
}

/// A listener that waits for the end of one login.
pub(crate) struct Listener {
    first: TcpListener,
    second: Option<TcpListener>,
    authority: String,
    path: String,
}

impl Listener {
    pub(crate) fn redirect_uri(&self) -> String {
        format!("http://{}{}", self.authority, self.path)
    }

    /// Waits for the redirect of this login. Other requests get an error page and change nothing (OAC-38).
    pub(crate) async fn wait(&self, pending: &Pending) -> Callback {
        let (send, mut callbacks) = mpsc::channel(1);
        let page = Arc::new(Page {
            authority: self.authority.clone(),
            path: self.path.clone(),
            pending: pending.clone(),
            send,
        });
        let (mut connections, mut by_age) = (JoinSet::new(), VecDeque::new());
        let callback = loop {
            tokio::select! {
                Some(callback) = callbacks.recv() => break callback,
                Some(_) = connections.join_next() => {}
                stream = self.accept() => {
                    by_age.retain(|connection: &AbortHandle| !connection.is_finished());
                    if by_age.len() >= MAX_CONNECTIONS && let Some(oldest) = by_age.pop_front() {
                        oldest.abort();
                    }
                    by_age.push_back(connections.spawn(serve(stream, Arc::clone(&page))));
                }
            }
        };
        let finished = async { while connections.join_next().await.is_some() {} };
        let _ = timeout(GRACE, finished).await;
        callback
    }

    /// Accepts a connection. A failure, such as that of a client that is already gone, does not end the login.
    async fn accept(&self) -> TcpStream {
        loop {
            let second = async {
                match &self.second {
                    Some(listener) => listener.accept().await,
                    None => std::future::pending().await,
                }
            };
            let accepted = tokio::select! {
                accepted = self.first.accept() => accepted,
                accepted = second => accepted,
            };
            match accepted {
                Ok((stream, _)) => return stream,
                Err(error) => {
                    tracing::debug!(%error, "a connection of a browser failed");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
}

/// What the listener serves.
struct Page {
    authority: String,
    path: String,
    pending: Pending,
    send: mpsc::Sender<Callback>,
}

async fn serve(stream: TcpStream, page: Arc<Page>) {
    let service = service_fn(move |request| {
        let response = page.respond(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(MAX_REQUEST)
        .timer(TokioTimer::new())
        .header_read_timeout(CONNECTION_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    // A connection that fails is one that no browser made.
    let _ = timeout(CONNECTION_TIMEOUT, connection).await;
}

impl Page {
    fn respond(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let host = request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok());
        let is_ours = host.is_some_and(|host| host.eq_ignore_ascii_case(&self.authority));
        if request.method() != Method::GET || request.uri().path() != self.path || !is_ours {
            return page(StatusCode::NOT_FOUND, NOTHING);
        }
        match Callback::parse(&format!("?{}", request.uri().query().unwrap_or_default())) {
            Ok(callback) if callback.is_for(&self.pending) => {
                // The channel is full if the browser repeats the request.
                let _ = self.send.try_send(callback);
                page(StatusCode::OK, DONE)
            }
            _ => page(StatusCode::BAD_REQUEST, WRONG),
        }
    }
}

/// A constant page: nothing of the request is in it.
fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("cache-control", "no-store"),
        ("referrer-policy", "no-referrer"),
        ("content-security-policy", "default-src 'none'"),
        ("x-content-type-options", "nosniff"),
    ] {
        headers.insert(name, http::HeaderValue::from_static(value));
    }
    response
}
