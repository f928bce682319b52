//! `duplexer proxy`: a server over another transport and in both eras.

use std::net::SocketAddr;
use std::sync::Arc;

use duplexer::client::{Client, ClientBuilder, OpenError, OpenWith as _};
use duplexer::error::BoxError;
use duplexer::oauth::OAuth;
use duplexer::proxy::{Remote, Sessions};
use duplexer::transport::child::Stderr;
use duplexer::{Server, serve_stdio};
use duplexer_http::MemoryEventStore;
use duplexer_http_client::{HttpTransport, InvalidEndpoint};
use tokio::task::JoinSet;

use crate::arguments::ProxyArguments;
use crate::failure::{Exit, Failure, chain};
use crate::login;
use crate::serving::{configured, not_listening};
use crate::target::{Program, Target};
use crate::terminal::Terminal;

/// The server behind the proxy.
enum FarEnd {
    Url { url: String, headers: Vec<(String, String)>, authorization: Authorization },
    Program { program: Program, env: Vec<(String, String)>, terminal: Arc<Terminal> },
}

enum Authorization {
    Given,
    Token(String),
    Login(Arc<OAuth>),
}

/// Serves until the client leaves, or a shutdown signal.
pub(crate) fn serve(arguments: &ProxyArguments) -> Result<(), Failure> {
    let server = server(arguments, &Arc::new(Terminal::new()))?;
    match arguments.listen {
        None => on_stdio(&server),
        Some(address) => {
            let streams = if arguments.resumable { Streams::Resumable } else { Streams::Plain };
            on_http(server, address, streams, Verb::Proxy, std::future::pending())
        }
    }
}

/// Returns a server that forwards to the one behind the proxy.
pub(crate) fn server(arguments: &ProxyArguments, terminal: &Arc<Terminal>) -> Result<Server, Failure> {
    let far = Arc::new(FarEnd::of(arguments, terminal)?);
    let mut remote = Remote::new(move |builder: ClientBuilder| {
        let far = Arc::clone(&far);
        async move { Box::pin(far.open(builder)).await.map_err(BoxError::from) }
    });
    if arguments.shared {
        remote = remote.sessions(Sessions::Shared);
    }
    if let Some(timeout) = arguments.timeout {
        remote = remote.call_timeout(timeout);
    }
    remote.server().map_err(|error| Failure::usage(error.to_string()))
}

/// Serves standard input and output.
///
/// On one thread: no handler blocks it, and messages that change threads cost more than everything else that is done
/// with them.
pub(crate) fn on_stdio(server: &Server) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::new(Exit::Connect, error.to_string());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().map_err(broken)?;
    let server = server.clone();
    let mut serving = JoinSet::new();
    serving.spawn_on(async move { serve_stdio(&server).await }, runtime.handle());
    let ended = runtime.block_on(serving.join_next());
    runtime.shutdown_background();
    match ended {
        Some(Ok(Err(error))) => Err(Failure::new(Exit::Connect, chain(&error))),
        Some(Err(error)) => Err(Failure::new(Exit::Protocol, error.to_string())),
        Some(Ok(Ok(()))) | None => Ok(()),
    }
}

/// Whether clients can resume streams that have broken off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streams {
    Resumable,
    Plain,
}

/// The verb that serves, as its messages name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Proxy,
    Gateway,
    Replay,
    Dev,
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Self::Proxy => "The proxy",
            Self::Gateway => "The gateway",
            Self::Replay => "The transcript",
            Self::Dev => "The server",
        }
    }

    /// Returns the verb with the option that sets the address.
    fn option(self) -> &'static str {
        match self {
            Self::Proxy => "proxy --listen",
            Self::Gateway => "gateway --listen",
            Self::Replay => "replay --listen",
            Self::Dev => "dev --listen",
        }
    }
}

/// Serves HTTP, with `beside` next to it, until a shutdown signal.
pub(crate) fn on_http(
    server: Server,
    address: SocketAddr,
    streams: Streams,
    verb: Verb,
    beside: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::new(Exit::Connect, error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(broken)?;
    runtime.block_on(async {
        let mut service = configured(server, address.ip());
        if streams == Streams::Resumable {
            service = service.event_store(MemoryEventStore::new());
        }
        let service = service.build().map_err(|error| Failure::usage(chain(&error)))?;
        let bound = service.bind(address).await;
        let bound = bound.map_err(|error| not_listening(address, &error, verb.option()))?;
        let bound = bound.health_routes();
        let address = bound.local_addr().map_err(broken)?;
        let name = verb.name();
        Terminal::new().note(&format!("{name} listens at http://{address}/mcp. Ctrl-C ends it."));
        tokio::select! {
            ended = bound.serve() => ended.map_err(|error| Failure::new(Exit::Connect, chain(&error))),
            () = beside => Ok(()),
        }
    })
}

impl FarEnd {
    fn of(arguments: &ProxyArguments, terminal: &Arc<Terminal>) -> Result<Self, Failure> {
        let endpoint = match Target::of_either(arguments.url.as_deref(), &arguments.command)? {
            Target::Url(endpoint) => endpoint,
            Target::Command(program) => {
                if !arguments.headers.is_empty() {
                    return Err(Failure::usage("--header is for servers at a URL; a program gets --env"));
                }
                let env = arguments.env.clone();
                return Ok(Self::Program { program, env, terminal: Arc::clone(terminal) });
            }
        };
        // An option counts more than the configuration.
        let headers: Vec<_> = endpoint.headers.into_iter().chain(arguments.headers.clone()).collect();
        let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        let authorization = match &arguments.login.token {
            Some(token) => Authorization::Token(token.clone()),
            None if is_given => Authorization::Given,
            None => Authorization::Login(Arc::new(login::of_proxy(&arguments.login, terminal)?)),
        };
        let far = Self::Url { url: endpoint.url, headers, authorization };
        // A wrong URL is found now, not with the first request.
        far.transport().map_err(|error| Failure::usage(error.to_string()))?;
        Ok(far)
    }

    /// Returns the transport to a URL. A program has none.
    fn transport(&self) -> Result<Option<HttpTransport>, InvalidEndpoint> {
        let Self::Url { url, headers, authorization } = self else { return Ok(None) };
        let builder = HttpTransport::builder(url);
        let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
        let builder = match authorization {
            Authorization::Given => builder,
            Authorization::Token(token) => builder.bearer(token),
            Authorization::Login(oauth) => builder.authorization(Arc::clone(oauth) as _),
        };
        builder.build().map(Some)
    }

    async fn open(&self, builder: ClientBuilder) -> Result<Client, OpenError> {
        match self {
            Self::Url { .. } => match self.transport()? {
                Some(transport) => builder.open(transport).await,
                None => Err(OpenError::Unsupported("the server has no URL")),
            },
            Self::Program { program, env, terminal } => {
                let terminal = Arc::clone(terminal);
                let command = program.start(env).map_err(|_| OpenError::Unsupported("no program"))?;
                builder.open(command.stderr(Stderr::lines(move |line| terminal.note(line)))).await
            }
        }
    }
}
