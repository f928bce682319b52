//! What is stored of one server: registrations and tokens, each under its issuer.

use duplexer_core::error::{BoxError, StoreError};
use duplexer_oauth_base::Secret;
use duplexer_oauth_base::secret::as_optional_text;
use serde::{Deserialize, Serialize};

use crate::client::authentication::Method;
use crate::error::OAuthError;
use crate::store::Record;
use crate::token::Tokens;

/// Version of the stored form.
const VERSION: u32 = 1;
/// Maximum issuers of one server whose credentials are kept. The oldest are removed.
const MAX_ISSUERS: usize = 4;

/// Stored credentials of one server.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Credentials {
    version: u32,
    /// The latest first: its tokens are sent.
    entries: Vec<Entry>,
}

/// Credentials at one issuer. They are never shown to another one (OAC-23).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Our own note, never read from an answer.
    pub(crate) issuer: String,
    pub(crate) resource: Option<String>,
    pub(crate) client: StoredClient,
    pub(crate) endpoints: Endpoints,
    pub(crate) tokens: Option<Tokens>,
    /// All scopes that were ever requested here.
    pub(crate) requested: Vec<String>,
    /// Generated DPoP key.
    #[serde(with = "as_optional_text", default)]
    pub(crate) dpop_key: Option<Secret>,
}

/// Endpoints that are used without discovery.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Endpoints {
    pub(crate) token: String,
    pub(crate) revocation: Option<String>,
}

/// A client at one issuer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredClient {
    pub(crate) id: String,
    pub(crate) method: Method,
    #[serde(with = "as_optional_text", default)]
    pub(crate) secret: Option<Secret>,
    pub(crate) secret_expires_at: Option<u64>,
    pub(crate) redirect_uri: Option<String>,
    pub(crate) origin: ClientOrigin,
}

/// Where a client is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ClientOrigin {
    /// From the configuration, which has its secret.
    Configured,
    /// From a registration, whose secret is stored.
    Registered,
}

impl Default for Credentials {
    fn default() -> Self {
        Self { version: VERSION, entries: Vec::new() }
    }
}

impl Credentials {
    /// Reads a stored record. One of a later version is not overwritten.
    pub(crate) fn read(record: &Record) -> Result<Self, OAuthError> {
        let unreadable = |error: BoxError| OAuthError::from(StoreError::Unreadable(error));
        let read: Self =
            serde_json::from_slice(record.content()).map_err(|error| unreadable(error.into()))?;
        if read.version != VERSION {
            return Err(unreadable(format!("version {} is not known", read.version).into()));
        }
        Ok(read)
    }

    pub(crate) fn to_record(&self) -> Result<Record, OAuthError> {
        let text = serde_json::to_vec(self).map_err(|error| StoreError::Failed(error.into()))?;
        Ok(Record::new(text)?)
    }

    /// Returns the entry whose tokens are sent.
    pub(crate) fn current(&self) -> Option<&Entry> {
        self.entries.first().filter(|entry| entry.tokens.is_some())
    }

    pub(crate) fn entry(&self, issuer: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.issuer == issuer)
    }

    pub(crate) fn entry_mut(&mut self, issuer: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.issuer == issuer)
    }

    /// Puts an entry first, in place of the earlier one of its issuer.
    pub(crate) fn put(&mut self, entry: Entry) {
        self.entries.retain(|known| known.issuer != entry.issuer);
        self.entries.insert(0, entry);
        self.entries.truncate(MAX_ISSUERS);
    }

    /// Puts the client of a login that begins. No tokens are lost if the login does not end: those that the client has now are
    /// kept, which another process may have renewed since the login began, and a client without tokens replaces none that has
    /// some.
    pub(crate) fn put_client(&mut self, mut entry: Entry) {
        let place = self.entries.iter().position(|known| known.issuer == entry.issuer);
        let Some(known) = place.and_then(|place| self.entries.get_mut(place)) else {
            self.entries.insert(usize::from(self.current().is_some()), entry);
            return self.entries.truncate(MAX_ISSUERS);
        };
        if known.tokens.is_some() {
            if known.client.id != entry.client.id {
                return;
            }
            entry.tokens = known.tokens.take();
            entry.dpop_key = known.dpop_key.take().or(entry.dpop_key);
        }
        *known = entry;
    }

    pub(crate) fn remove(&mut self, issuer: &str) {
        self.entries.retain(|entry| entry.issuer != issuer);
    }

    /// Removes all entries and returns them.
    pub(crate) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.entries)
    }

    pub(crate) fn issuers(&self) -> Vec<String> {
        self.entries.iter().map(|entry| entry.issuer.clone()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ClientIdentity;
    use crate::token::TokenKind;

    fn entry(issuer: &str, client: &str, token: Option<&str>) -> Entry {
        let tokens = token.map(|token| Tokens {
            access: Secret::new(token),
            kind: TokenKind::Bearer,
            refresh: None,
            received_at: 0,
            expires_at: None,
            scopes: Vec::new(),
        });
        Entry {
            issuer: issuer.to_owned(),
            resource: None,
            client: ClientIdentity::public(client).stored(Method::None, None),
            endpoints: Endpoints::default(),
            tokens,
            requested: Vec::new(),
            dpop_key: None,
        }
    }

    fn shown(credentials: &Credentials) -> Vec<String> {
        let entries = credentials.entries.iter();
        let token =
            |entry: &Entry| entry.tokens.as_ref().map_or("-".to_owned(), |it| it.access.reveal().to_owned());
        entries.map(|entry| format!("{} {} {}", entry.issuer, entry.client.id, token(entry))).collect()
    }

    /// OAC-49: a login that begins takes no tokens away, whatever other processes have stored since it loaded the record.
    #[test]
    fn a_login_that_begins_loses_no_tokens() {
        let mut credentials = Credentials::default();
        credentials.put_client(entry("a", "first", None));
        assert_eq!(shown(&credentials), ["a first -"]);
        credentials.put_client(entry("a", "again", None));
        assert_eq!(shown(&credentials), ["a again -"]);
        credentials.put(entry("a", "again", Some("renewed")));
        for client in ["again", "other"] {
            credentials.put_client(entry("a", client, None));
            assert_eq!(shown(&credentials), ["a again renewed"]);
        }
        // The tokens of another issuer are sent until there are new ones.
        credentials.put_client(entry("b", "new", None));
        assert_eq!(shown(&credentials), ["a again renewed", "b new -"]);
        assert!(credentials.current().is_some());
        credentials.put(entry("b", "new", Some("granted")));
        assert_eq!(shown(&credentials), ["b new granted", "a again renewed"]);
        for number in 0..10 {
            credentials.put_client(entry(&number.to_string(), "c", None));
        }
        assert_eq!((credentials.entries.len(), credentials.current().is_some()), (MAX_ISSUERS, true));
    }
}
