//! Logs in at a protected server whose authorization server is of the official Python package: `interop-login URL`. The
//! first difference ends the program with an error.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use duplexer_client::{Client, Negotiation};
use duplexer_core::error::BoxError;
use duplexer_http_client::HttpTransport;
use duplexer_oauth::{MemoryCredentials, OAuth, Renewal, Status};

/// Longer than the lifetime of an access token.
const LATER: u64 = 4000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let outcome = match std::env::args().nth(1) {
        Some(url) => run(&url).await,
        None => Err("usage: interop-login URL".into()),
    };
    #[expect(clippy::print_stderr, reason = "the last word of a program")]
    match outcome {
        Ok(checks) => {
            eprintln!("login at the Python authorization server: {checks} checks passed");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("interop-login: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(url: &str) -> Result<usize, BoxError> {
    let mut checks = 0;
    for (number, negotiation) in [Negotiation::Auto, Negotiation::Handshake].into_iter().enumerate() {
        let flow = Flow { url, negotiation, person: Person::default(), store: MemoryCredentials::new() };
        checks += flow.run(number + 1).await?;
    }
    Ok(checks)
}

/// A person with a browser, and the time on the clock of the client.
#[derive(Clone, Default)]
struct Person {
    logins: Arc<AtomicUsize>,
    passed: Arc<AtomicU64>,
}

impl Person {
    /// Opens the login page. The browser follows its redirects, at last to the listener of the client.
    async fn open(self, page: String) -> Result<Option<String>, BoxError> {
        self.logins.fetch_add(1, Ordering::SeqCst);
        let browser = reqwest::Client::builder().no_proxy().build()?;
        browser.get(page).send().await?.error_for_status()?;
        Ok(None)
    }
}

struct Flow<'a> {
    url: &'a str,
    negotiation: Negotiation,
    person: Person,
    store: MemoryCredentials,
}

impl Flow<'_> {
    /// Each flow registers two clients, the second after the logout, and uses five access tokens.
    async fn run(&self, number: usize) -> Result<usize, BoxError> {
        let mut checks = Checks(0);
        let first = 5 * number - 4;
        let client = self.connect().await?;
        checks.equal("a call after the login", &call(&client, "token").await?, &first.to_string())?;
        self.person.passed.fetch_add(LATER, Ordering::SeqCst);
        let renewed = call(&client, "token").await?;
        checks.equal("a call after the token has expired", &renewed, &(first + 1).to_string())?;
        call(&client, "expire").await?;
        let renewed = call(&client, "token").await?;
        checks.equal("a call after the server refused the token", &renewed, &(first + 2).to_string())?;
        // As after a restart: only the store is shared.
        let client = self.connect().await?;
        checks.equal("a call after a restart", &call(&client, "token").await?, &renewed)?;
        self.person.passed.fetch_add(LATER, Ordering::SeqCst);
        let client = self.connect().await?;
        let renewed = call(&client, "token").await?;
        checks.equal("a restart with an expired token", &renewed, &(first + 3).to_string())?;
        checks.equal("logins of the person", &self.person.logins.load(Ordering::SeqCst), &1)?;
        self.log_out(&mut checks).await?;
        let client = self.connect().await?;
        let totals = format!("{} clients, {} tokens", 2 * number, first + 4);
        checks.equal("what the server has", &call(&client, "totals").await?, &totals)?;
        checks.equal("logins after the logout", &self.person.logins.load(Ordering::SeqCst), &2)?;
        Ok(checks.0)
    }

    async fn log_out(&self, checks: &mut Checks) -> Result<(), BoxError> {
        let oauth = self.oauth()?;
        let Status::LoggedIn { scopes, renewal, .. } = oauth.status(self.url).await? else {
            return Err("there is no token in the store".into());
        };
        checks.equal("the status", &(scopes, renewal), &(vec!["mcp".to_owned()], Renewal::Automatic))?;
        oauth.logout(self.url).await?;
        checks.equal("the status after the logout", &oauth.status(self.url).await?, &Status::LoggedOut)
    }

    fn oauth(&self) -> Result<OAuth, BoxError> {
        let (person, passed) = (self.person.clone(), Arc::clone(&self.person.passed));
        let oauth = OAuth::login_with_browser("Interop client")
            .present(move |page| person.clone().open(page))
            .clock(move || SystemTime::now() + Duration::from_secs(passed.load(Ordering::SeqCst)))
            .store(self.store.clone())
            .build()?;
        Ok(oauth)
    }

    async fn connect(&self) -> Result<Client, BoxError> {
        let transport = HttpTransport::builder(self.url).authorization(Arc::new(self.oauth()?)).build()?;
        let client = Client::builder("interop", "1").negotiation(self.negotiation.clone());
        Ok(client.connect(transport).await?)
    }
}

/// Number of passed checks.
struct Checks(usize);

impl Checks {
    fn equal<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        actual: &T,
        expected: &T,
    ) -> Result<(), BoxError> {
        if actual != expected {
            return Err(format!("{what}: expected {expected:?}, got {actual:?}").into());
        }
        self.0 += 1;
        Ok(())
    }
}

async fn call(client: &Client, tool: &str) -> Result<String, BoxError> {
    let result = serde_json::to_value(client.call_tool(tool, ()).await?)?;
    let text = result["content"][0]["text"].as_str();
    text.map(str::to_owned).ok_or_else(|| format!("{tool} answered {result}").into())
}
