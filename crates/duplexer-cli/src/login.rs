//! Logins at servers that require one. Tokens are stored in files of the user, or in the keyring, and renewed from there.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use duplexer::error::BoxError;
use duplexer::oauth::{
    Browser, ClientIdentity, FileCredentials, Loopback, OAuth, OAuthBuilder, OAuthError, Paste, Presenter,
    PrintUrl, Renewal, Status,
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
    if arguments.login.token.is_some() {
        let text = "--token is for requests; `login`, `logout` and `status` are about stored tokens";
        return Err(Failure::usage(text));
    }
    let terminal = Arc::new(Terminal::new());
    let (url, oauth) = (&Target::url(&arguments.url)?, client(&arguments.login, &terminal)?);
    match account {
        Account::Login => oauth.login(url).await.map_err(failure)?,
        Account::Logout => oauth.logout(url).await.map_err(failure)?,
        Account::Status => {}
    }
    let status = oauth.status(url).await.map_err(failure)?;
    print(&Text::plain(format!("{status}{}", validity(&status, SystemTime::now()))));
    Ok(())
}

/// Says for how long a stored token is valid, and what follows.
fn validity(status: &Status, now: SystemTime) -> String {
    let Status::LoggedIn { expires_at: Some(end), renewal, .. } = status else { return String::new() };
    match (end.duration_since(now), renewal) {
        (Ok(left), Renewal::Automatic) => format!("; renewed without a login in {}", span(left)),
        (Ok(left), Renewal::None) => format!("; another login is required in {}", span(left)),
        (Err(_), Renewal::Automatic) => "; renewed without a login by the next request".to_owned(),
        (Err(_), Renewal::None) => "; it has expired, and another login is required".to_owned(),
    }
}

/// Returns a time in the unit that a person would use.
fn span(time: Duration) -> String {
    let (number, unit) = match time.as_secs() {
        seconds @ ..120 => (seconds, "seconds"),
        seconds @ 120..7200 => (seconds / 60, "minutes"),
        seconds @ 7200..172_800 => (seconds / 3600, "hours"),
        seconds => (seconds / 86_400, "days"),
    };
    format!("{number} {unit}")
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
                self.0.note(&format!("{error}; on another machine than your browser, use --no-browser"));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-97: a person sees whether a stored token still helps.
    #[test]
    fn a_status_says_for_how_long_a_token_is_valid() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        for (left, number) in
            [(59, "59 seconds"), (3599, "59 minutes"), (7200, "2 hours"), (200_000, "2 days")]
        {
            assert_eq!(span(Duration::from_secs(left)), number);
        }
        let stored = |end: u64, renewal| Status::LoggedIn {
            issuer: "https://login.example.com".to_owned(),
            client_id: "c".to_owned(),
            scopes: Vec::new(),
            expires_at: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(end)),
            renewal,
        };
        for (end, renewal, text) in [
            (1_800_000_100, Renewal::Automatic, "; renewed without a login in 100 seconds"),
            (1_800_000_100, Renewal::None, "; another login is required in 100 seconds"),
            (1_799_999_999, Renewal::Automatic, "; renewed without a login by the next request"),
            (1_799_999_999, Renewal::None, "; it has expired, and another login is required"),
        ] {
            assert_eq!(validity(&stored(end, renewal), now), text);
        }
        assert_eq!(validity(&Status::LoggedOut, now), "");
    }
}
