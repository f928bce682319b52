//! Decodes the params of a call into a type, member by member.
//!
//! [`super::read`] has validated the text. Members that the type does not have (above all `_meta`) are skipped instead
//! of parsed again, and strings without escapes are borrowed.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::value::{BorrowedStrDeserializer, StringDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::RawCall;
use crate::json::plain::plain_prefix;
use crate::json::scan::{self, NotJson, Object, Scanner};
use crate::json::text::TEXT;

type Error = serde_json::Error;

impl<'a> RawCall<'a> {
    /// Decodes the params. Absent params are an empty object.
    ///
    /// # Errors
    /// Fails if the params are not a `T`.
    pub fn decode<T: Deserialize<'a>>(&self) -> Result<T, Error> {
        decode(self.params, [self.meta, self.longest])
    }
}

/// Decodes the params of a call. `known` are the texts of members that [`super::read`] found; they are not scanned again.
///
/// Absent params are an empty object.
///
/// # Errors
/// Fails if the params are not a `T`.
pub fn decode<'a, T: Deserialize<'a>>(
    params: Option<&'a str>,
    known: [Option<&'a str>; 2],
) -> Result<T, Error> {
    T::deserialize(Params { text: params.unwrap_or("{}"), known })
}

/// Returns the first member `name` of the params of a call, if it is a string. `meta` is the known text of `_meta`.
///
/// The text after the member is not read: decoding the params rejects a repeated member.
#[inline]
pub fn first_text<'a>(params: &'a str, meta: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    if let Some((text, _)) = leading_text(params, name) {
        return Some(Cow::Borrowed(text));
    }
    Scanner::new(params).find_first(name, meta).ok().flatten().and_then(scan::string)
}

/// Returns the member `name` of the params of a call if they consist of it and of `_meta`, in this order and without white
/// space or escapes: that is how most clients write them. Otherwise the params have to be decoded.
#[inline]
pub fn only_text<'a>(params: &'a str, meta: Option<&str>, name: &str) -> Option<&'a str> {
    let (text, rest) = leading_text(params, name)?;
    let members = rest.strip_suffix('}')?;
    let is_all = match meta {
        Some(meta) => members.strip_prefix(",\"_meta\":") == Some(meta),
        None => members.is_empty(),
    };
    is_all.then_some(text)
}

/// Returns the member `name` and what follows it, if it comes first.
#[inline]
fn leading_text<'a>(params: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let value = params.strip_prefix("{\"")?.strip_prefix(name)?.strip_prefix("\":\"")?;
    let (text, rest) = value.split_at_checked(plain_prefix(value.as_bytes()))?;
    Some((text, rest.strip_prefix('"')?))
}

struct Params<'de> {
    text: &'de str,
    known: [Option<&'de str>; 2],
}

impl<'de> Deserializer<'de> for Params<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let mut scanner = Scanner::new(self.text);
        let object = scanner.open_object().map_err(not_an_object)?;
        visitor.visit_map(ParamsAccess { scanner, object, known: self.known })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        // `RawValue` announces itself by this name, which only `serde_json` handles.
        serde_json::Deserializer::from_str(self.text).deserialize_newtype_struct(name, visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        serde_json::Deserializer::from_str(self.text).deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct ParamsAccess<'de> {
    scanner: Scanner<'de>,
    object: Object,
    known: [Option<&'de str>; 2],
}

impl<'de> MapAccess<'de> for ParamsAccess<'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Error> {
        let name = self.scanner.next_name(&mut self.object).map_err(not_an_object)?;
        match name {
            None => Ok(None),
            Some(Cow::Borrowed(name)) => seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some),
            Some(Cow::Owned(name)) => seed.deserialize(StringDeserializer::new(name)).map(Some),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let known = self.known.into_iter().flatten().find_map(|known| self.scanner.skip(known));
        let text = known.map_or_else(|| self.scanner.value(1), Ok).map_err(not_an_object)?;
        seed.deserialize(Member(text))
    }
}

/// Validated text of one member.
struct Member<'de>(&'de str);

/// Delegates everything but strings and ignored values to `serde_json`.
macro_rules! delegate_to_serde_json {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            serde_json::Deserializer::from_str(self.0).$method($($argument,)* visitor)
        }
    )*};
}

impl<'de> Deserializer<'de> for Member<'de> {
    type Error = Error;

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match scan::string(self.0) {
            Some(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Some(Cow::Owned(text)) => visitor.visit_string(text),
            None => self.deserialize_any(visitor),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0 == "null" { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name == TEXT {
            return visitor.visit_borrowed_str(self.0);
        }
        serde_json::Deserializer::from_str(self.0).deserialize_newtype_struct(name, visitor)
    }

    delegate_to_serde_json! {
        deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32()
        deserialize_i64() deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32()
        deserialize_u64() deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char()
        deserialize_bytes() deserialize_byte_buf() deserialize_unit() deserialize_seq() deserialize_map()
        deserialize_identifier()
        deserialize_unit_struct(name: &'static str)
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}

fn not_an_object(NotJson: NotJson) -> Error {
    Error::custom("params is not an object")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{RawFrame, find_meta, read};
    use super::*;
    use crate::json::{Json, JsonObject as Free};

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything<'a> {
        name: String,
        borrowed: &'a str,
        #[serde(default)]
        maybe: Option<u8>,
        #[serde(default, deserialize_with = "crate::json::present")]
        free: Option<Json>,
        list: Vec<f64>,
        map: BTreeMap<String, bool>,
        kind: Kind,
        wrapped: Wrapped,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Good,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Wrapped(i64);

    fn decoded<'a, T: Deserialize<'a>>(frame: &'a str) -> Result<T, Error> {
        match read(frame) {
            Ok(RawFrame::Notification(call)) => call.decode(),
            other => panic!("{other:?}"),
        }
    }

    /// The verdict and the value are those of `serde_json` over the same text.
    #[test]
    fn params_decode_as_serde_json_would() {
        let good = r#""name":"a\nb","borrowed":"c","free":null,"list":[1,2.5],"map":{"x":true},"kind":"good","wrapped":-7"#;
        for params in [
            format!("{{{good}}}"),
            format!(r#"{{ "_meta" : {{"a":[{{}}]}} , "unknown" : [[1]], "maybe" : 7 ,{good} }}"#),
            format!(r#"{{{good},"maybe":null}}"#),
            format!(r#"{{{good},"maybe":300}}"#),
            format!(r#"{{{good},"name":"twice"}}"#),
            good.replace("\"good\"", "\"bad\""),
            format!("{{{}}}", good.replace("\"a\\nb\"", "7")),
            format!("{{{}}}", good.replace("\"name\"", "\"n\\u0061me\"")),
            format!("{{{}}}", good.replace("-7", "1.5")),
            "{}".to_owned(),
        ] {
            let frame = format!(r#"{{"jsonrpc":"2.0","method":"m","params":{params}}}"#);
            if let Ok(RawFrame::Notification(call)) = read(&frame) {
                let expected = serde_json::from_str::<Everything<'_>>(&params);
                assert_eq!(call.decode::<Everything<'_>>().ok(), expected.ok(), "{params}");
            }
        }
    }

    #[test]
    fn free_forms_keep_every_member_and_its_text() {
        let frame = r#"{"jsonrpc":"2.0","method":"m","params":{ "z" : 1.0 , "_meta":{"k": 1}, "a":null }}"#;
        let members: Free = decoded(frame).unwrap();
        assert_eq!(serde_json::to_string(&members).unwrap(), r#"{"z":1.0,"_meta":{"k": 1},"a":null}"#);
        let json: Json = decoded(frame).unwrap();
        assert_eq!(json.as_str(), r#"{ "z" : 1.0 , "_meta":{"k": 1}, "a":null }"#);
    }

    /// RUN-08.
    #[test]
    fn a_text_is_found_without_reading_what_follows() {
        let meta = r#"{"name":"inner"}"#;
        let check = |params: &str, expected: Option<&str>| {
            for meta in [None, find_meta(params)] {
                assert_eq!(first_text(params, meta, "name").as_deref(), expected, "{params}");
            }
        };
        check(&format!(r#"{{"_meta":{meta},"name":"echo","arguments":{{"name":"x"}}}}"#), Some("echo"));
        check(r#"{"n\u0061me":"\u00e9\n"}"#, Some("\u{e9}\n"));
        check(r#"{"name":"first","name":"second"}"#, Some("first"));
        check(r#"{"name":5,"name":"second"}"#, None);
        check(r#"{"name":"a\"b"}"#, Some("a\"b"));
        check(r#"{"name":"","names":"x"}"#, Some(""));
        check(r#"{"names":"x"}"#, None);
        check(&format!(r#"{{"_meta":{meta}}}"#), None);
        check("[]", None);
        assert_eq!(first_text(r#"{"name":"echo" and no more"#, None, "name").as_deref(), Some("echo"));
    }

    #[test]
    fn a_text_is_all_there_is_only_beside_the_known_meta() {
        let check = |params: &str, expected: Option<&str>| {
            assert_eq!(only_text(params, find_meta(params), "id"), expected, "{params}");
        };
        check(r#"{"id":"a"}"#, Some("a"));
        check(r#"{"id":"a","_meta":{"id":"b"}}"#, Some("a"));
        for decoded in [
            r#"{"id":"a","id":"b"}"#,
            r#"{"id":"a","_meta":{},"id":"b"}"#,
            r#"{"id":"a","_meta":{},"_meta":{"k":1}}"#,
            r#"{"_meta":{},"id":"a"}"#,
            r#"{"id":"a","x":1}"#,
            r#"{"id":"\u0061"}"#,
            r#"{ "id":"a"}"#,
            r#"{"id":5}"#,
            "[]",
            "",
        ] {
            check(decoded, None);
        }
    }

    #[test]
    fn absent_params_are_an_empty_object() {
        for frame in [r#"{"jsonrpc":"2.0","method":"m"}"#, r#"{"jsonrpc":"2.0","method":"m","params":null}"#]
        {
            assert_eq!(decoded::<Free>(frame).unwrap(), Free::new());
            assert_eq!(decoded::<Option<Free>>(frame).unwrap(), Some(Free::new()));
        }
    }
}
