//! What is stored of a server, and its removal.

use std::fmt;
use std::time::SystemTime;

use duplexer_oauth_base::address::origin;
use duplexer_oauth_base::clock;
use duplexer_types::text::shown;
use url::Url;

use crate::acquire::Purpose;
use crate::client::authentication::{Client, Form};
use crate::error::OAuthError;
use crate::oauth::{Inner, OAuth};
use crate::record::Entry;
use crate::server::{Server, State};
use crate::web::endpoint;

/// What is stored for a server. It has no secrets.
///
/// ```
/// use duplexer_oauth::{OAuth, Status};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer_oauth::OAuthError> {
/// let login = OAuth::login_with_browser("my-program").build()?;
/// assert_eq!(login.status("https://mcp.example.com/mcp").await?, Status::LoggedOut);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// There is no token.
    LoggedOut,
    /// There is a token.
    LoggedIn {
        /// The authorization server.
        issuer: String,
        /// The client id there.
        client_id: String,
        /// The granted scopes.
        scopes: Vec<String>,
        /// When the access token expires, if the authorization server said so.
        expires_at: Option<SystemTime>,
        /// Whether it is renewed without a login.
        renewal: Renewal,
    },
}

/// Whether a token can be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// There is a refresh token.
    Automatic,
    /// The token has to be obtained anew.
    None,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LoggedOut => f.write_str("not logged in"),
            Self::LoggedIn { issuer, client_id, scopes, .. } => {
                write!(f, "logged in at {} as client {}", shown(issuer), shown(client_id))?;
                if scopes.is_empty() { Ok(()) } else { write!(f, ", scopes: {}", shown(&scopes.join(" "))) }
            }
        }
    }
}

impl OAuth {
    /// Obtains a token for a server before any request needs one: a login at once. A valid stored token is kept, and one
    /// that can be renewed without a login is.
    ///
    /// A request without a token is sent first: its challenge names the scopes and the metadata, like that of any other.
    ///
    /// # Errors
    /// Fails if `server` is not a URL or cannot be reached, or if no token can be obtained.
    pub async fn login(&self, server: &str) -> Result<(), OAuthError> {
        let url = parse(server)?;
        let server = self.0.server(&url);
        if self.0.usable(&server).await?.is_some() {
            return Ok(());
        }
        let (refusal, peer) = server.web(self.0.settings.network).await?.challenge(&url).await?;
        server.note_peer(peer);
        let is_refused = refusal.is_some();
        match self.0.acquire(&server, refusal.unwrap_or_default(), Purpose::Access).await {
            // Some servers require a token for some requests only. One that is not an authorization server needs none.
            Err(OAuthError::NoRegistration { .. }) if !is_refused => Err(OAuthError::NoAuthority {
                server: origin(&url),
                reason: "it accepts requests without a login".to_owned(),
            }),
            outcome => outcome,
        }
    }

    /// Returns what is stored for a server.
    ///
    /// # Errors
    /// Fails if `server` is not a URL, or if the store fails.
    pub async fn status(&self, server: &str) -> Result<Status, OAuthError> {
        let server = self.0.server(&parse(server)?);
        let (_, credentials) = self.0.load(&server).await?;
        let current =
            credentials.current().and_then(|entry| entry.tokens.as_ref().map(|tokens| (entry, tokens)));
        Ok(current.map_or(Status::LoggedOut, |(entry, tokens)| Status::LoggedIn {
            issuer: entry.issuer.clone(),
            client_id: entry.client.id.clone(),
            scopes: tokens.scopes.clone(),
            expires_at: tokens.expires_at.map(clock::at),
            renewal: if tokens.refresh.is_some() { Renewal::Automatic } else { Renewal::None },
        }))
    }

    /// Revokes the tokens of a server where the authorization server supports that (RFC 7009), and removes all that is
    /// stored for it. A failed revocation does not keep it.
    ///
    /// # Errors
    /// Fails if `server` is not a URL, or if the store fails.
    pub async fn logout(&self, server: &str) -> Result<(), OAuthError> {
        let server = self.0.server(&parse(server)?);
        // A renewal that runs ends first: it would store new tokens after the old ones are removed.
        let _lock = self.0.parts.store.lock(&server.key).await?;
        let mut removed = Vec::new();
        self.0
            .update(&server, |credentials| {
                removed = credentials.take();
            })
            .await?;
        *server.state() = State { loaded: true, ..State::default() };
        for entry in removed {
            if let Err(error) = self.0.revoke(&server, &entry).await {
                tracing::debug!(%error, "a token could not be revoked");
            }
        }
        Ok(())
    }
}

impl Inner {
    /// Revokes the refresh token, which ends the whole grant, or else the access token.
    async fn revoke(&self, server: &Server, entry: &Entry) -> Result<(), OAuthError> {
        let (Some(url), Some(tokens)) = (&entry.endpoints.revocation, &entry.tokens) else { return Ok(()) };
        let url = endpoint(url)?;
        let (token, hint) = match &tokens.refresh {
            Some(refresh) => (refresh, "refresh_token"),
            None => (&tokens.access, "access_token"),
        };
        let mut form = Form::default();
        form.add("token", token.reveal());
        form.add("token_type_hint", hint);
        let Some(client) = entry.client.resolve(self.settings.grant.identities(), &entry.issuer) else {
            return Ok(());
        };
        let authorization = Client::authenticate(&client, &mut form, &entry.issuer, self.now()).await?;
        let web = server.web(self.settings.network).await?;
        let post = |mut request: reqwest::RequestBuilder| {
            if let Some(value) = authorization {
                request = request.header("authorization", value);
            }
            request.header("content-type", "application/x-www-form-urlencoded").body(form.encoded())
        };
        match web.post(&url, post).await?.status {
            200 => Ok(()),
            status => Err(OAuthError::answer(url.as_str(), format!("its status is {status}"))),
        }
    }
}

fn parse(server: &str) -> Result<Url, OAuthError> {
    let wrong = |_| OAuthError::Config(format!("'{}' is not a URL", shown(server)).into());
    Url::parse(server).map_err(wrong)
}
