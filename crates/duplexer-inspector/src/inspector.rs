//! The inspector and its settings.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use duplexer_client::{Client, ClientBuilder};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::random;
use crate::sandbox;
use crate::serve::{self, Serving};
use crate::service::InspectorLayer;
use crate::state::State;

pub(crate) type Connect =
    Arc<dyn Fn(Connecting) -> BoxFuture<'static, Result<Client, BoxError>> + Send + Sync>;

/// What an inspector is started with.
pub(crate) struct Settings {
    pub(crate) connect: Connect,
    pub(crate) target: Target,
    pub(crate) token: String,
    /// Origin of views, such as `http://127.0.0.1:40123`.
    pub(crate) sandbox: String,
}

/// The server under inspection, as people write it. The page shows it, and makes commands and configurations from it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A server at a URL.
    Url(String),
    /// A program and its arguments.
    Command(Vec<String>),
}

impl Target {
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Url(url) => json!({"kind": "url", "url": url}),
            Self::Command(words) => json!({"kind": "command", "words": words}),
        }
    }

    /// Returns how a transcript names the transport.
    pub(crate) fn transport(&self) -> &'static str {
        match self {
            Self::Url(_) => "http",
            Self::Command(_) => "stdio",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Url(url) => f.write_str(url),
            Self::Command(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// A session that the page opens: what [`Inspector::new`]'s function gets.
#[derive(Debug)]
#[non_exhaustive]
pub struct Connecting {
    /// The client, with the callbacks that show everything on the page. Connect it; add no callbacks.
    pub builder: ClientBuilder,
    /// The page, for what the client does not see.
    pub page: PageHandle,
}

/// Tells the page what a client does not see: headers, logins, lines on standard error.
#[derive(Clone)]
pub struct PageHandle {
    state: Arc<State>,
    session: &'static str,
}

impl PageHandle {
    pub(crate) fn new(state: Arc<State>, session: &'static str) -> Self {
        Self { state, session }
    }

    /// Shows where the person can log in.
    pub fn show_login(&self, url: &str) {
        self.state.tell(&json!({"type": "login", "session": self.session, "url": url}));
    }

    /// Shows a line that the server has written to standard error.
    pub fn show_line(&self, line: &str) {
        let line = crate::wire::begin(line, 4096);
        self.state.tell(&json!({"type": "stderr", "session": self.session, "line": line}));
    }

    /// Shows the heads of an HTTP exchange next to the message that `body` is. Values that are marked as sensitive are not
    /// shown.
    pub fn show_exchange(&self, request: (&str, &HeaderMap), body: &[u8], response: (u16, &HeaderMap)) {
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        self.state.tell(&json!({
            "type": "http", "session": self.session, "id": message.get("id"), "method": message.get("method"),
            "verb": request.0, "request": headers(request.1), "status": response.0, "response": headers(response.1),
        }));
    }
}

fn headers(all: &HeaderMap) -> Value {
    let shown = all.iter().map(|(name, value)| {
        let text = if value.is_sensitive() {
            "(not shown)".into()
        } else {
            String::from_utf8_lossy(crate::wire::begin_bytes(value.as_bytes(), 1024)).into_owned()
        };
        json!([name.as_str(), text])
    });
    shown.collect()
}

impl fmt::Debug for PageHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageHandle").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Why an inspector could not be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// There is no port for the origin of views.
    Listen(io::Error),
    /// The system gives no random numbers.
    Random(getrandom::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Listen(_) => "no port on the loopback interface can be listened on",
            Self::Random(_) => "the system gives no random numbers",
        })
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Listen(error) => Some(error),
            Self::Random(error) => Some(error),
        }
    }
}

/// Settings of an [`Inspector`].
#[must_use = "an inspector runs once it is started"]
pub struct InspectorBuilder {
    connect: Connect,
    target: Target,
}

/// A page that shows a server and every message of its sessions. Clones share the sessions.
///
/// It is a tower service with the page at `/` and all else below `/inspector/`. It serves this machine only, so each
/// request needs the address of its peer, as a `SocketAddr` in its extensions; `duplexer-http` inserts it.
///
/// ```no_run
/// # async fn example() -> Result<(), duplexer::BoxError> {
/// use duplexer::client::prelude::*;
/// use duplexer::inspector::{Inspector, Target};
///
/// let url = "http://127.0.0.1:8000/mcp";
/// let inspector = Inspector::new(Target::Url(url.to_owned()), move |connecting| async move {
///     Ok(connecting.builder.open(url).await?)
/// });
/// let inspector = inspector.start().await?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
/// println!("{}", inspector.url(listener.local_addr()?));
/// inspector.serve(listener).await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Inspector {
    pub(crate) state: Arc<State>,
    /// Ends with the last clone.
    _sandbox: Arc<Serving>,
}

impl Inspector {
    /// Describes an inspector of `target`. `connect` opens a session each time that the page needs one.
    #[expect(clippy::new_ret_no_self, reason = "an inspector is started, which is async")]
    pub fn new<F>(
        target: Target,
        connect: impl Fn(Connecting) -> F + Send + Sync + 'static,
    ) -> InspectorBuilder
    where
        F: Future<Output = Result<Client, BoxError>> + Send + 'static,
    {
        InspectorBuilder { connect: Arc::new(move |connecting| Box::pin(connect(connecting))), target }
    }

    /// Returns the URL of the page that is served at `address`, with the token. It gives control over the server under
    /// inspection to everybody who reads it.
    pub fn url(&self, address: SocketAddr) -> String {
        format!("http://{address}/#token={}", self.state.settings.token)
    }

    /// Returns the layer that serves the page in front of another service.
    pub fn layer(&self) -> InspectorLayer {
        InspectorLayer::new(self.clone())
    }

    /// Serves the page on a listener until the future is dropped.
    pub async fn serve(&self, listener: TcpListener) {
        let inspector = self.clone();
        serve::run(listener, move |request| {
            let inspector = inspector.clone();
            async move { inspector.handle(request).await }
        })
        .await;
    }

    /// Closes the sessions with the server.
    pub async fn close(&self) {
        self.state.sessions.close_all().await;
    }
}

impl InspectorBuilder {
    /// Generates the token, and listens on a port of the loopback interface for the origin of views.
    ///
    /// # Errors
    ///
    /// Fails if there is no port, and if the system gives no random numbers.
    pub async fn start(self) -> Result<Inspector, StartError> {
        let token = random::name().map_err(StartError::Random)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(StartError::Listen)?;
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let Self { connect, target } = self;
        tracing::warn!(
            %target,
            "an inspector is started: who has its token controls the server; it is for development on this machine"
        );
        let settings = Settings { connect, target, token, sandbox: format!("http://{address}") };
        let state = Arc::new(State::new(settings));
        let sandboxed = Arc::clone(&state);
        let sandbox = Serving::start(listener, move |request| {
            let state = Arc::clone(&sandboxed);
            async move { sandbox::handle(&state, request).await }
        });
        Ok(Inspector { state, _sandbox: Arc::new(sandbox) })
    }
}

impl fmt::Debug for InspectorBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InspectorBuilder").field("target", &self.target).finish_non_exhaustive()
    }
}

/// Shows no token.
impl fmt::Debug for Inspector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inspector").field("target", &self.state.settings.target).finish_non_exhaustive()
    }
}
