//! Storage interface of an authorization server: texts under keys, each with an expiry time.

use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// A registered client.
    Client,
    /// A cached client id metadata document.
    Document,
    /// An authorization request that waits for the consent of its user.
    Request,
    /// An authorization code.
    Code,
    /// Permission that a user has given to a client. Its tokens are invalid without it.
    Grant,
    /// An access token.
    AccessToken,
    /// A refresh token, unused or used.
    RefreshToken,
    /// A used identity assertion.
    Assertion,
}

/// Key of a record. Secrets are not stored: their digest is the id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordKey {
    /// The kind.
    pub kind: RecordKind,
    /// The id within the kind.
    pub id: String,
}

impl RecordKey {
    /// Creates a key. A secret is not an id: pass its digest.
    pub fn new(kind: RecordKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

/// Value of a record with its expiry time.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// JSON.
    pub value: String,
    /// Time after which the store can remove it.
    pub expires_at: SystemTime,
    /// Whether a full store can remove it earlier.
    pub retention: Retention,
}

impl Record {
    /// Creates a record that is kept until it expires.
    pub fn new(value: String, expires_at: SystemTime) -> Self {
        Self { value, expires_at, retention: Retention::Required }
    }

    /// Lets a full store remove the record before it expires.
    #[must_use]
    pub fn evictable(mut self) -> Self {
        self.retention = Retention::Evictable;
        self
    }
}

/// Whether a full store can remove a record before it expires.
///
/// A stranger can create evictable records without a sign-in. If they filled the store, it could not be used by others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retention {
    /// The record is kept until it expires.
    Required,
    /// A store without capacity for another record of the kind removes the evictable one that expires first.
    Evictable,
}

/// Condition of a [`Store::swap`], on the current record of the key.
///
/// ```
/// use duplexer_auth::When;
///
/// assert!(When::Absent.allows(None));
/// assert!(When::Is("old".to_owned()).allows(Some("old")));
/// assert!(!When::Is("old".to_owned()).allows(Some("new")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum When {
    /// No condition.
    Always,
    /// There is a record.
    Present,
    /// There is no record.
    Absent,
    /// There is a record with this value.
    Is(String),
}

impl When {
    /// Returns whether the current value of a key satisfies the condition.
    pub fn allows(&self, current: Option<&str>) -> bool {
        match self {
            Self::Always => true,
            Self::Present => current.is_some(),
            Self::Absent => current.is_none(),
            Self::Is(value) => current == Some(value.as_str()),
        }
    }
}

/// Result of a [`Store::swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swapped {
    /// The record was replaced. Holds the previous value.
    Done(Option<String>),
    /// The condition was not satisfied and nothing was changed. Holds the current value.
    Not(Option<String>),
}

/// Key-value store with expiry. An expired record is treated as absent.
///
/// Both operations can be repeated: a caller that got [`StoreError::Unavailable`] does not know whether the operation
/// happened.
pub trait Store: Send + Sync + 'static {
    /// Returns the value of a key.
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Replaces the record of a key, or removes it for `None`, if the current record satisfies the condition.
    ///
    /// The comparison and the replacement are one atomic operation, for all processes that share the store. The single
    /// use of codes and refresh tokens and the revocation of grants rely on this.
    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        when: When,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>>;
}
