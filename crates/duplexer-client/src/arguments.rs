//! Argument values that tool calls and prompts accept.

use duplexer_types::json::{Json, JsonObject};
use serde_json::Value;

/// Conversion into the arguments of a request. Sealed.
///
/// - Arguments of a tool (`A` = [`Json`]): [`Json`], [`serde_json::Value`], [`JsonObject`], or `()` for none.
/// - Arguments of a prompt (`A` = [`JsonObject<String>`]): [`JsonObject<String>`], an array or vector of pairs such as
///   `[("language", "Rust")]`, or `()` for none.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the arguments of this request",
    note = "tools take a JSON object such as `json!({{..}})`, prompts take pairs of strings, and both take `()` for none"
)]
pub trait IntoArguments<A>: sealed::Sealed {
    /// Returns the arguments, or `None` if the request has none.
    fn into_arguments(self) -> Option<A>;
}

impl IntoArguments<Json> for () {
    fn into_arguments(self) -> Option<Json> {
        None
    }
}

impl IntoArguments<Json> for Json {
    fn into_arguments(self) -> Option<Json> {
        Some(self)
    }
}

impl IntoArguments<Json> for Value {
    fn into_arguments(self) -> Option<Json> {
        Some(self.into())
    }
}

impl IntoArguments<Json> for JsonObject {
    fn into_arguments(self) -> Option<Json> {
        Some(self.into())
    }
}

impl IntoArguments<JsonObject<String>> for () {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        None
    }
}

impl IntoArguments<JsonObject<String>> for JsonObject<String> {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(self)
    }
}

impl<K: Into<String>, V: Into<String>, const N: usize> IntoArguments<JsonObject<String>> for [(K, V); N] {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(collect(self))
    }
}

impl<K: Into<String>, V: Into<String>> IntoArguments<JsonObject<String>> for Vec<(K, V)> {
    fn into_arguments(self) -> Option<JsonObject<String>> {
        Some(collect(self))
    }
}

fn collect<K: Into<String>, V: Into<String>>(pairs: impl IntoIterator<Item = (K, V)>) -> JsonObject<String> {
    pairs.into_iter().map(|(name, value)| (name, value.into())).collect()
}

mod sealed {
    use super::{Json, JsonObject, Value};

    pub trait Sealed {}

    impl Sealed for () {}
    impl Sealed for Json {}
    impl Sealed for Value {}
    impl<T> Sealed for JsonObject<T> {}
    impl<K, V, const N: usize> Sealed for [(K, V); N] {}
    impl<K, V> Sealed for Vec<(K, V)> {}
}
