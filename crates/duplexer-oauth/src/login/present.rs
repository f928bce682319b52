//! How a person sees the login page.

use std::future::Future;
use std::io::{BufRead, Write};

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use tokio::sync::oneshot;

/// Shows a login page to a person.
///
/// Closures `Fn(String) -> Future` implement it.
///
/// ```
/// use duplexer_oauth::OAuth;
///
/// let login = OAuth::login_with_browser("my-program")
///     .present(|url: String| async move {
///         eprintln!("log in at {url}");
///         // The redirect reaches the listener of this process.
///         Ok(None)
///     })
///     .build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
pub trait Presenter: Send + Sync + 'static {
    /// Shows the page at `url`. If the presenter itself learns where the browser was redirected to, it returns that URL;
    /// with `None` the redirect reaches the listener of this process.
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>>;
}

impl<F, R> Presenter for F
where
    F: Fn(String) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Option<String>, BoxError>> + Send + 'static,
{
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>> {
        Box::pin(self(url.to_owned()))
    }
}

/// Prints the URL on a line of standard error, for a browser on the same machine.
///
/// ```
/// use duplexer_oauth::{OAuth, PrintUrl};
///
/// let login = OAuth::login_with_browser("my-program").present(PrintUrl).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct PrintUrl;

impl Presenter for PrintUrl {
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>> {
        let printed = print(&format!("Log in at: {url}\n"));
        Box::pin(std::future::ready(printed.map(|()| None)))
    }
}

/// Prints the URL on standard error, and reads from standard input where the browser was redirected to.
///
/// For a machine without a browser, such as one behind SSH: the redirect fails in the browser of another machine, and
/// the person copies its address.
///
/// ```
/// use duplexer_oauth::{OAuth, Paste};
///
/// let login = OAuth::login_with_browser("my-program").present(Paste::terminal()).build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Paste(());

impl Paste {
    /// Uses the terminal of this process.
    pub fn terminal() -> Self {
        Self(())
    }
}

impl Presenter for Paste {
    fn present<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Option<String>, BoxError>> {
        Box::pin(async move {
            print(&format!(
                "Log in at: {url}\nThen paste the address to which the browser was redirected, also if it shows an error:\n"
            ))?;
            let (send, line) = oneshot::channel();
            // Standard input cannot be read without a thread that may outlive the login.
            let read = move || {
                let mut line = String::new();
                let read = std::io::stdin().lock().read_line(&mut line);
                // The login has ended otherwise if there is no receiver.
                let _ = send.send(read.map(|_| line));
            };
            std::thread::Builder::new().name("oauth-paste".to_owned()).spawn(read)?;
            let line = line.await??;
            if line.trim().is_empty() {
                return Err("no address was pasted".into());
            }
            Ok(Some(line))
        })
    }
}

fn print(text: &str) -> Result<(), BoxError> {
    let mut to = std::io::stderr().lock();
    to.write_all(text.as_bytes())?;
    Ok(to.flush()?)
}
