//! Conversions between answers of the store and values.

use std::time::Duration;

use duplexer_core::error::{BoxError, StoreError};
use duplexer_core::run::RunId;
use duplexer_server::subscriptions::Position;
use redis::{FromRedisValue, Value};
use serde::Serialize;

use crate::keys::LAYOUT;

/// Returns a duration in milliseconds, the unit of the store. At least one, because zero deletes.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Writes a value as JSON.
pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Failed(error.into()))
}

pub(crate) fn decode<T: FromRedisValue>(value: Value) -> Result<T, StoreError> {
    T::from_redis_value(value).map_err(|error| unreadable(error.to_string()))
}

/// Splits the answer of a script: a word, and the rest.
pub(crate) fn outcome(answer: Vec<Value>) -> Result<(String, std::vec::IntoIter<Value>), StoreError> {
    let mut values = answer.into_iter();
    Ok((next(&mut values)?, values))
}

/// Takes the next part of an answer.
pub(crate) fn next<T: FromRedisValue>(values: &mut std::vec::IntoIter<Value>) -> Result<T, StoreError> {
    decode(values.next().ok_or_else(|| unreadable("an answer of the store is too short"))?)
}

pub(crate) fn unreadable(reason: impl Into<BoxError>) -> StoreError {
    StoreError::Unreadable(reason.into())
}

/// Returns the error of a record that a later version has written.
pub(crate) fn later_layout(layout: &str) -> StoreError {
    unreadable(format!("the record has layout `{layout}`, and this version reads layout `{LAYOUT}`"))
}

/// Reads a run. Empty text is none.
pub(crate) fn run(text: &str) -> Result<Option<RunId>, StoreError> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(unreadable) }
}

/// Reads a position. Empty text is none.
pub(crate) fn position(text: &str) -> Result<Option<Position>, StoreError> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some).map_err(unreadable) }
}
