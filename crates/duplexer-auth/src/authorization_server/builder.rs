//! Settings of an authorization server, validated by `build`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use duplexer_oauth_base::clock::Clock;

use super::backend::AuthBackend;
use super::client_metadata_document::ClientDocuments;
use super::records::Records;
use super::{
    AuthorizationServer, Hosts, Inner, IssParameter, Issuer, Lifetimes, RegisteredClient, Registration,
    Settings, identity_assertion, redirect,
};
use crate::dpop::Proofs;
use crate::error::AuthConfigError;
use crate::token::jwt::Jwt;
use crate::urls;

impl AuthorizationServer {
    /// Returns a builder of an authorization server with this issuer URL and backend.
    pub fn builder(issuer: &str, backend: impl AuthBackend) -> AuthorizationServerBuilder {
        AuthorizationServerBuilder {
            issuer: issuer.to_owned(),
            backend: Box::new(backend),
            settings: Settings {
                scopes: Vec::new(),
                resources: Vec::new(),
                registration: Registration::Open,
                hosts: Hosts::Issuer,
                iss: IssParameter::Sent,
                lifetimes: Lifetimes::default(),
                body_timeout: Duration::from_secs(30),
            },
            clients: Vec::new(),
            documents: Some(ClientDocuments::new()),
            assertions: None,
            clock: Clock::default(),
        }
    }
}

/// Builder of an [`AuthorizationServer`]. At least one [`Self::resource`] is required.
///
/// ```
/// use std::time::Duration;
///
/// use duplexer_auth::{AuthorizationServer, DevBackend, RegisteredClient};
///
/// let issuer = AuthorizationServer::builder("http://127.0.0.1:8000", DevBackend::new("ada"))
///     .resource("http://127.0.0.1:8000/mcp")
///     .scopes(["mcp", "notes:write"])
///     .client(RegisteredClient::public("desktop", ["http://127.0.0.1/callback"]).first_party())
///     .access_lifetime(Duration::from_secs(300))
///     .build()?;
/// # Ok::<_, duplexer_auth::AuthConfigError>(())
/// ```
#[must_use = "nothing is served until it is built"]
pub struct AuthorizationServerBuilder {
    issuer: String,
    backend: Box<dyn AuthBackend>,
    settings: Settings,
    clients: Vec<RegisteredClient>,
    documents: Option<Result<ClientDocuments, AuthConfigError>>,
    assertions: Option<Jwt>,
    clock: Clock,
}

impl AuthorizationServerBuilder {
    /// Adds a protected server, by its URL, for which tokens are issued.
    pub fn resource(mut self, url: impl Into<String>) -> Self {
        self.settings.resources.push(url.into());
        self
    }

    /// Adds scopes that clients can request.
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.settings.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds a configured client, which does not have to register.
    pub fn client(mut self, client: RegisteredClient) -> Self {
        self.clients.push(client);
        self
    }

    /// Disables dynamic client registration.
    pub fn without_registration(mut self) -> Self {
        self.settings.registration = Registration::Closed;
        self
    }

    /// Disables client id metadata documents: no document is fetched.
    pub fn without_client_documents(mut self) -> Self {
        self.documents = None;
        self
    }

    /// Accepts identity assertions (ID-JAG) of this issuer. [`AuthBackend::assertion`] maps them to users.
    pub fn trust(mut self, mut issuer: Jwt) -> Self {
        issuer.kinds = identity_assertion::KINDS;
        self.assertions = Some(issuer);
        self
    }

    /// Serves the consent page under any host name. Use it only behind a proxy that checks the host.
    pub fn any_host(mut self) -> Self {
        self.settings.hosts = Hosts::Any;
        self
    }

    /// Omits the `iss` parameter (RFC 9207) from redirects to clients, and says so in the metadata. For clients that reject
    /// parameters they do not know. Clients that use several authorization servers lose a protection against mix-up
    /// attacks.
    pub fn without_iss_parameter(mut self) -> Self {
        self.settings.iss = IssParameter::Omitted;
        self
    }

    /// Sets the lifetime of an authorization code. Default: one minute.
    pub fn code_lifetime(mut self, time: Duration) -> Self {
        self.settings.lifetimes.code = time;
        self
    }

    /// Sets the lifetime of an access token. Default: one hour.
    pub fn access_lifetime(mut self, time: Duration) -> Self {
        self.settings.lifetimes.access = time;
        self
    }

    /// Sets the time after its last renewal in which a grant can be renewed. Default: 30 days.
    pub fn refresh_lifetime(mut self, time: Duration) -> Self {
        self.settings.lifetimes.refresh = time;
        self
    }

    /// Sets the time within which the body of a request must arrive. Default: 30 s.
    pub fn body_timeout(mut self, timeout: Duration) -> Self {
        self.settings.body_timeout = timeout;
        self
    }

    /// Sets the source of the current time. For tests.
    pub fn clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(now);
        self
    }

    #[cfg(test)]
    pub(super) fn documents(mut self, documents: ClientDocuments) -> Self {
        self.documents = Some(Ok(documents));
        self
    }

    /// Builds the authorization server.
    ///
    /// # Errors
    /// Fails if no resource is set, or if a URL, a scope or a client of the settings is invalid.
    pub fn build(self) -> Result<AuthorizationServer, AuthConfigError> {
        let url = urls::issuer(&self.issuer)?;
        if self.settings.resources.is_empty() {
            return Err(AuthConfigError::NoResource);
        }
        self.settings.resources.iter().try_for_each(|resource| urls::resource(resource).map(drop))?;
        self.settings.scopes.iter().try_for_each(|scope| urls::check_scope(scope))?;
        let mut clients = HashMap::new();
        for client in self.clients {
            check_client(&client)?;
            clients.insert(client.id().to_owned(), client);
        }
        let issuer = Issuer {
            path: url.path().strip_suffix('/').unwrap_or(url.path()).to_owned(),
            metadata_path: urls::well_known("oauth-authorization-server", &url),
            text: self.issuer,
            url,
        };
        Ok(AuthorizationServer(Arc::new(Inner {
            issuer,
            records: Records(self.backend),
            settings: self.settings,
            clients,
            documents: self.documents.transpose()?,
            assertions: self.assertions,
            clock: self.clock,
            proofs: Proofs::new(),
        })))
    }
}

fn check_client(client: &RegisteredClient) -> Result<(), AuthConfigError> {
    client.metadata().redirect_uris.iter().try_for_each(|uri| redirect::check(uri)).map_err(|error| {
        AuthConfigError::Client { id: client.id().to_owned(), reason: error.error_description }
    })
}

impl std::fmt::Debug for AuthorizationServerBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorizationServerBuilder").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}
