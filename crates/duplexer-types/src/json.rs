//! Free-form JSON as text, and objects that keep the order of their members.
//!
//! Nulls, key order and numerals of any size survive.

mod find;
pub(crate) mod plain;
pub(crate) mod scan;
mod stack;
pub(crate) mod text;
pub(crate) mod writer;

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use find::{Occurrence, find_member, find_members};
pub use scan::{NotJson, Scanner};
pub use text::JsonText;

/// JSON value as text.
///
/// The text is valid JSON without line breaks, so that it fits into a line-delimited message verbatim.
///
/// ```
/// use duplexer_types::json::Json;
/// use serde_json::json;
///
/// let json = Json::parse(r#"{"big": 12345678901234567890, "b": null}"#)?;
/// assert_eq!(json.member("big"), Some("12345678901234567890"));
/// assert_eq!(Json::from(json!([1, 2])).decode::<Vec<u8>>()?, [1, 2]);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Parses JSON text. Line breaks between tokens are removed, everything else stays verbatim.
    ///
    /// # Errors
    /// Fails if `text` is not JSON, or if a string in it escapes half of a surrogate pair. Frames refuse the same.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let json: Self = serde_json::from_str(text)?;
        // `serde_json` checks surrogates only in the strings that it decodes.
        if text.contains("\\u") && Scanner::new(text).value(0).is_err() {
            return Err(serde_json::Error::custom("lone surrogate in a string"));
        }
        Ok(json)
    }

    /// Encodes a value as JSON.
    ///
    /// # Errors
    /// Fails if the value cannot be serialized.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// Returns the empty object.
    pub fn object() -> Self {
        Self::literal("{}")
    }

    /// Returns `null`.
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    /// Returns the JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Decodes the value.
    ///
    /// # Errors
    /// Fails if the value is not a `T`.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.as_str().starts_with('{')
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.as_str() == "null"
    }

    /// Returns the JSON text of the member `name`, if the value is an object that has it once.
    pub fn member(&self, name: &str) -> Option<&str> {
        find_member(self.as_str(), name)
    }

    /// Deserializes an object; fails for other values.
    pub(crate) fn object_of<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Self::deserialize(deserializer)?;
        if json.is_object() { Ok(json) } else { Err(D::Error::custom("expected an object")) }
    }

    fn literal(text: &'static str) -> Self {
        RawValue::from_string(text.to_owned()).map_or_else(|_| Self::null(), Self)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        match without_line_breaks(raw.get()) {
            Cow::Borrowed(_) => Self(raw),
            Cow::Owned(text) => RawValue::from_string(text).map_or(Self(raw), Self),
        }
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        RawValue::from_string(value.to_string()).map_or_else(|_| Self::null(), Self)
    }
}

impl From<JsonObject> for Json {
    fn from(members: JsonObject) -> Self {
        Self::encode(&members).unwrap_or_else(|_| Self::object())
    }
}

impl From<String> for Json {
    /// Creates the JSON *string* with this text; use [`Json::parse`] for JSON text.
    fn from(text: String) -> Self {
        serde_json::Value::from(text).into()
    }
}

impl From<&str> for Json {
    /// Creates the JSON *string* with this text; use [`Json::parse`] for JSON text.
    fn from(text: &str) -> Self {
        serde_json::Value::from(text).into()
    }
}

/// Replaces line breaks by spaces. Inside a JSON string they are escaped, so all of them are between tokens.
fn without_line_breaks(text: &str) -> Cow<'_, str> {
    // Counting to the end, instead of stopping early, lets the compiler compare many bytes at once.
    if text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count() > 0 {
        Cow::Owned(text.replace(['\n', '\r'], " "))
    } else {
        Cow::Borrowed(text)
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// Deserializes an optional member whose value can be `null`: a present `null` is `Some`.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

/// Deserializes an optional member that is an object.
pub(crate) fn object<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Json>, D::Error> {
    let json = Json::deserialize(deserializer)?;
    match json.as_str().as_bytes().first() {
        Some(b'{') => Ok(Some(json)),
        Some(b'n') => Ok(None),
        _ => Err(D::Error::custom("expected an object")),
    }
}

/// JSON object that keeps the order of its members. Each name occurs once.
///
/// Without a type parameter its values are free-form JSON, as in `_meta`.
///
/// ```
/// use duplexer_types::json::JsonObject;
///
/// let meta: JsonObject = JsonObject::new().with("com.example/team", "data").with("com.example/cost", serde_json::json!(3));
/// assert_eq!(serde_json::to_string(&meta)?, r#"{"com.example/team":"data","com.example/cost":3}"#);
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonObject<T = Json>(Vec<(String, T)>);

impl<T> JsonObject<T> {
    /// Creates an empty object.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Returns the value of the member `name`.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets the member `name`. An earlier value is replaced in place and returned.
    pub fn insert(&mut self, name: impl Into<String>, value: T) -> Option<T> {
        let name = name.into();
        if let Some((_, slot)) = self.0.iter_mut().find(|(key, _)| *key == name) {
            return Some(std::mem::replace(slot, value));
        }
        self.0.push((name, value));
        None
    }

    /// Removes the member `name` and returns its value.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// Sets the member `name` and returns the object, for chaining.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<T>) -> Self {
        self.insert(name, value.into());
        self
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the object has no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns names and values in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

impl<T> Default for JsonObject<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Into<String>, T> FromIterator<(K, T)> for JsonObject<T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(members: I) -> Self {
        let mut all = Self::new();
        for (name, value) in members {
            all.insert(name, value);
        }
        all
    }
}

impl<T> IntoIterator for JsonObject<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: Serialize> Serialize for JsonObject<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for JsonObject<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<T>(std::marker::PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Object<T> {
            type Value = JsonObject<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = access.next_entry::<String, T>()? {
                    members.push(member);
                }
                match repeated_name(&members) {
                    Some(name) => Err(A::Error::custom(format_args!("duplicate member `{name}`"))),
                    None => Ok(JsonObject(members)),
                }
            }
        }

        deserializer.deserialize_map(Object(std::marker::PhantomData))
    }
}

/// Returns a repeated name. Sorting keeps this fast for any number of members that a peer sends.
fn repeated_name<T>(members: &[(String, T)]) -> Option<&str> {
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// Deserializer that reads structs from objects only.
pub(crate) struct ObjectsOnly<D>(pub(crate) D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ObjectsOnly<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// TYP-07: free-form JSON survives as text.
    #[test]
    fn nulls_order_and_large_numbers_survive() {
        let text = r#"{"z":null,"a":123456789012345678901234567890,"m":{"y":1.0,"b":[null, 1e2]}}"#;
        assert_eq!(Json::parse(text).unwrap().as_str(), text);
        let members: JsonObject = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&members).unwrap(), text);
    }

    /// P-STDIO-1: JSON in a line-delimited message holds no line break.
    #[test]
    fn line_breaks_between_tokens_are_removed_and_those_in_strings_stay_escaped() {
        let json = Json::parse("{\n  \"a\": \"x\\ny\",\r\n \"b\":\t1}").unwrap();
        assert!(!json.as_str().contains(['\n', '\r']));
        assert_eq!(json.decode::<serde_json::Value>().unwrap(), serde_json::json!({"a": "x\ny", "b": 1}));
    }

    #[test]
    fn text_becomes_a_json_string() {
        assert_eq!(Json::from("a\"b".to_owned()).as_str(), r#""a\"b""#);
        assert_eq!(Json::from("[1]").as_str(), r#""[1]""#);
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for text in ["", "{", "nul", "1 2", "{\"a\":}"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        // Lone surrogates are refused as in frames: a text that is accepted here can be sent.
        for text in [r#""\ud800""#, r#"{"a":["\udc00"]}"#, r#"{"\ud800x":1}"#, r#""\ud800\u0041""#] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        for text in [r#""\ud83e\udd80""#, r#"{"a":"\u00e9"}"#, r#""\\ud800""#, "1e400"] {
            assert_eq!(Json::parse(text).unwrap().as_str(), text);
        }
    }

    /// A struct of the protocol is an object, never an array of its values.
    #[test]
    fn models_are_read_from_objects_only() {
        use crate::lifecycle::Implementation;
        assert!(serde_json::from_str::<Implementation>(r#"{"name":"n","version":"1"}"#).is_ok());
        for text in [r#"["n","1"]"#, "null", "5", "\"n\""] {
            assert!(serde_json::from_str::<Implementation>(text).is_err(), "{text}");
        }
        assert!(serde_json::from_str::<crate::capabilities::ClientCapabilities>("[]").is_err());
    }

    #[test]
    fn a_name_occurs_once() {
        assert!(serde_json::from_str::<JsonObject>(r#"{"a":1,"a":2}"#).is_err());
        let mut members: JsonObject = JsonObject::new();
        members.insert("a", Json::from("x"));
        assert_eq!(members.insert("a", Json::null()), Some(Json::from("x")));
        assert_eq!(members.len(), 1);
        assert_eq!(members.remove("a"), Some(Json::null()));
        assert!(members.is_empty());
    }
}
