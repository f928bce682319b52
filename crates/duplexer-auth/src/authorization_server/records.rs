//! Typed access to the store: the only module that reads and writes it.

use std::time::{Duration, SystemTime};

use duplexer_core::error::{Chain, StoreError};
use duplexer_oauth_base::clock;
use duplexer_oauth_base::secret::Secret;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::authorize::CodeChallenge;
use super::backend::{AuthBackend, Grant, User};
use super::store::{Record, RecordKey, RecordKind, Swapped, When};
use super::{AuthorizationServer, RegisteredClient};
use crate::error::OAuthError;
use crate::secret;
use crate::token::AccessToken;

/// Typed records over the store of the backend.
pub(super) struct Records(pub(super) Box<dyn AuthBackend>);

/// An issued authorization code. It is kept for a while after its use, to detect a second use.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Code {
    pub(super) grant: String,
    /// The redirect URI as the client sent it, if it did.
    pub(super) redirect_uri: Option<String>,
    pub(super) challenge: CodeChallenge,
    pub(super) expires_at: u64,
    pub(super) state: Use,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refresh {
    pub(super) grant: String,
    /// Thumbprint of the key to which it is bound.
    #[serde(default)]
    pub(super) key: Option<String>,
    pub(super) expires_at: u64,
    pub(super) state: Use,
    /// How the token that replaced it was made.
    #[serde(default)]
    pub(super) successor: Option<Successor>,
}

/// How a refresh token was made of the one before it. Only who shows that one can make it again: the store cannot.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Successor {
    salt: String,
    /// When it was issued, in seconds since 1970.
    pub(super) issued_at: u64,
}

impl Successor {
    pub(super) fn new(issued_at: u64) -> Result<Self, OAuthError> {
        Ok(Self { salt: secret::random_hex::<32>()?, issued_at })
    }

    /// Makes the token that replaces `earlier`.
    pub(super) fn token(&self, earlier: &str) -> Secret {
        Secret::new(secret::digest(&format!("successor {} {earlier}", self.salt)))
    }
}

/// State of a code or token that can be used once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Use {
    Open,
    Spent,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Access {
    grant: String,
    scopes: Vec<String>,
    expires_at: u64,
    /// Thumbprint of the key to which it is bound.
    #[serde(default)]
    key: Option<String>,
}

/// A record with its stored text, to which a conditional replacement compares.
pub(super) struct Stored<T> {
    key: RecordKey,
    text: String,
    pub(super) value: T,
}

impl Records {
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
    ) -> Result<Option<T>, OAuthError> {
        let found = self.0.store().get(&RecordKey::new(kind, id)).await.map_err(failed)?;
        found.map(|text| read(&text)).transpose()
    }

    /// Reads a record that is to be replaced.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
    ) -> Result<Option<Stored<T>>, OAuthError> {
        let key = RecordKey::new(kind, id);
        let Some(text) = self.0.store().get(&key).await.map_err(failed)? else { return Ok(None) };
        let value = read(&text)?;
        Ok(Some(Stored { key, text, value }))
    }

    /// Replaces a record, unless it has changed since it was read. Returns whether it was replaced.
    pub(super) async fn replace<T: Serialize>(
        &self,
        stored: Stored<T>,
        record: &T,
        until: SystemTime,
    ) -> Result<bool, OAuthError> {
        let Stored { key, text, .. } = stored;
        let record = Some(Record::new(written(record)?, until));
        let swapped = self.swap(key.kind, key.id, When::Is(text), record).await?;
        Ok(matches!(swapped, Swapped::Done(_)))
    }

    /// Writes a record and returns the previous one.
    pub(super) async fn put<T: Serialize + DeserializeOwned>(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
        record: &T,
        until: SystemTime,
    ) -> Result<Option<T>, OAuthError> {
        let record = Some(Record::new(written(record)?, until));
        let before = previous(self.swap(kind, id, When::Always, record).await?);
        before.map(|text| read(&text)).transpose()
    }

    /// Writes a record that a full store can remove. A stranger can create such records.
    pub(super) async fn put_evictable(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
        record: &impl Serialize,
        until: SystemTime,
    ) -> Result<(), OAuthError> {
        let record = Some(Record::new(written(record)?, until).evictable());
        self.swap(kind, id, When::Always, record).await.map(drop)
    }

    pub(super) async fn take<T: DeserializeOwned>(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
    ) -> Result<Option<T>, OAuthError> {
        let found = previous(self.swap(kind, id, When::Always, None).await?);
        found.map(|text| read(&text)).transpose()
    }

    async fn swap(
        &self,
        kind: RecordKind,
        id: impl Into<String>,
        when: When,
        record: Option<Record>,
    ) -> Result<Swapped, OAuthError> {
        self.0.store().swap(&RecordKey::new(kind, id), when, record).await.map_err(failed)
    }

    /// Extends the lifetime of a grant, unless it was revoked or has expired meanwhile. Returns whether it exists.
    async fn prolong(&self, grant: &str, until: SystemTime) -> Result<bool, OAuthError> {
        let key = RecordKey::new(RecordKind::Grant, grant);
        let Some(text) = self.0.store().get(&key).await.map_err(failed)? else { return Ok(false) };
        let record = Some(Record::new(text, until));
        let swapped = self.swap(key.kind, key.id, When::Present, record).await?;
        Ok(matches!(swapped, Swapped::Done(_)))
    }

    /// Removes a grant, which invalidates all its tokens.
    pub(super) async fn revoke(&self, grant: &str) -> Result<(), OAuthError> {
        self.swap(RecordKind::Grant, grant, When::Always, None).await.map(drop)
    }
}

/// Returns the previous value of an unconditional swap.
fn previous(swapped: Swapped) -> Option<String> {
    match swapped {
        Swapped::Done(before) | Swapped::Not(before) => before,
    }
}

fn written(record: &impl Serialize) -> Result<String, OAuthError> {
    serde_json::to_string(record).map_err(|error| failed(StoreError::Failed(error.into())))
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, OAuthError> {
    serde_json::from_str(text).map_err(|error| failed(StoreError::Unreadable(error.into())))
}

fn failed(error: StoreError) -> OAuthError {
    match error {
        StoreError::Full => {
            tracing::warn!("the store of the authorization server is full");
            OAuthError::unavailable("the server is full; try again later")
        }
        error if error.is_temporary() => {
            tracing::error!(error = %Chain(&error), "the store of the authorization server cannot be used");
            OAuthError::unavailable("the server cannot use its store; try again later")
        }
        error => OAuthError::hidden("its store")(error.into()),
    }
}

/// Token response.
#[derive(Debug, Serialize)]
pub(super) struct Tokens {
    access_token: String,
    token_type: &'static str,
    expires_in: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    scope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

/// Whether a grant can be renewed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Renewal {
    Allowed,
    Refused,
}

/// The refresh token of a token response.
pub(super) enum RefreshToken {
    None,
    /// One that is stored with the response.
    New(Secret),
    /// One that was stored before.
    Stored(Secret),
}

impl RefreshToken {
    pub(super) fn renewal(&self) -> Renewal {
        if matches!(self, Self::None) { Renewal::Refused } else { Renewal::Allowed }
    }
}

impl AuthorizationServer {
    pub(super) fn after(&self, time: Duration) -> SystemTime {
        let now = self.0.clock.now();
        now.checked_add(time).unwrap_or(now)
    }

    /// Stores a new grant until its last token expires.
    pub(super) async fn create(&self, id: &str, grant: &Grant, renewal: Renewal) -> Result<(), OAuthError> {
        self.0.records.put(RecordKind::Grant, id, grant, self.grant_end(renewal)).await.map(drop)
    }

    /// Extends a grant until its next token expires. Returns whether it exists: a revoked grant is not restored.
    pub(super) async fn prolong(&self, id: &str, renewal: Renewal) -> Result<bool, OAuthError> {
        self.0.records.prolong(id, self.grant_end(renewal)).await
    }

    fn grant_end(&self, renewal: Renewal) -> SystemTime {
        let lifetimes = self.0.settings.lifetimes;
        let longest = if renewal == Renewal::Allowed { lifetimes.refresh } else { lifetimes.access };
        self.after(longest.max(lifetimes.access))
    }

    /// Issues tokens for an existing grant, with the given subset of its scopes.
    pub(super) async fn issue(
        &self,
        id: &str,
        scopes: Vec<String>,
        refresh: RefreshToken,
        key: Option<&str>,
    ) -> Result<Tokens, OAuthError> {
        let (records, lifetimes) = (&self.0.records, self.0.settings.lifetimes);
        let access = secret::token()?;
        let until = self.after(lifetimes.access);
        let key = key.map(str::to_owned);
        let expires_at = clock::seconds(until);
        let record = Access { grant: id.into(), scopes: scopes.clone(), expires_at, key: key.clone() };
        records.put(RecordKind::AccessToken, access.digest(), &record, until).await?;
        let mut tokens = Tokens {
            access_token: access.reveal().to_owned(),
            token_type: if key.is_some() { "DPoP" } else { "Bearer" },
            expires_in: lifetimes.access.as_secs(),
            scope: scopes.join(" "),
            refresh_token: None,
        };
        if let RefreshToken::New(token) = &refresh
            && let Err(error) = self.store_refresh_token(id, key, token).await
        {
            self.discard(&tokens).await;
            return Err(error);
        }
        if let RefreshToken::New(token) | RefreshToken::Stored(token) = refresh {
            tokens.refresh_token = Some(token.reveal().to_owned());
        }
        Ok(tokens)
    }

    /// Removes tokens that are not sent to the client. A failure is logged: they expire anyway.
    pub(super) async fn discard(&self, tokens: &Tokens) {
        let access = (RecordKind::AccessToken, Some(&tokens.access_token));
        let refresh = (RecordKind::RefreshToken, tokens.refresh_token.as_ref());
        for (kind, token) in [access, refresh] {
            if let Some(token) = token {
                let _ = self.0.records.swap(kind, secret::digest(token), When::Always, None).await;
            }
        }
    }

    async fn store_refresh_token(
        &self,
        grant: &str,
        key: Option<String>,
        token: &Secret,
    ) -> Result<(), OAuthError> {
        let until = self.after(self.0.settings.lifetimes.refresh);
        let expires_at = clock::seconds(until);
        let record = Refresh { grant: grant.into(), key, expires_at, state: Use::Open, successor: None };
        self.0.records.put(RecordKind::RefreshToken, token.digest(), &record, until).await.map(drop)
    }

    /// Looks up an access token. `None` if it or its grant has expired or was revoked.
    pub(crate) async fn access_token(&self, token: &str) -> Result<Option<AccessToken>, OAuthError> {
        let Some(access) =
            self.0.records.get::<Access>(RecordKind::AccessToken, secret::digest(token)).await?
        else {
            return Ok(None);
        };
        let grant = self.0.records.get::<Grant>(RecordKind::Grant, &*access.grant).await?;
        let is_current = access.expires_at > self.0.clock.seconds();
        Ok(grant.filter(|_| is_current).and_then(|grant| self.described(&access, grant)))
    }

    fn described(&self, access: &Access, grant: Grant) -> Option<AccessToken> {
        let User { subject, mut claims } = grant.user;
        claims.insert("iss".into(), self.issuer().into());
        claims.insert("sub".into(), subject.into());
        claims.insert("client_id".into(), grant.client_id.into());
        claims.insert("aud".into(), grant.resource.into());
        claims.insert("scope".into(), access.scopes.join(" ").into());
        claims.insert("exp".into(), access.expires_at.into());
        if let Some(key) = &access.key {
            claims.insert("cnf".into(), serde_json::json!({"jkt": key}));
        }
        AccessToken::from_claims(&claims)
    }

    /// Returns the grant id of an access or refresh token.
    pub(super) async fn grant_of(&self, token: &str, kind: RecordKind) -> Result<Option<String>, OAuthError> {
        let digest = secret::digest(token);
        Ok(match kind {
            RecordKind::AccessToken => {
                self.0.records.get::<Access>(kind, digest).await?.map(|found| found.grant)
            }
            _ => self.0.records.get::<Refresh>(kind, digest).await?.map(|found| found.grant),
        })
    }

    /// Extends the lifetime of a registered client that is in use. A registration that was removed is not restored.
    pub(super) async fn keep(&self, client: &RegisteredClient) -> Result<(), OAuthError> {
        if client.is_registered() {
            let until = self.after(self.0.settings.lifetimes.refresh.saturating_mul(2));
            let record = Some(Record::new(written(client)?, until));
            self.0.records.swap(RecordKind::Client, client.id(), When::Present, record).await?;
        }
        Ok(())
    }
}
