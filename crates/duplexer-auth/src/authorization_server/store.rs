//! Where an authorization server keeps what it must remember: texts under keys, each with a time at which it ends.

use std::time::SystemTime;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// A client that has registered itself.
    Client,
    /// A client's own description, fetched from its URL.
    Document,
    /// A question that waits for its user's consent.
    Request,
    /// An authorization code.
    Code,
    /// What a user has allowed a client; without it none of its tokens counts.
    Grant,
    /// An access token.
    AccessToken,
    /// A refresh token, also one that has been used.
    RefreshToken,
    /// An assertion that has been used.
    Assertion,
}

/// Under what it is kept. Secrets are not kept: their digest is the id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RecordKey {
    /// What it is.
    pub kind: RecordKind,
    /// Which one.
    pub id: String,
}

impl RecordKey {
    pub(super) fn new(kind: RecordKind, id: impl Into<String>) -> Self {
        Self { kind, id: id.into() }
    }
}

/// A text, and when it may be forgotten.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Record {
    /// JSON.
    pub value: String,
    /// When it ends.
    pub expires_at: SystemTime,
}

impl Record {
    pub(super) fn new(value: String, expires_at: SystemTime) -> Self {
        Self { value, expires_at }
    }
}

/// Why something could not be kept or found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no room; the caller is told to try again later.
    #[error("the store is full")]
    Full,
    /// Anything else. It is logged, and the caller learns nothing of it.
    #[error("the store failed")]
    Failed(#[source] BoxError),
}

/// Texts under keys. What has ended is not there any more.
pub trait Store: Send + Sync + 'static {
    /// What is kept under a key.
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>>;

    /// Puts an entry, or nothing, in the place of what is there, and returns that: in one step, whoever else comes at
    /// the same time. Codes are used once because of it.
    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>>;
}
