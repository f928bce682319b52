//! Deserializer for text: arguments of prompts and variables of URIs are strings in the protocol.
//!
//! Numbers and booleans are parsed from their text, enum variants from their name, larger values from JSON.

use std::fmt;

use serde::de::value::StringDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, Visitor,
};

use crate::catalog::uri_template::Value;

/// Decodes named texts into a struct.
pub(crate) fn decode<T: DeserializeOwned>(arguments: &[(String, Value)]) -> Result<T, ArgError> {
    T::deserialize(TextArgs(arguments))
}

/// Argument that could not be decoded, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgError {
    name: Option<String>,
    what: String,
}

impl fmt::Display for ArgError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{name}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

impl std::error::Error for ArgError {}

impl serde::de::Error for ArgError {
    fn custom<T: fmt::Display>(what: T) -> Self {
        Self { name: None, what: what.to_string() }
    }

    fn missing_field(field: &'static str) -> Self {
        Self { name: Some(field.to_owned()), what: "required, but missing".to_owned() }
    }
}

/// Deserializes a struct from named texts.
struct TextArgs<'a>(&'a [(String, Value)]);

impl<'de> Deserializer<'de> for TextArgs<'_> {
    type Error = ArgError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        visitor.visit_map(Members { rest: self.0, value: None })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

struct Members<'a> {
    rest: &'a [(String, Value)],
    value: Option<&'a (String, Value)>,
}

impl<'de> MapAccess<'de> for Members<'_> {
    type Error = ArgError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ArgError> {
        let Some((next, rest)) = self.rest.split_first() else { return Ok(None) };
        (self.rest, self.value) = (rest, Some(next));
        seed.deserialize(StringDeserializer::new(next.0.clone())).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, ArgError> {
        let Some((name, value)) = self.value.take() else { return Err(ArgError::custom("no value")) };
        let read = match value {
            Value::One(text) => seed.deserialize(TextValue(text)),
            Value::Many(texts) => seed.deserialize(List(texts)),
        };
        read.map_err(|error| ArgError { name: Some(name.clone()), ..error })
    }
}

/// Deserializes a sequence from several texts.
struct List<'a>(&'a [String]);

impl<'de> Deserializer<'de> for List<'_> {
    type Error = ArgError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        let texts = self.0.iter().map(|text| TextValue(text));
        visitor.visit_seq(serde::de::value::SeqDeserializer::new(texts))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        if self.0.is_empty() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl IntoDeserializer<'_, ArgError> for TextValue<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// Deserializes a value from one text.
struct TextValue<'a>(&'a str);

impl TextValue<'_> {
    fn parse<T: std::str::FromStr>(&self, expected: &str) -> Result<T, ArgError> {
        self.0.parse().map_err(|_| ArgError::custom(format_args!("expected {expected}, got {:?}", self.0)))
    }
}

macro_rules! parsed {
    ($($method:ident $visit:ident $expected:literal)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
            visitor.$visit(self.parse($expected)?)
        }
    )*};
}

macro_rules! as_json {
    ($($method:ident($($argument:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, ArgError> {
            let value: serde_json::Value =
                self.0.parse().map_err(|_| ArgError::custom(format_args!("expected JSON, got {:?}", self.0)))?;
            value.$method($($argument,)* visitor).map_err(ArgError::custom)
        }
    )*};
}

impl<'de> Deserializer<'de> for TextValue<'_> {
    type Error = ArgError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        visitor.visit_str(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgError> {
        if self.0.starts_with('{') {
            let value: serde_json::Value = self.parse("JSON")?;
            return value.deserialize_enum(name, variants, visitor).map_err(ArgError::custom);
        }
        if !variants.contains(&self.0) {
            let all = variants.join(", ");
            return Err(ArgError::custom(format_args!("expected one of {all}, got {:?}", self.0)));
        }
        visitor.visit_enum(self.0.into_deserializer())
    }

    parsed! {
        deserialize_bool visit_bool "true or false"
        deserialize_i8 visit_i8 "a whole number"
        deserialize_i16 visit_i16 "a whole number"
        deserialize_i32 visit_i32 "a whole number"
        deserialize_i64 visit_i64 "a whole number"
        deserialize_i128 visit_i128 "a whole number"
        deserialize_u8 visit_u8 "a whole number that is not negative"
        deserialize_u16 visit_u16 "a whole number that is not negative"
        deserialize_u32 visit_u32 "a whole number that is not negative"
        deserialize_u64 visit_u64 "a whole number that is not negative"
        deserialize_u128 visit_u128 "a whole number that is not negative"
        deserialize_f32 visit_f32 "a number"
        deserialize_f64 visit_f64 "a number"
        deserialize_char visit_char "one character"
    }

    as_json! {
        deserialize_seq() deserialize_map() deserialize_unit()
        deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    serde::forward_to_deserialize_any! { str string bytes byte_buf unit_struct identifier ignored_any }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Everything {
        text: String,
        number: u8,
        yes: bool,
        choice: Option<Choice>,
        list: Vec<i32>,
        parts: Vec<String>,
        left_out: Option<f64>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Choice {
        Left,
        Right,
    }

    fn texts(all: &[(&str, &str)]) -> Vec<(String, Value)> {
        all.iter().map(|(name, text)| ((*name).to_owned(), Value::One((*text).to_owned()))).collect()
    }

    #[test]
    fn texts_are_decoded_into_the_types_of_the_members() {
        let mut given =
            texts(&[("text", "5"), ("number", "7"), ("yes", "true"), ("choice", "left"), ("list", "[1,2]")]);
        given.push(("parts".to_owned(), Value::Many(vec!["a".to_owned(), "b".to_owned()])));
        let decoded: Everything = decode(&given).unwrap();
        assert_eq!(decoded.text, "5");
        assert_eq!((decoded.number, decoded.yes, decoded.choice), (7, true, Some(Choice::Left)));
        assert_eq!(
            (decoded.list, decoded.parts, decoded.left_out),
            (vec![1, 2], vec!["a".into(), "b".into()], None)
        );
    }

    #[test]
    fn a_text_that_does_not_fit_is_named() {
        #[derive(Debug, Deserialize)]
        #[expect(dead_code, reason = "never read")]
        struct Some {
            number: u8,
            choice: Choice,
        }
        let fault = |all: &[(&str, &str)]| decode::<Some>(&texts(all)).unwrap_err().to_string();
        assert_eq!(
            fault(&[("number", "x"), ("choice", "left")]),
            r#"number: expected a whole number that is not negative, got "x""#
        );
        assert_eq!(
            fault(&[("number", "1"), ("choice", "up")]),
            r#"choice: expected one of left, right, got "up""#
        );
        assert_eq!(fault(&[("number", "1")]), "choice: required, but missing");
    }
}
