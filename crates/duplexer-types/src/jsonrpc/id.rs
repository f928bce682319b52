//! Request ids: any string or 64-bit integer, echoed with its exact JSON type.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::scan;

/// Request id. It correlates a response, a progress notification or a cancellation with its request.
///
/// `7` and `"7"` are different ids. Cloning is cheap.
///
/// ```
/// use duplexer_types::jsonrpc::RequestId;
///
/// assert_eq!(RequestId::read("7"), RequestId::number(7));
/// assert_ne!(RequestId::read("\"7\""), RequestId::number(7));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestId {
    /// An integer that fits 64 bits, signed or unsigned.
    Number(i128),
    /// Any string, including the empty one.
    String(Arc<str>),
}

impl RequestId {
    /// Reads the JSON text of an id. `None` if it is not an id (null, a fraction, a boolean, ...).
    pub fn read(json: &str) -> Option<Self> {
        if json.starts_with('"') {
            return scan::string(json).map(|text| Self::String(text.into()));
        }
        let digits = json.strip_prefix('-').unwrap_or(json);
        if json == "-0" || digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        // Every 64-bit integer fits into twenty digits, which bounds the work; eighteen digits fit an `i64`.
        match digits.len() {
            ..=18 => json.parse::<i64>().ok().map(Self::from),
            19 | 20 => json.parse().ok().and_then(Self::number),
            _ => None,
        }
    }

    /// Creates an integer id, if the integer fits 64 bits.
    pub fn number(number: i128) -> Option<Self> {
        (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(Self::Number(number))
    }

    /// Returns the same id with the other JSON type: `7` for `"7"` and `"7"` for `7`.
    ///
    /// Some peers echo ids with another JSON type than they received.
    pub fn twin(&self) -> Option<Self> {
        match self {
            Self::Number(number) => Some(Self::String(number.to_string().into())),
            Self::String(text) => {
                let number = text.strip_prefix('+').filter(|rest| !rest.starts_with('-')).unwrap_or(text);
                let digits = number.strip_prefix('-').unwrap_or(number);
                let plausible =
                    (1..=40).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
                if plausible { number.parse().ok().and_then(Self::number) } else { None }
            }
        }
    }

    /// Appends the id as JSON.
    pub fn write(&self, out: &mut Vec<u8>) {
        use std::io::Write as _;
        // Writing into memory cannot fail.
        let _ = match self {
            Self::Number(number) => match i64::try_from(*number) {
                Ok(number) => serde_json::to_writer(out, &number).map_err(Into::into),
                Err(_) => write!(out, "{number}"),
            },
            Self::String(text) => serde_json::to_writer(out, &**text).map_err(Into::into),
        };
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number.into())
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self::Number(number.into())
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

/// The id as JSON: strings in quotes.
impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::String(text) => serde_json::Value::from(&**text).fmt(f),
        }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => match i64::try_from(*number) {
                Ok(number) => serializer.serialize_i64(number),
                Err(_) => serializer.serialize_i128(*number),
            },
            Self::String(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Id;

        impl de::Visitor<'_> for Id {
            type Value = RequestId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or an integer")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<RequestId, E> {
                Ok(number.into())
            }

            fn visit_u64<E: de::Error>(self, number: u64) -> Result<RequestId, E> {
                Ok(number.into())
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<RequestId, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_any(Id)
    }
}

crate::wire::same_everywhere!(RequestId);

#[cfg(test)]
mod tests {
    use super::*;

    /// TYP-02, TYP-03, P-RPC-2, P-RPC-3: an id round-trips unchanged; everything else is refused.
    #[test]
    fn ids_keep_their_exact_type_and_everything_else_is_refused() {
        for text in [
            "0",
            "7",
            "-7",
            "\"7\"",
            "\"\"",
            "\"a\\\"b\"",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "\"日本\"",
        ] {
            let id = RequestId::read(text).unwrap_or_else(|| panic!("{text}"));
            let mut out = Vec::new();
            id.write(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            assert_eq!(id.to_string(), text);
            assert_eq!(serde_json::from_str::<RequestId>(text).unwrap(), id, "{text}");
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        for text in [
            "null",
            "true",
            "1.0",
            "1e3",
            "-0",
            "{}",
            "[]",
            "18446744073709551616",
            "-9223372036854775809",
            "-",
            "",
        ] {
            assert_eq!(RequestId::read(text), None, "{text}");
        }
    }

    /// DISP-03: a number and its decimal text are twins; other text has none.
    #[test]
    fn twins_are_the_same_number_as_text() {
        let check = |id: RequestId, twin: Option<RequestId>| assert_eq!(id.twin(), twin, "{id}");
        check(7_i64.into(), Some("7".into()));
        check((-7_i64).into(), Some("-7".into()));
        check("7".into(), Some(7_i64.into()));
        check("+7".into(), Some(7_i64.into()));
        check("007".into(), Some(7_i64.into()));
        for text in ["", "-", "+", "+-7", "7.0", "seven", "99999999999999999999"] {
            check(text.into(), None);
        }
    }
}
