//! The browser of the user: `$BROWSER`, or the program of the platform that opens URLs. No shell takes part.

use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use tokio::process::Command;
use tokio::time::timeout;
use url::Url;

use super::present::Presenter;
use crate::web::check_protected;

/// Time in which an opener that cannot work ends with an error. A browser itself runs longer.
const PATIENCE: Duration = Duration::from_secs(2);

#[cfg(target_os = "macos")]
const PLATFORM: &[&str] = &["open"];
#[cfg(windows)]
const PLATFORM: &[&str] = &["rundll32 url.dll,FileProtocolHandler"];
#[cfg(not(any(target_os = "macos", windows)))]
const PLATFORM: &[&str] = &["xdg-open", "gio open", "wslview"];

/// Opens the browser of the user.
///
/// ```
/// use duplexer_oauth::{Browser, OAuth};
///
/// let login = OAuth::login_with_browser("my-program").present(Browser::command("firefox --private-window %s")).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Browser {
    programs: Option<Vec<String>>,
}

impl Browser {
    /// Uses `$BROWSER` if it is set, and the opener of the platform.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this command instead. `%s` is replaced by the URL; without it, the URL is the last argument.
    pub fn command(command: impl Into<String>) -> Self {
        Self { programs: Some(vec![command.into()]) }
    }

    fn commands(&self) -> Vec<String> {
        if let Some(programs) = &self.programs {
            return programs.clone();
        }
        let named = std::env::var("BROWSER").unwrap_or_default();
        let named = named.split(':').filter(|command| !command.trim().is_empty()).map(str::to_owned);
        named.chain(PLATFORM.iter().map(|command| (*command).to_owned())).collect()
    }
}

impl Presenter for Browser {
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>> {
        Box::pin(async move {
            check_protected(&Url::parse(url)?)?;
            for command in self.commands() {
                if opened(&command, url).await {
                    return Ok(None);
                }
            }
            Err("no browser could be started: set `BROWSER`, or open the page yourself".into())
        })
    }
}

async fn opened(command: &str, url: &str) -> bool {
    let [program, arguments @ ..] = &arguments(command, url)[..] else { return false };
    let spawned = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    match spawned {
        Err(error) => {
            tracing::debug!(%error, "a browser could not be started");
            false
        }
        // A program that is still running is the browser.
        Ok(mut child) => timeout(PATIENCE, child.wait())
            .await
            .map_or(true, |ended| ended.is_ok_and(|status| status.success())),
    }
}

/// Splits a command at white space and inserts the URL as one argument.
fn arguments(command: &str, url: &str) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        command.split_ascii_whitespace().map(|part| part.replace("%s", url).into()).collect();
    if !command.contains("%s") {
        arguments.push(url.into());
    }
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OAC-36, OAC-92: what a peer wrote is one argument, and no shell reads it.
    #[test]
    fn the_url_is_one_argument() {
        let url = "https://a.example/?x=1;touch $(y) z";
        assert_eq!(arguments("open", url), ["open", url]);
        assert_eq!(
            arguments("firefox --new-tab %s --private", url),
            ["firefox", "--new-tab", url, "--private"]
        );
    }

    /// OAC-36
    #[tokio::test]
    async fn only_web_pages_are_opened() {
        for wrong in ["javascript:alert(1)", "file:///x", "http://a.example/", "calculator://"] {
            assert!(Browser::command("true").present(wrong).await.is_err(), "{wrong}");
        }
        #[cfg(unix)]
        {
            assert!(Browser::command("true").present("https://a.example/").await.is_ok());
            assert!(Browser::command("false").present("https://a.example/").await.is_err());
            assert!(Browser::command("/nonexistent").present("https://a.example/").await.is_err());
        }
    }
}
