//! Arguments of tools and prompts: conversion into what a request carries.

use duplexer_types::json::{Json, JsonObject};
use serde::Serialize;
use serde::ser::Error as _;

/// Encodes the arguments of a tool: an object, or nothing for `()` and `None`.
pub(super) fn tool_arguments(arguments: &impl Serialize) -> Result<Option<Json>, serde_json::Error> {
    let arguments = Json::encode(arguments)?;
    if arguments.is_object() {
        Ok(Some(arguments))
    } else if arguments.is_null() {
        Ok(None)
    } else {
        Err(serde_json::Error::custom("the arguments of a tool are not a JSON object"))
    }
}

/// Conversion into the arguments of a prompt. Sealed.
///
/// Arguments are a [`JsonObject<String>`], an array or vector of pairs such as `[("language", "Rust")]`, or `()` for none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of a prompt",
    note = "prompts take pairs of strings such as `[(\"language\", \"Rust\")]`, or `()` for none"
)]
pub trait IntoArguments: sealed::Sealed {
    /// Returns the arguments, or `None` if the request has none.
    fn into_arguments(self) -> Option<JsonObject<String>>;
}

impl IntoArguments for () {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        None
    }
}

impl IntoArguments for JsonObject<String> {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(self)
    }
}

impl<K: Into<String>, V: Into<String>, const N: usize> IntoArguments for [(K, V); N] {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(collect(self))
    }
}

impl<K: Into<String>, V: Into<String>> IntoArguments for Vec<(K, V)> {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(collect(self))
    }
}

fn collect<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> JsonObject<String> {
    pairs.into_iter().map(|(name, value)| (name, value.into())).collect()
}

mod sealed {
    use super::JsonObject;

    pub trait Sealed {}

    impl Sealed for () {}
    impl Sealed for JsonObject<String> {}
    impl<K, V, const N: usize> Sealed for [(K, V); N] {}
    impl<K, V> Sealed for Vec<(K, V)> {}
}
