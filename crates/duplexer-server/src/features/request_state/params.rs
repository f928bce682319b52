//! The few members of an object that matter here, found without decoding the others, and one of them replaced.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// How often a member stands in an object, and its JSON text if that is once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Found<'a> {
    #[default]
    Absent,
    Once(&'a str),
    /// Two readers could pick different ones, so nobody may pick any.
    Repeated,
}

impl<'a> Found<'a> {
    fn and(self, value: &'a str) -> Self {
        if self == Self::Absent { Self::Once(value) } else { Self::Repeated }
    }
}

/// The members `names` of the object `text`. Names are compared exactly, escapes or not.
pub(super) fn find<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Found<'a>; N], serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = Find(names).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(found)
}

/// Whether an object with this text can have a member `name` at all: a quick look before a long one.
///
/// Letters can be written as they are or as `\u` escapes, and not in any other way.
pub(super) fn may_have(text: &str, name: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), name.as_bytes()).is_some()
        || memchr::memmem::find(text.as_bytes(), b"\\u").is_some()
}

/// `text` with `part`, a slice of it, replaced by the JSON string `value`.
pub(super) fn replace(text: &str, part: &str, value: &str) -> Result<String, serde_json::Error> {
    let start = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    let (before, rest) = text.split_at_checked(start).unwrap_or((text, ""));
    let after = rest.strip_prefix(part).unwrap_or_default();
    Ok([before, &serde_json::to_string(value)?, after].concat())
}

struct Find<'n, const N: usize>([&'n str; N]);

impl<'de, const N: usize> DeserializeSeed<'de> for Find<'_, N> {
    type Value = [Found<'de>; N];

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, const N: usize> Visitor<'de> for Find<'_, N> {
    type Value = [Found<'de>; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        let mut found = [Found::Absent; N];
        while let Some(Name(name)) = access.next_key()? {
            let value: &RawValue = access.next_value()?;
            for (slot, _) in found.iter_mut().zip(self.0).filter(|(_, wanted)| name == **wanted) {
                *slot = slot.and(value.get());
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_however_they_are_spelled_and_never_picked_from_several() {
        let text = r#"{"a":{"b":1},"\u0062": "x" ,"c":1,"c":2,"A":3}"#;
        let found = find(text, ["a", "b", "c", "d"]).unwrap();
        assert_eq!(found, [Found::Once(r#"{"b":1}"#), Found::Once("\"x\""), Found::Repeated, Found::Absent]);
        assert!(["[]", "1", "", "{} {}", "{"].iter().all(|text| find(text, ["a"]).is_err()));
        assert!(may_have(text, "a") && may_have(r#"{"\u0071":1}"#, "q") && !may_have("{\"x\":1}", "y"));
    }

    #[test]
    fn one_value_is_replaced_and_everything_else_stays() {
        let text = r#"{"x": 1 ,"s": "old", "x":2}"#;
        let [Found::Once(part)] = find(text, ["s"]).unwrap() else { panic!("it is there once") };
        assert_eq!(replace(text, part, "n\"é").unwrap(), r#"{"x": 1 ,"s": "n\"é", "x":2}"#);
    }
}
