//! JSON text that is borrowed from the message it stands in.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// A JSON value as it stands in a text, borrowed.
///
/// Where the params of a call are decoded the value has been walked over already, and this is where it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonText<'a>(&'a str);

/// Asks a deserializer that knows the text of a value for just that.
pub(crate) const TEXT: &str = "$duplexer::JsonText";

impl<'a> JsonText<'a> {
    /// The JSON text.
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

    /// A deserializer that does not know what it was asked.
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
    fn the_text_is_the_same_whoever_reads_it() {
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
