//! Storage interface of an authorization server: texts under keys, each with an expiry time.

use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;

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
    pub(super) fn new(kind: RecordKind, id: impl Into<String>) -> Self {
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
}

impl Record {
    pub(super) fn new(value: String, expires_at: SystemTime) -> Self {
        Self { value, expires_at }
    }
}

/// Failure of a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The store is full. The client gets 503 and can retry later.
    #[error("the store is full")]
    Full,
    /// Any other failure. It is logged and not sent to the client.
    #[error("the store failed")]
    Failed(#[source] BoxError),
}

/// Key-value store with expiry. An expired record is treated as absent.
pub trait Store: Send + Sync + 'static {
    /// Returns the value of a key.
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Atomically replaces the record of a key, or removes it for `None`, and returns the previous value. The single use
    /// of codes relies on this.
    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;
}
