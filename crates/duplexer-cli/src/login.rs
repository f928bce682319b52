//! Logins at servers that require one. Tokens are stored in files of the user, or in the keyring, and renewed from there.

use std::io::IsTerminal;
use std::sync::Arc;

use duplexer::error::BoxError;
use duplexer::oauth::{
    Browser, ClientIdentity, FileCredentials, Loopback, OAuth, OAuthBuilder, OAuthError, Paste, Presenter,
    PrintUrl, Status,
};

use crate::arguments::{AccountArguments, LoginArguments};
use crate::failure::{Exit, Failure, chain};
use crate::target::Target;
use crate::terminal::{Terminal, print};
use crate::text::Text;

/// Name of this program at authorization servers, and of its folder.
const APPLICATION: &str = "duplexer";

/// What is done about a login.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Account {
    Login,
    Logout,
    Status,
}

/// Returns what authorizes the requests to a server: nothing, if there is neither a stored token nor a person.
pub(crate) async fn authorization(
    url: &str,
    arguments: &LoginArguments,
    terminal: &Arc<Terminal>,
) -> Result<Option<OAuth>, Failure> {
    let oauth = client(arguments, terminal)?;
    if std::io::stdin().is_terminal() {
        return Ok(Some(oauth));
    }
    let is_stored = matches!(oauth.status(url).await.map_err(failure)?, Status::LoggedIn { .. });
    // Without a person, a login that becomes necessary fails at once.
    let absent = |_: String| std::future::ready(Err(BoxError::from("there is no terminal")));
    let renewing = || builder(arguments)?.present(absent).build().map_err(failure);
    if is_stored { renewing().map(Some) } else { Ok(None) }
}

/// Returns what authorizes the requests of a proxy, whose standard input belongs to the client: a login that becomes
/// necessary opens a browser.
pub(crate) fn of_proxy(arguments: &LoginArguments, terminal: &Arc<Terminal>) -> Result<OAuth, Failure> {
    let builder = builder(arguments)?;
    let builder = if arguments.no_browser {
        builder.present(PrintUrl)
    } else {
        builder.present(Opener(Arc::clone(terminal)))
    };
    builder.build().map_err(failure)
}

/// Returns what authorizes the requests of an inspector: a login that becomes necessary is shown by `presenter`.
pub(crate) fn of_page(
    arguments: &LoginArguments,
    presenter: impl Presenter + 'static,
) -> Result<OAuth, Failure> {
    builder(arguments)?.present(presenter).build().map_err(failure)
}

/// Runs one of the verbs about logins.
pub(crate) async fn run(account: Account, arguments: &AccountArguments) -> Result<(), Failure> {
    let terminal = Arc::new(Terminal::new());
    let (url, oauth) = (&Target::url(&arguments.url)?, client(&arguments.login, &terminal)?);
    match account {
        Account::Login => oauth.login(url).await.map_err(failure)?,
        Account::Logout => oauth.logout(url).await.map_err(failure)?,
        Account::Status => {}
    }
    print(&Text::plain(oauth.status(url).await.map_err(failure)?.to_string()));
    Ok(())
}

fn client(arguments: &LoginArguments, terminal: &Arc<Terminal>) -> Result<OAuth, Failure> {
    let builder = builder(arguments)?;
    let builder = match (arguments.no_browser, std::io::stdin().is_terminal()) {
        (true, true) => builder.present(Paste::terminal()),
        (true, false) => builder.present(PrintUrl),
        (false, _) => builder.present(Opener(Arc::clone(terminal))),
    };
    builder.build().map_err(failure)
}

fn builder(arguments: &LoginArguments) -> Result<OAuthBuilder, Failure> {
    let mut builder = OAuth::login_with_browser(APPLICATION);
    if let Some(id) = &arguments.client_id {
        builder = builder.client(ClientIdentity::public(id));
    }
    if let Some(port) = arguments.callback_port {
        builder = builder.redirect(Loopback::localhost().port(port));
    }
    #[cfg(feature = "keyring")]
    if arguments.keyring {
        let store = duplexer::oauth::KeyringCredentials::for_application(APPLICATION);
        return Ok(builder.store(store.map_err(|error| failure(error.into()))?));
    }
    stored(builder)
}

fn stored(builder: OAuthBuilder) -> Result<OAuthBuilder, Failure> {
    // A service without a home has nowhere to store tokens.
    if ["HOME", "LOCALAPPDATA", "XDG_DATA_HOME"].iter().all(|name| std::env::var_os(name).is_none()) {
        return Ok(builder);
    }
    let store = FileCredentials::for_application(APPLICATION);
    Ok(builder.store(store.map_err(|error| failure(error.into()))?))
}

/// Opens a browser, and shows the URL for the case that none appears.
struct Opener(Arc<Terminal>);

impl Presenter for Opener {
    fn present<'a>(
        &'a self,
        url: &'a str,
    ) -> duplexer::dispatch::BoxFuture<'a, Result<Option<String>, BoxError>> {
        self.0.note(&format!("Log in with the browser that opens, or at: {url}"));
        Box::pin(async move {
            if let Err(error) = Browser::new().present(url).await {
                self.0.note(&error.to_string());
            }
            Ok(None)
        })
    }
}

/// Returns the failure of a login, with what to do about it.
#[expect(clippy::needless_pass_by_value, reason = "the signature of `map_err`")]
pub(crate) fn failure(error: OAuthError) -> Failure {
    let exit = if error.is_temporary() { Exit::Connect } else { Exit::Auth };
    let failure = Failure::new(exit, chain(&error));
    match error {
        OAuthError::NoRegistration { .. } | OAuthError::RegistrationRefused { .. } => {
            failure.hint("give the id with --client-id")
        }
        OAuthError::Port { .. } => failure.hint("--callback-port selects another one"),
        OAuthError::Present { .. } => failure.hint("`duplexer login URL` in a terminal stores a token"),
        _ => failure,
    }
}
