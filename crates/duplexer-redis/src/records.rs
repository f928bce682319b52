//! Records of an authorization server. A code and a refresh token are used once in the whole deployment.

use std::sync::Arc;
use std::time::SystemTime;

use duplexer_auth::{Record, RecordKey, RecordKind, Store, Swapped, When};
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::StoreError;

use crate::link::Node;
use crate::scripts;
use crate::value::millis;

/// [`Store`] for an authorization server. Returned by [`Shared::records`](crate::Shared::records).
#[derive(Clone, Debug)]
pub struct RedisRecords(pub(crate) Arc<Node>);

impl Store for RedisRecords {
    fn get<'a>(&'a self, key: &'a RecordKey) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        Box::pin(async move { self.0.connection.query(redis::cmd("GET").arg(self.key(key))).await })
    }

    fn swap<'a>(
        &'a self,
        key: &'a RecordKey,
        when: When,
        record: Option<Record>,
    ) -> BoxFuture<'a, Result<Swapped, StoreError>> {
        Box::pin(async move {
            let mut call = scripts::SWAP.call([self.key(key)]);
            match &when {
                When::Always => call.arg("always").arg(""),
                When::Present => call.arg("present").arg(""),
                When::Absent => call.arg("absent").arg(""),
                When::Is(value) => call.arg("is").arg(value),
                other => return Err(StoreError::Failed(format!("unknown condition {other:?}").into())),
            };
            // Expiry is relative, because the clocks of node and store need not agree.
            let lifetime = |record: &Record| record.expires_at.duration_since(SystemTime::now()).ok();
            match record.as_ref().and_then(|record| Some((record, lifetime(record)?))) {
                Some((record, lifetime)) => call.arg(&record.value).arg(millis(lifetime)),
                None => call.arg("").arg(""),
            };
            let (swapped, current): (bool, Option<String>) = self.0.connection.run(&call).await?;
            Ok(if swapped { Swapped::Done(current) } else { Swapped::Not(current) })
        })
    }
}

impl RedisRecords {
    fn key(&self, key: &RecordKey) -> String {
        let kind = match key.kind {
            RecordKind::Client => "client",
            RecordKind::Document => "document",
            RecordKind::Request => "request",
            RecordKind::Code => "code",
            RecordKind::Grant => "grant",
            RecordKind::AccessToken => "access",
            RecordKind::RefreshToken => "refresh",
            RecordKind::Assertion => "assertion",
            _ => "other",
        };
        self.0.keys.record(kind, &key.id)
    }
}
