//! Opening of a session with a target: a URL, a program, or an entry of a configuration file.

#[cfg(feature = "http-client")]
mod http;

use std::fmt;

use super::{Client, ClientBuilder, ConfigError, ConnectError, ErrorKind, HttpRefusal, ServerEntry};
use crate::error::Chain;
use crate::server::StartError;
use crate::transport::TransportError;
use {
    super::{RestartingCommand, StartProcessError},
    crate::transport::child::ChildCommand,
};

/// Where a server is: a URL, a program to start, or an entry of a configuration file.
///
/// Text is always a URL. It is never run as a command line: use a [`ChildCommand`](crate::transport::child::ChildCommand).
///
/// ```
/// use duplexer::client::{Target, prelude::*};
///
/// let url = Target::from("https://mcp.example.com/mcp");
/// let program = Target::from(ChildCommand::new("my-server").args(["--stdio"]));
/// ```
#[derive(Debug)]
pub struct Target(Location);

#[derive(Debug)]
pub(super) enum Location {
    Text(String),
    #[cfg(feature = "http-client")]
    Http(Box<duplexer_http_client::HttpTransport>),
    #[cfg(feature = "http-client")]
    HttpSse(Box<duplexer_http_client::HttpSseTransport>),
    Command(Box<ChildCommand>),
    Restarting(Box<RestartingCommand>),
    Entry(Box<ServerEntry>),
}

impl From<&str> for Target {
    fn from(url: &str) -> Self {
        url.to_owned().into()
    }
}

impl From<&String> for Target {
    fn from(url: &String) -> Self {
        url.as_str().into()
    }
}

impl From<String> for Target {
    fn from(url: String) -> Self {
        Self(Location::Text(url))
    }
}

#[cfg(feature = "http-client")]
impl From<duplexer_http_client::HttpTransport> for Target {
    fn from(transport: duplexer_http_client::HttpTransport) -> Self {
        Self(Location::Http(Box::new(transport)))
    }
}

impl From<ChildCommand> for Target {
    fn from(command: ChildCommand) -> Self {
        Self(Location::Command(Box::new(command)))
    }
}

impl From<RestartingCommand> for Target {
    fn from(command: RestartingCommand) -> Self {
        Self(Location::Restarting(Box::new(command)))
    }
}

impl From<ServerEntry> for Target {
    fn from(entry: ServerEntry) -> Self {
        Self(Location::Entry(Box::new(entry)))
    }
}

impl From<&ServerEntry> for Target {
    fn from(entry: &ServerEntry) -> Self {
        entry.clone().into()
    }
}

/// Why a session with a target could not be opened.
///
/// ```
/// use duplexer::client::prelude::*;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let error = Client::open("my-server --stdio").await.unwrap_err();
/// assert!(matches!(error, OpenError::NotAUrl(text) if text == "my-server --stdio"));
/// # Ok(())
/// # }
/// ```
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The text is not a URL.
    #[error(
        "`{0}` is not a URL that begins with http:// or https://; to start a program, open a `ChildCommand`"
    )]
    NotAUrl(String),
    /// The settings of the HTTP transport are invalid.
    #[cfg(feature = "http-client")]
    #[error(transparent)]
    Http(#[from] duplexer_http_client::InvalidEndpoint),
    /// The kind of the target is not compiled into this program.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The program could not be started.
    #[error(transparent)]
    Start(#[from] TransportError),
    /// The program has ended before the session was open. Holds how it ended.
    #[error("the server process ended before the session was open: {0}")]
    Exited(std::process::ExitStatus),
    /// A lifespan of a server in this process failed to start.
    #[error(transparent)]
    Lifespan(#[from] StartError),
    /// The entry of the configuration file is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The server was reached, and the session could not be opened.
    #[error(transparent)]
    Connect(#[from] ConnectError),
}

/// The text with its causes, because a program whose `main` returns the error prints it this way.
impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&Chain(self), f)
    }
}

impl OpenError {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Connect(error) => error.kind(),
            Self::Start(_) => ErrorKind::Unreachable,
            Self::Exited(_) => ErrorKind::Closed,
            _ => ErrorKind::Local,
        }
    }

    /// Returns whether the target can be opened later, without a change on either side.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Connect(error) if error.is_retryable())
    }

    /// Returns the HTTP response that refused the session, if there was one.
    pub fn refusal(&self) -> Option<&HttpRefusal> {
        match self {
            Self::Connect(error) => error.refusal(),
            _ => None,
        }
    }
}

impl From<StartProcessError> for OpenError {
    fn from(error: StartProcessError) -> Self {
        match error {
            StartProcessError::Start(error) => error.into(),
            StartProcessError::Connect(error) => error.into(),
            _ => Self::Unsupported("the process cannot be started"),
        }
    }
}

/// `Client::open(target)`.
pub trait OpenClient {
    /// Opens a session with a target, as the client `duplexer`. Use [`OpenWith::open`] for a client with settings.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), duplexer::BoxError> {
    /// use duplexer::client::prelude::*;
    ///
    /// let remote = Client::open("https://mcp.example.com/mcp").await?;
    /// let local = Client::open(ChildCommand::new("npx").args(["-y", "some-server"])).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the target is invalid, if its program cannot be started, and if the session cannot be opened.
    fn open(target: impl Into<Target> + Send) -> impl Future<Output = Result<Client, OpenError>> + Send;
}

impl OpenClient for Client {
    async fn open(target: impl Into<Target> + Send) -> Result<Client, OpenError> {
        Client::builder("duplexer", env!("CARGO_PKG_VERSION")).open(target).await
    }
}

/// `Client::builder(..).open(target)`.
pub trait OpenWith {
    /// Opens a session with a target. The session owns a program that it starts: [`Client::close`] ends both, in order.
    ///
    /// A server at a URL that refuses streamable HTTP with 400, 404 or 405, without an error of the protocol, gets one attempt
    /// over HTTP+SSE (2024-11-05). [`ClientBuilder::connect`] uses the transport it gets, and no other.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() {
    /// use duplexer::client::prelude::*;
    ///
    /// let client = Client::builder("my-agent", "1.0").on_roots(async || Ok(ListRootsResult::new([Root::new("file:///work")])));
    /// let opened = client.open(ChildCommand::new("/no/such/program")).await;
    /// assert!(opened.is_err());
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Fails if the target is invalid, if its program cannot be started, and if the session cannot be opened.
    fn open(self, target: impl Into<Target> + Send)
    -> impl Future<Output = Result<Client, OpenError>> + Send;
}

impl OpenWith for ClientBuilder {
    async fn open(self, target: impl Into<Target> + Send) -> Result<Client, OpenError> {
        let location = match target.into().0 {
            Location::Entry(entry) => entry.location()?,
            other => other,
        };
        match location {
            Location::Text(url) => open_url(self, &url).await,
            #[cfg(feature = "http-client")]
            Location::Http(transport) => Ok(http::open(self, *transport).await?),
            #[cfg(feature = "http-client")]
            Location::HttpSse(transport) => Ok(self.connect(*transport).await?),
            Location::Command(command) => open_command(self, *command).await,
            Location::Restarting(command) => Ok(self.connect(*command).await?),
            Location::Entry(_) => Err(OpenError::Unsupported("an entry cannot refer to another entry")),
        }
    }
}

fn is_url(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

#[cfg_attr(
    not(feature = "http-client"),
    expect(clippy::unused_async, reason = "connects only with the feature")
)]
async fn open_url(builder: ClientBuilder, url: &str) -> Result<Client, OpenError> {
    if !is_url(url) {
        return Err(OpenError::NotAUrl(url.to_owned()));
    }
    #[cfg(feature = "http-client")]
    return Ok(http::open(builder, duplexer_http_client::HttpTransport::new(url)?).await?);
    #[cfg(not(feature = "http-client"))]
    {
        drop(builder);
        Err(OpenError::Unsupported("a URL needs the feature `http-client` of duplexer"))
    }
}

async fn open_command(builder: ClientBuilder, command: ChildCommand) -> Result<Client, OpenError> {
    let (transport, child) = command.spawn()?;
    match builder.connect(transport).await {
        Ok(client) => {
            client.on_close(move || async move {
                if let Err(error) = child.shutdown().await {
                    tracing::debug!(%error, "a server process did not end");
                }
            });
            Ok(client)
        }
        // A program that ends at once says why by its exit status.
        Err(error) if error.kind() == ErrorKind::Closed => match child.shutdown().await {
            Ok(status) if !status.success() => Err(OpenError::Exited(status)),
            _ => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::client::ServeInProcess as _;
    use crate::{BoxError, Server};

    /// A string that is no URL is an error that says what to do; it is never run.
    #[tokio::test]
    async fn text_is_a_url_and_never_a_command_line() {
        for text in ["npx -y some-server", "/bin/true", "localhost:3000/mcp", "ftp://example.com", ""] {
            let error = Client::open(text).await.unwrap_err();
            assert!(matches!(&error, OpenError::NotAUrl(named) if named == text), "{error}");
            assert!(error.to_string().contains("open a `ChildCommand`"));
            assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Local, false));
        }
    }

    #[tokio::test]
    async fn a_program_that_cannot_run_differs_from_one_that_ends() {
        let missing = Client::open(ChildCommand::new("/no/such/program")).await.unwrap_err();
        assert!(missing.to_string().starts_with("`/no/such/program` cannot be started"), "{missing}");
        assert_eq!(missing.kind(), ErrorKind::Unreachable);
        // What a program prints whose `main` returns the error.
        assert_eq!(format!("{missing:?}"), missing.to_string());
        let ended = Client::open(ChildCommand::new("sh").args(["-c", "exit 3"])).await.unwrap_err();
        let OpenError::Exited(status) = &ended else { panic!("{ended}") };
        assert_eq!((status.code(), ended.kind()), (Some(3), ErrorKind::Closed));
    }

    /// The kind of a failed session is that of its cause, without a match on the variants.
    #[cfg(feature = "http-client")]
    #[tokio::test]
    async fn a_target_that_is_not_reached_is_worth_another_attempt() {
        // A connection to the port of a closed listener is refused.
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        drop(listener);
        let error = Client::open(&url).await.unwrap_err();
        assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Unreachable, true), "{error}");
        assert!(error.refusal().is_none());
    }

    /// CLT-13: an in-process client starts the lifespans of its server, and ends them with the session.
    #[tokio::test]
    async fn an_in_process_session_owns_its_server() {
        let (started, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (starting, ending) = (Arc::clone(&started), Arc::clone(&ended));
        let start = move || {
            starting.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Ok::<_, BoxError>(()))
        };
        let stop = move |_| {
            ending.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        };
        let server = Server::builder("s", "0").lifespan(start).on_shutdown(stop).build().unwrap();
        let counts = || (started.load(Ordering::Relaxed), ended.load(Ordering::Relaxed));
        let client = Client::builder("c", "0").connect(server.in_process()).await.unwrap();
        assert_eq!(counts(), (1, 0));
        assert_eq!(client.server_info().map(|info| info.name.as_str()), Some("s"));
        client.close().await.unwrap();
        assert_eq!(counts(), (1, 1));
    }
}
