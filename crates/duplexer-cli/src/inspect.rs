//! `duplexer inspect`: a page in the browser that shows a server. The demo serves the same page, of itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use duplexer::client::{Client, OpenWith as _};
use duplexer::dispatch::BoxFuture;
use duplexer::error::BoxError;
use duplexer::inspector::{Connecting, Inspector, PageHandle, Target as Shown};
use duplexer::oauth::{Browser, Presenter};
use duplexer::shutdown_signal::ShutdownSignals;
use duplexer::transport::child::Stderr;
use duplexer_http_client::{HttpTransport, InvalidEndpoint};
use tokio::net::TcpListener;

use crate::arguments::{InspectArguments, LoginArguments};
use crate::failure::{Exit, Failure, chain};
use crate::login;
use crate::target::{Program, Target};
use crate::terminal::Terminal;

/// How the server is reached.
enum Reached {
    Url { url: String, headers: Vec<(String, String)>, login: LoginArguments },
    Program { program: Program, env: Vec<(String, String)> },
}

/// Serves the page until a shutdown signal.
pub(crate) async fn run(arguments: &InspectArguments) -> Result<(), Failure> {
    let broken = |error: std::io::Error| Failure::new(Exit::Connect, error.to_string());
    let reached = Reached::of(arguments)?;
    let inspector = start(reached).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port));
    let listener = TcpListener::bind(address).await.map_err(|error| {
        Failure::new(Exit::Connect, format!("cannot listen on {address}: {error}"))
            .hint("--port 0 selects a free port")
    })?;
    let url = inspector.url(listener.local_addr().map_err(broken)?);
    let terminal = Terminal::new();
    terminal.note(&format!(
        "The inspector is at {url}\nIts address is a secret: it controls the server. Ctrl-C ends it."
    ));
    if arguments.open
        && let Err(error) = Browser::new().present(&url).await
    {
        terminal.note(&error.to_string());
    }
    let mut signals = ShutdownSignals::listen().map_err(broken)?;
    tokio::select! {
        () = inspector.serve(listener) => {}
        () = signals.next() => terminal.interrupted(),
    }
    inspector.close().await;
    Ok(())
}

/// Starts the inspector of a server of this process, at its own URL.
pub(crate) async fn of_url(url: String) -> Result<Inspector, Failure> {
    start(Reached::Url { url, headers: Vec::new(), login: LoginArguments::default() }).await
}

async fn start(reached: Reached) -> Result<Inspector, Failure> {
    let (shown, reached) = (reached.shown(), Arc::new(reached));
    let inspector = Inspector::new(shown, move |connecting| {
        let reached = Arc::clone(&reached);
        async move { Box::pin(reached.open(connecting)).await }
    });
    inspector.start().await.map_err(|error| Failure::new(Exit::Connect, chain(&error)))
}

impl Reached {
    fn of(arguments: &InspectArguments) -> Result<Self, Failure> {
        let endpoint = match Target::of_either(arguments.target.as_deref(), &arguments.command)? {
            Target::Url(endpoint) => endpoint,
            Target::Command(_) if !arguments.headers.is_empty() => {
                return Err(Failure::usage("--header is for servers at a URL; a program gets --env"));
            }
            Target::Command(program) => {
                return Ok(Self::Program { program, env: arguments.env.clone() });
            }
        };
        // A wrong URL is found now, not with the first session.
        HttpTransport::new(&endpoint.url).map_err(|error| Failure::usage(error.to_string()))?;
        // An option counts more than the configuration.
        let headers = endpoint.headers.into_iter().chain(arguments.headers.clone()).collect();
        Ok(Self::Url { url: endpoint.url, headers, login: arguments.login.clone() })
    }

    fn shown(&self) -> Shown {
        match self {
            Self::Url { url, .. } => Shown::Url(url.clone()),
            Self::Program { program, .. } => {
                Shown::Command(program.words.iter().map(|word| word.to_string_lossy().into_owned()).collect())
            }
        }
    }

    async fn open(&self, connecting: Connecting) -> Result<Client, BoxError> {
        let Connecting { builder, page, .. } = connecting;
        match self {
            Self::Url { url, headers, login } => {
                Ok(builder.open(transport(url, headers, login, &page)?).await?)
            }
            Self::Program { program, env } => {
                let command = program.start(env).map_err(|failure| failure.to_string())?;
                Ok(builder.open(command.stderr(Stderr::lines(move |line| page.show_line(line)))).await?)
            }
        }
    }
}

/// Returns a transport whose heads and logins the page shows.
fn transport(
    url: &str,
    headers: &[(String, String)],
    login: &LoginArguments,
    page: &PageHandle,
) -> Result<HttpTransport, BoxError> {
    let shown = page.clone();
    let builder = HttpTransport::builder(url).on_exchange(move |exchange| {
        shown.show_exchange(
            (exchange.method.as_str(), exchange.request_headers),
            exchange.body,
            (exchange.status.as_u16(), exchange.response_headers),
        );
    });
    let builder = headers.iter().fold(builder, |builder, (name, value)| builder.header(name, value));
    let is_given = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
    let builder = match &login.token {
        Some(token) => builder.bearer(token),
        None if is_given => builder,
        None => {
            let oauth =
                login::of_page(login, PageLogin(page.clone())).map_err(|failure| failure.to_string())?;
            builder.authorization(Arc::new(oauth))
        }
    };
    builder.build().map_err(|error: InvalidEndpoint| error.into())
}

/// Shows the URL of a login on the page.
struct PageLogin(PageHandle);

impl Presenter for PageLogin {
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>> {
        self.0.show_login(url);
        Box::pin(std::future::ready(Ok(None)))
    }
}
