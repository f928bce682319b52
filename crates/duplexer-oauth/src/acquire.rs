//! Obtaining a token: discovery, then the grant. One at a time per server.

use std::sync::Arc;

use duplexer_types::text::shown;
use url::Url;

use crate::challenge::Challenge;
use crate::client::ClientIdentity;
use crate::client::authentication::Client;
use crate::discovery::authority::Authority;
use crate::discovery::{Discovered, discover};
use crate::dpop::DpopKey;
use crate::error::OAuthError;
use crate::event::Event;
use crate::flow::exchange::TokenEndpoint;
use crate::grant::Grant;
use crate::key::SigningKey;
use crate::oauth::Inner;
use crate::record::{Credentials, Endpoints, Entry, StoredClient};
use crate::scope;
use crate::server::{Active, Server, Standing};
use crate::token::{TokenKind, Tokens};
use crate::web::{Web, check_protected};

/// Why a token is obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// There is none, or it is not valid.
    Access,
    /// It lacks scopes of the challenge.
    StepUp,
}

/// What a grant needs to know.
pub(crate) struct Acquisition<'a> {
    pub(crate) inner: &'a Inner,
    pub(crate) server: &'a Server,
    pub(crate) web: &'a Web,
    pub(crate) discovered: &'a Discovered,
    pub(crate) stored: &'a Credentials,
    pub(crate) scopes: Vec<String>,
    /// Whether the tokens are bound to a key.
    pub(crate) is_bound: bool,
}

impl Inner {
    /// Obtains a token for a server that has sent this challenge, or waits for the one that is being obtained.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        server: &Arc<Server>,
        challenge: Challenge,
        purpose: Purpose,
    ) -> Result<(), OAuthError> {
        let (inner, server_of_task) = (Arc::clone(self), Arc::clone(server));
        let start = move || async move {
            let required = challenge.scopes();
            let outcome = inner.obtain(&server_of_task, challenge, purpose).await;
            if purpose == Purpose::StepUp {
                server_of_task.note_step_up(required, &outcome);
            }
            if let Err(error) = &outcome {
                inner.emit(&Event::Failed { error: error.clone() });
            }
            outcome
        };
        server.flight.cancellable(start).await
    }

    async fn obtain(
        &self,
        server: &Server,
        challenge: Challenge,
        purpose: Purpose,
    ) -> Result<(), OAuthError> {
        if let Grant::Function(function) = &self.settings.grant {
            let token = function.token().await.map_err(OAuthError::source)?;
            return self.use_plain(server, token);
        }
        check_protected(&server.url)?;
        let unsaved = server.state().unsaved.take();
        if let Some((entry, tokens)) = unsaved {
            return self.adopt(server, entry, tokens, Standing::Granted).await;
        }
        let web = server.web(self.settings.network).await?;
        let (_, stored) = self.load(server).await?;
        if purpose == Purpose::Access && self.take_over_newer(server, &stored)? {
            return Ok(());
        }
        let rules = &self.settings.issuers;
        let discovered = discover(web, &server.url, &challenge, rules, &stored.issuers()).await?;
        let issuer = discovered.authority.issuer.clone();
        self.emit(&Event::Discovered { server: server.url.to_string(), issuer: shown(&issuer) });
        let scopes = self.requested_scopes(server, &challenge, purpose, &discovered);
        if purpose == Purpose::StepUp {
            self.emit(&Event::SteppingUp { scopes: scopes.clone() });
        }
        let is_bound = self.settings.dpop.applies(&discovered.authority, challenge.scheme());
        let acquisition = Acquisition {
            inner: self,
            server,
            web,
            discovered: &discovered,
            stored: &stored,
            scopes,
            is_bound,
        };
        let (entry, tokens) = match &self.settings.grant {
            Grant::Login(login) => acquisition.login(login).await?,
            grant => acquisition.without_person(grant).await?,
        };
        self.emit(&Event::Authorized { issuer: shown(&issuer), scopes: tokens.scopes.clone() });
        server.state().challenge = challenge;
        self.adopt(server, entry, tokens, Standing::Granted).await
    }

    /// Uses a token of the application. It is not stored, and never sent without TLS.
    fn use_plain(&self, server: &Server, token: duplexer_oauth_base::Secret) -> Result<(), OAuthError> {
        check_protected(&server.url)?;
        let tokens = Tokens {
            access: token,
            kind: TokenKind::Bearer,
            refresh: None,
            received_at: self.now(),
            expires_at: None,
            scopes: Vec::new(),
        };
        let client = ClientIdentity::public("").stored(crate::client::authentication::Method::None, None);
        let entry = Entry {
            issuer: String::new(),
            resource: None,
            client,
            endpoints: Endpoints::default(),
            tokens: None,
            requested: Vec::new(),
            dpop_key: None,
        };
        let mut state = server.state();
        // The first token was not requested because of a refusal: after one, the function is called once more.
        let standing = if state.active.is_some() { Standing::Granted } else { Standing::Stored };
        state.loaded = true;
        state.active = Some(Arc::new(Active::new(entry, tokens, None, standing)));
        Ok(())
    }

    /// Returns the scopes to request: for a step-up those of the token and of earlier requests too (OAC-50), whatever
    /// the server publishes.
    fn requested_scopes(
        &self,
        server: &Server,
        challenge: &Challenge,
        purpose: Purpose,
        discovered: &Discovered,
    ) -> Vec<String> {
        let challenged = challenge.scopes();
        let scopes = match purpose {
            Purpose::Access => scope::initial(&challenged, &discovered.scopes, &self.settings.scopes),
            Purpose::StepUp => {
                let active = server.state().active.clone();
                let active = active.filter(|active| active.entry.issuer == discovered.authority.issuer);
                let (granted, requested) = active.as_ref().map_or((&[][..], &[][..]), |active| {
                    (active.tokens.scopes.as_slice(), active.entry.requested.as_slice())
                });
                scope::union([granted, requested, &challenged])
            }
        };
        match &self.settings.grant {
            Grant::Login(_) => scope::with_offline_access(scopes, &discovered.authority.scopes_supported),
            _ => scopes,
        }
    }

    pub(crate) fn token_endpoint<'a>(
        &'a self,
        web: &'a Web,
        entry: &'a Entry,
        client: &'a Client,
        dpop: Option<&'a DpopKey>,
    ) -> Result<TokenEndpoint<'a>, OAuthError> {
        Ok(TokenEndpoint {
            url: crate::web::endpoint(&entry.endpoints.token)?,
            issuer: &entry.issuer,
            client,
            dpop,
            web,
            nonces: &self.nonces,
            time: &self.parts.time,
        })
    }
}

impl Acquisition<'_> {
    /// Returns the entry of a client at the authorization server, without tokens, with a key if they are bound to one.
    pub(crate) fn entry(&self, client: StoredClient) -> Result<Entry, OAuthError> {
        let authority = &self.discovered.authority;
        let known = self.stored.entry(&authority.issuer).filter(|known| known.client.id == client.id);
        let mut dpop_key = known.and_then(|known| known.dpop_key.clone());
        if self.is_bound && dpop_key.is_none() && self.inner.settings.dpop.generates() {
            dpop_key = Some(SigningKey::generate().map_err(|error| OAuthError::source(error.into()))?);
        }
        Ok(Entry {
            issuer: authority.issuer.clone(),
            resource: self.discovered.resource.clone(),
            client,
            endpoints: Endpoints {
                token: authority.token_endpoint()?.into(),
                revocation: authority.revocation_endpoint.clone(),
            },
            tokens: None,
            requested: self.scopes.clone(),
            dpop_key,
        })
    }

    /// Returns the key of an entry, if tokens are bound.
    pub(crate) fn dpop_key(&self, entry: &Entry) -> Result<Option<DpopKey>, OAuthError> {
        if self.is_bound { self.inner.settings.dpop.key_of(entry) } else { Ok(None) }
    }

    /// Obtains a token without a person (OAC-54 to OAC-58). There is no registration.
    async fn without_person(&self, grant: &Grant) -> Result<(Entry, Tokens), OAuthError> {
        let authority = &self.discovered.authority;
        let none = || OAuthError::NoRegistration { issuer: shown(&authority.issuer) };
        let identity = grant.identities().iter().find(|identity| identity.is_for(&authority.issuer));
        let identity = identity.ok_or_else(none)?;
        let client = identity.resolve(authority);
        client.check(authority)?;
        let is_pinned = identity.issuer.is_some() || self.inner.settings.issuers.pinned.is_some();
        if matches!(grant, Grant::Assertion(_)) && !is_pinned {
            check_origin(authority)?;
        }
        let entry = self.entry(identity.stored(client.method, None))?;
        let dpop = self.dpop_key(&entry)?;
        let endpoint = self.inner.token_endpoint(self.web, &entry, &client, dpop.as_ref())?;
        let tokens = match grant {
            Grant::Assertion(grant) => grant.request(&endpoint, self.discovered, &self.scopes).await?,
            Grant::Workload(grant) => grant.request(&endpoint, self.discovered, &self.scopes).await?,
            _ => crate::grant::credentials::request(&endpoint, self.discovered, &self.scopes).await?,
        };
        check_binding(self.inner, &tokens)?;
        Ok((entry, tokens))
    }
}

/// Rejects a token endpoint on another origin than its issuer, which the server alone has named (OAC-57).
fn check_origin(authority: &Authority) -> Result<(), OAuthError> {
    let endpoint = authority.token_endpoint()?;
    if Url::parse(&authority.issuer).is_ok_and(|issuer| issuer.origin() == endpoint.origin()) {
        return Ok(());
    }
    let reason = "it is not on the origin of its issuer: name the issuer if you trust it";
    Err(OAuthError::answer(endpoint.as_str(), reason))
}

/// Rejects a bearer token where every token must be bound (OAC-72).
pub(crate) fn check_binding(inner: &Inner, tokens: &Tokens) -> Result<(), OAuthError> {
    if inner.settings.dpop.is_required() && tokens.kind == TokenKind::Bearer {
        let text = "the authorization server issued a bearer token, but DPoP is required: use `Dpop::prefer`, or another server";
        return Err(OAuthError::Config(text.into()));
    }
    Ok(())
}
