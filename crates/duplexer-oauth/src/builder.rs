//! Settings of an [`OAuth`], checked by `build`.

use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use duplexer_core::error::BoxError;
use duplexer_oauth_base::Secret;
use duplexer_oauth_base::clock::Clock;
use url::Url;

use crate::client::document::ClientDocument;
use crate::client::{ClientIdentity, Credential};
use crate::dpop::Dpop;
use crate::error::OAuthError;
use crate::event::Event;
use crate::grant::Grant;
use crate::grant::assertion::{AssertionGrant, AssertionRequest, AssertionSource, IdentityProvider};
use crate::grant::function::TokenFunction;
use crate::grant::workload::{WorkloadGrant, WorkloadToken};
use crate::login::browser::Browser;
use crate::login::loopback::Loopback;
use crate::login::present::Presenter;
use crate::login::{Interaction, Login};
use crate::oauth::{OAuth, Parts};
use crate::settings::{Comparison, IssuerRules, Network, Owner, Settings, StepUp};
use crate::store::CredentialStore;
use crate::store::memory::MemoryCredentials;
use crate::web::endpoint;

impl OAuth {
    /// Logs a person in with a browser that returns to this machine. `application` names the program to the person and
    /// in the store.
    pub fn login_with_browser(application: &str) -> OAuthBuilder {
        let interaction = Interaction::Loopback(Loopback::new(), Arc::new(Browser::new()));
        OAuthBuilder::login(application, interaction)
    }

    /// Logs the user of a web application in. A request without a token fails with
    /// [`OAuthError::LoginRequired`](crate::OAuthError::LoginRequired); the page at `redirect_uri` calls [`OAuth::finish`].
    pub fn login_on_web(application: &str, redirect_uri: &str) -> OAuthBuilder {
        OAuthBuilder::login(application, Interaction::Web(redirect_uri.to_owned()))
    }

    /// Obtains tokens for the client itself (client credentials). Restrict the client to an issuer with
    /// [`ClientIdentity::issuer`]: otherwise the server decides to whom its secret is sent.
    pub fn client_credentials(client: ClientIdentity) -> OAuthBuilder {
        OAuthBuilder::new(&client.id.clone(), Grant::ClientCredentials(client))
    }

    /// Obtains tokens from an assertion of the identity provider of a company (ID-JAG). `client` is the one at the
    /// authorization server; restrict it to an issuer with [`ClientIdentity::issuer`].
    pub fn enterprise(provider: IdentityProvider, client: ClientIdentity) -> OAuthBuilder {
        let source = AssertionSource::Provider(provider);
        OAuthBuilder::new(&client.id.clone(), Grant::Assertion(AssertionGrant { client, source }))
    }

    /// Obtains tokens from assertions that a function of the application gives.
    pub fn assertion<F, R>(client: ClientIdentity, function: F) -> OAuthBuilder
    where
        F: Fn(AssertionRequest) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
    {
        let source = AssertionSource::function(function);
        OAuthBuilder::new(&client.id.clone(), Grant::Assertion(AssertionGrant { client, source }))
    }

    /// Obtains tokens from the token of the platform on which this program runs (workload identity).
    pub fn workload(client_id: &str, source: impl WorkloadToken) -> OAuthBuilder {
        let client = ClientIdentity::public(client_id);
        OAuthBuilder::new(client_id, Grant::Workload(WorkloadGrant { client, source: Arc::new(source) }))
    }

    /// Sends bearer tokens of a function. It is called for the first request, and once more after a refusal.
    pub fn from_fn<F, R>(function: F) -> OAuthBuilder
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Secret, BoxError>> + Send + 'static,
    {
        OAuthBuilder::new("", Grant::Function(TokenFunction::new(function)))
    }
}

/// Builder of an [`OAuth`].
///
/// ```
/// use duplexer_oauth::{MemoryCredentials, OAuth, StepUp};
///
/// let login = OAuth::login_with_browser("my-program")
///     .scopes(["mcp"])
///     .store(MemoryCredentials::new())
///     .step_up(StepUp::Never)
///     .on_event(|event| eprintln!("{event:?}"))
///     .build()?;
/// # Ok::<_, duplexer_oauth::OAuthError>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct OAuthBuilder {
    settings: Settings,
    parts: Parts,
    fault: Option<OAuthError>,
}

impl OAuthBuilder {
    fn new(application: &str, grant: Grant) -> Self {
        let owner = Owner { application: application.to_owned(), account: String::new() };
        let settings = Settings {
            owner,
            grant,
            issuers: IssuerRules::default(),
            scopes: Vec::new(),
            dpop: Dpop::default(),
            step_up: StepUp::default(),
            network: Network::LikeServer,
        };
        let parts =
            Parts { store: Arc::new(MemoryCredentials::new()), time: Clock::default(), on_event: None };
        Self { settings, parts, fault: None }
    }

    fn login(application: &str, interaction: Interaction) -> Self {
        let document = ClientDocument::new(application);
        let login = Login { identities: Vec::new(), document, interaction };
        Self::new(application, Grant::Login(Box::new(login)))
    }

    fn on_login(mut self, setting: &str, change: impl FnOnce(&mut Login)) -> Self {
        match &mut self.settings.grant {
            Grant::Login(login) => change(login),
            _ => self.fault = Some(OAuthError::Config(format!("`{setting}` is for logins only").into())),
        }
        self
    }

    /// Adds an identity of the client. Without one that fits, the client registers itself.
    pub fn client(self, client: ClientIdentity) -> Self {
        self.on_login("client", |login| login.identities.push(client))
    }

    /// Sets the description of the client for registrations. The default has its name only.
    pub fn document(self, document: ClientDocument) -> Self {
        self.on_login("document", |login| login.document = document)
    }

    /// Sets the redirect URI on this machine.
    pub fn redirect(mut self, redirect: Loopback) -> Self {
        if !redirect.is_valid() {
            self.fault = Some(OAuthError::Config("the path of the redirect URI must begin with `/`".into()));
        }
        self.on_login("redirect", |login| {
            if let Interaction::Loopback(current, _) = &mut login.interaction {
                *current = redirect;
            }
        })
    }

    /// Sets who shows the login page. The default is [`Browser`].
    pub fn present(self, presenter: impl Presenter) -> Self {
        self.on_login("present", |login| {
            if let Interaction::Loopback(_, current) = &mut login.interaction {
                *current = Arc::new(presenter);
            }
        })
    }

    /// Adds scopes to those that servers name.
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Accepts tokens of this issuer only.
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.settings.issuers.pinned = Some(issuer.into());
        self
    }

    /// Compares issuers as text without exception. By default an issuer without a path can end with a slash.
    pub fn strict_issuer(mut self) -> Self {
        self.settings.issuers.comparison = Comparison::Strict;
        self
    }

    /// Accepts the metadata of the issuer `listed` although it names itself `named`.
    pub fn trust_issuer(mut self, listed: impl Into<String>, named: impl Into<String>) -> Self {
        self.settings.issuers.trusted.push((listed.into(), named.into()));
        self
    }

    /// Logs in at this issuer although it does not declare PKCE.
    pub fn without_pkce_check(mut self, issuer: impl Into<String>) -> Self {
        self.settings.issuers.without_pkce.push(issuer.into());
        self
    }

    /// Sets whether tokens are bound to a key.
    pub fn dpop(mut self, dpop: Dpop) -> Self {
        self.settings.dpop = dpop;
        self
    }

    /// Sets what happens when a request needs more scopes.
    pub fn step_up(mut self, step_up: StepUp) -> Self {
        self.settings.step_up = step_up;
        self
    }

    /// Sets where credentials are stored. The default is memory.
    pub fn store(mut self, store: impl CredentialStore) -> Self {
        self.parts.store = Arc::new(store);
        self
    }

    /// Sets the user of this program to whom the credentials belong, if there are several.
    pub fn account(mut self, account: impl Into<String>) -> Self {
        self.settings.owner.account = account.into();
        self
    }

    /// Lets a public server name addresses on private networks.
    pub fn allow_private(mut self) -> Self {
        self.settings.network = Network::Any;
        self
    }

    /// Calls a function for each step of a login or renewal.
    pub fn on_event(mut self, handler: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.parts.on_event = Some(Arc::new(handler));
        self
    }

    /// Sets the source of the current time. For tests.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.parts.time = Clock::new(now);
        self
    }

    /// Builds the client.
    ///
    /// # Errors
    /// Fails if a setting is not valid: a URL, a client document, or a setting of a login on another grant.
    pub fn build(self) -> Result<OAuth, OAuthError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        self.settings.grant.identities().iter().try_for_each(check_identity)?;
        match &self.settings.grant {
            Grant::Login(login) => {
                if let Interaction::Web(redirect_uri) = &login.interaction {
                    endpoint(redirect_uri)?;
                }
            }
            Grant::Assertion(AssertionGrant { source: AssertionSource::Provider(provider), .. }) => {
                provider.check()?;
            }
            _ => {}
        }
        Ok(OAuth::new(self.settings, self.parts))
    }
}

/// A client document is at an https URL with a path (OAC-24).
fn check_identity(identity: &ClientIdentity) -> Result<(), OAuthError> {
    if !matches!(identity.credential, Credential::Document) {
        return Ok(());
    }
    let url = Url::parse(&identity.id).ok();
    let is_fine = url.is_some_and(|url| {
        url.scheme() == "https" && url.path() != "/" && url.fragment().is_none() && url.username().is_empty()
    });
    let text = "the URL of a client metadata document must be https and have a path";
    if is_fine { Ok(()) } else { Err(OAuthError::Config(text.into())) }
}

impl std::fmt::Debug for OAuthBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OAuthBuilder").field("owner", &self.settings.owner).finish_non_exhaustive()
    }
}
