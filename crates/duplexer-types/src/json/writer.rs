//! Writes JSON into memory: byte for byte like `serde_json`, but with strings processed eight bytes at a time.
//!
//! Most of a result is text, where `serde_json` spends its time. Numbers are delegated to it.

use serde::ser::{Error as _, SerializeMap};
use serde::{Serialize, Serializer};

use super::plain::plain_prefix;

type Error = serde_json::Error;

/// Name by which `serde_json` announces raw JSON text, as a struct with one member.
const RAW: &str = "$serde_json::private::RawValue";

/// Appends one value to a buffer. After a failure the buffer can hold a part of it.
pub(crate) struct Writer<'w> {
    out: &'w mut Vec<u8>,
    role: Role,
}

/// Role of the value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Value,
    /// The name of a member: a string, or a scalar that becomes one.
    Name,
    /// Raw JSON text.
    Raw,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(out: &'w mut Vec<u8>) -> Self {
        Self { out, role: Role::Value }
    }

    fn scalar<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        if self.role == Role::Name {
            self.out.push(b'"');
        }
        serde_json::to_writer(&mut *self.out, value)?;
        if self.role == Role::Name {
            self.out.push(b'"');
        }
        Ok(())
    }

    /// Writes infinity and NaN like `serde_json`.
    fn non_finite(self) -> Result<(), Error> {
        match self.role {
            Role::Name => Err(Error::custom("float key must be finite (got NaN or +/-inf)")),
            Role::Value | Role::Raw => self.literal("null"),
        }
    }

    fn literal(self, text: &str) -> Result<(), Error> {
        self.reject_name()?;
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    fn reject_name(&self) -> Result<(), Error> {
        if self.role == Role::Name { Err(Error::custom("key must be a string")) } else { Ok(()) }
    }

    fn open(self, begin: &str, end: &'static str) -> Result<Compound<'w>, Error> {
        self.reject_name()?;
        self.out.extend_from_slice(begin.as_bytes());
        Ok(Compound { out: self.out, first: true, end, members: Role::Value })
    }

    /// Writes `{"variant":` and opens the contents.
    fn variant(self, variant: &str, begin: &str, end: &'static str) -> Result<Compound<'w>, Error> {
        self.reject_name()?;
        self.out.push(b'{');
        string(self.out, variant);
        self.out.push(b':');
        Writer { out: self.out, role: Role::Value }.open(begin, end)
    }
}

/// Appends a JSON string.
fn string(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len() + 2);
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain_prefix(rest));
        out.extend_from_slice(plain);
        let Some((byte, behind)) = special.split_first() else { break };
        escape(out, *byte);
        rest = behind;
    }
    out.push(b'"');
}

fn escape(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        b'"' | b'\\' => byte,
        _ => {
            out.extend_from_slice(b"\\u00");
            out.extend([byte >> 4, byte & 0x0F].map(|digit| HEX[usize::from(digit)]));
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Delegates scalars to `serde_json`.
macro_rules! scalars {
    ($($method:ident($type:ty))*) => {$(
        fn $method(self, value: $type) -> Result<(), Error> {
            self.scalar(&value)
        }
    )*};
}

impl<'w> Serializer for Writer<'w> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Compound<'w>;
    type SerializeTuple = Compound<'w>;
    type SerializeTupleStruct = Compound<'w>;
    type SerializeTupleVariant = Compound<'w>;
    type SerializeMap = Compound<'w>;
    type SerializeStruct = Compound<'w>;
    type SerializeStructVariant = Compound<'w>;

    scalars! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32) serialize_i64(i64)
        serialize_i128(i128) serialize_u8(u8) serialize_u16(u16) serialize_u32(u32) serialize_u64(u64)
        serialize_u128(u128)
    }

    fn serialize_f32(self, value: f32) -> Result<(), Error> {
        if value.is_finite() { self.scalar(&value) } else { self.non_finite() }
    }

    fn serialize_f64(self, value: f64) -> Result<(), Error> {
        if value.is_finite() { self.scalar(&value) } else { self.non_finite() }
    }

    fn serialize_str(self, text: &str) -> Result<(), Error> {
        match self.role {
            Role::Value | Role::Name => string(self.out, text),
            Role::Raw => self.out.extend_from_slice(text.as_bytes()),
        }
        Ok(())
    }

    fn serialize_char(self, character: char) -> Result<(), Error> {
        self.serialize_str(character.encode_utf8(&mut [0; 4]))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Error> {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Result<(), Error> {
        self.literal("null")
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Error> {
        self.literal("null")
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Error> {
        self.literal("null")
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<(), Error> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Error> {
        let Compound { out, .. } = self.variant(variant, "", "}")?;
        value.serialize(Writer::new(out))?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Compound<'w>, Error> {
        self.open("[", "]")
    }

    fn serialize_tuple(self, _: usize) -> Result<Compound<'w>, Error> {
        self.open("[", "]")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Compound<'w>, Error> {
        self.open("[", "]")
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Error> {
        self.variant(variant, "[", "]}")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Compound<'w>, Error> {
        self.open("{", "}")
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Compound<'w>, Error> {
        if name == RAW {
            return Ok(Compound { members: Role::Raw, ..self.open("", "")? });
        }
        self.open("{", "}")
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Compound<'w>, Error> {
        self.variant(variant, "{", "}}")
    }
}

/// Array or object that is being written.
pub(crate) struct Compound<'w> {
    out: &'w mut Vec<u8>,
    first: bool,
    end: &'static str,
    members: Role,
}

impl Compound<'_> {
    fn separate(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.out.push(b',');
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.separate();
        value.serialize(Writer::new(self.out))
    }

    fn member<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Error> {
        if self.members == Role::Value {
            self.separate();
            string(self.out, name);
            self.out.push(b':');
        }
        value.serialize(Writer { out: &mut *self.out, role: self.members })
    }

    fn close(self) {
        // One byte nearly always, for which copying a slice is a call.
        for byte in self.end.bytes() {
            self.out.push(byte);
        }
    }
}

impl SerializeMap for Compound<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Error> {
        self.separate();
        key.serialize(Writer { out: &mut *self.out, role: Role::Name })
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
        self.out.push(b':');
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<(), Error> {
        self.close();
        Ok(())
    }
}

/// Implements the other kinds of arrays, which differ only in name.
macro_rules! arrays {
    ($($kind:ident::$method:ident)*) => {$(
        impl serde::ser::$kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Error> {
                self.item(value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

arrays! {
    SerializeSeq::serialize_element SerializeTuple::serialize_element
    SerializeTupleStruct::serialize_field SerializeTupleVariant::serialize_field
}

macro_rules! objects {
    ($($kind:ident)*) => {$(
        impl serde::ser::$kind for Compound<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<(), Error> {
                self.member(name, value)
            }

            fn end(self) -> Result<(), Error> {
                self.close();
                Ok(())
            }
        }
    )*};
}

objects! { SerializeStruct SerializeStructVariant }

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::json::Json;

    fn written<T: Serialize + ?Sized>(value: &T) -> Result<String, String> {
        let mut out = Vec::new();
        value.serialize(Writer::new(&mut out)).map_err(|error| error.to_string())?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn same<T: Serialize + ?Sized>(value: &T) {
        assert_eq!(written(value), serde_json::to_string(value).map_err(|error| error.to_string()));
    }

    #[derive(Serialize, PartialEq, Eq, PartialOrd, Ord)]
    enum Kind {
        Unit,
        New(u8),
        Tuple(u8, &'static str),
        Struct { a: u8, b: Option<u8> },
    }

    /// An object whose only member has this number as its name.
    struct Named(f64);

    impl Serialize for Named {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(self.0, 1)])
        }
    }

    #[derive(Serialize)]
    struct Unit;

    #[derive(Serialize)]
    struct Pair(i8, char);

    #[test]
    fn every_shape_is_written_as_serde_json_does() {
        same(&(true, 'é', "text", -1_i128, u128::MAX, 1.0_f32, 0.1_f64, f64::NAN, ()));
        same(&[Kind::Unit, Kind::New(1), Kind::Tuple(2, "b"), Kind::Struct { a: 1, b: None }]);
        same(&(Unit, Pair(-1, '"'), Some(1), None::<u8>));
        same(&json!({"a": [], "b": {}, "c": [null, {"d": "e"}], "f": 1e300}));
        same(&(Vec::<u8>::new(), BTreeMap::<u8, u8>::new()));
        same(&Json::parse("{ \"a\" : [1.0, \"x\\n\"] }").unwrap());
    }

    #[test]
    fn names_of_members_are_strings_or_become_strings() {
        same(&BTreeMap::from([(1_u8, "a"), (2, "b")]));
        same(&BTreeMap::from([(true, 1)]));
        same(&BTreeMap::from([('"', 1)]));
        same(&BTreeMap::from([(Kind::Unit, 1)]));
        for number in [1.5, f64::NAN] {
            same(&Named(number));
        }
        same(&BTreeMap::from([([1_u8], 1)]));
        same(&BTreeMap::from([((), 1)]));
        same(&BTreeMap::from([(Kind::New(1), 1)]));
    }

    #[test]
    fn every_character_is_escaped_as_serde_json_does() {
        for code in 0..=0xFF_u32 {
            let character = char::from_u32(code).unwrap();
            same(&format!("{character}"));
            same(&format!("0123456{character}89abcdef{character}"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does(text in "(\\PC|[\"\\\\\n\r\t\u{0}-\u{1f}]){0,80}") {
            prop_assert_eq!(written(&text), Ok(serde_json::to_string(&text).unwrap()));
        }
    }
}
