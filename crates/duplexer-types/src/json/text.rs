//! JSON text that is borrowed from its message.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Borrowed text of a JSON value.
///
/// [`jsonrpc::decode`](crate::jsonrpc::decode) yields it without a second scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText<'a>(&'a str);

/// Name by which [`JsonText`] requests the text of a value from a deserializer that supports it.
pub(crate) const TEXT: &str = "$duplexer::JsonText";

impl<'a> JsonText<'a> {
    /// Returns the JSON text.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for JsonText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(TEXT, Text)
    }
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = JsonText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(JsonText(text))
    }

    /// For deserializers without support for [`TEXT`].
    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| JsonText(raw.get()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc;

    #[derive(Deserialize)]
    struct Call<'a> {
        #[serde(borrow)]
        arguments: Option<JsonText<'a>>,
    }

    #[test]
    fn the_text_is_the_same_for_both_deserializers() {
        for (params, expected) in [
            (r#"{"arguments": { "a" : "b" } }"#, Some(r#"{ "a" : "b" }"#)),
            (r#"{"arguments":"text"}"#, Some(r#""text""#)),
            (r#"{"arguments":null}"#, None),
            (r#"{"_meta":{}}"#, None),
        ] {
            let ours: Call<'_> = jsonrpc::decode(Some(params), [None, None]).unwrap();
            let theirs: Call<'_> = serde_json::from_str(params).unwrap();
            assert_eq!(ours.arguments.map(JsonText::as_str), expected);
            assert_eq!(theirs.arguments.map(JsonText::as_str), expected);
        }
    }
}
