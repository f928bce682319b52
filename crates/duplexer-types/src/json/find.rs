//! Member look-up in JSON text: the one implementation.
//!
//! Names are compared after decoding their escapes, exactly. A repeated member is reported as such: two readers
//! that pick different values of one name would be a way around a check.

use serde::de::Error as _;

use super::scan::{NotJson, Scanner};

/// How often something occurs: a member in an object, or a header in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Occurrence<T> {
    /// It does not occur.
    #[default]
    Absent,
    /// It occurs once, with this value.
    One(T),
    /// It occurs several times, so no value is reliable.
    Several,
}

impl<T> Occurrence<T> {
    /// Counts one more occurrence.
    pub fn add(&mut self, value: T) {
        *self = match self {
            Self::Absent => Self::One(value),
            Self::One(_) | Self::Several => Self::Several,
        };
    }

    /// Returns the value, if there is exactly one.
    pub fn one(self) -> Option<T> {
        match self {
            Self::One(value) => Some(value),
            Self::Absent | Self::Several => None,
        }
    }

    /// Whether there is at least one.
    pub const fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Whether there is more than one.
    pub const fn is_repeated(&self) -> bool {
        matches!(self, Self::Several)
    }
}

impl<T> FromIterator<T> for Occurrence<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Absent,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Several,
        }
    }
}

/// Returns the JSON texts of the members `names` of the object `text`, without decoding any value.
///
/// # Errors
/// Fails if `text` is not a JSON object.
pub fn find_members<'a, const N: usize>(
    text: &'a str,
    names: [&str; N],
) -> Result<[Occurrence<&'a str>; N], serde_json::Error> {
    let mut scanner = Scanner::new(text);
    let found = scanner.find(&names).and_then(|found| scanner.end().map(|()| found));
    found.map_err(|NotJson| serde_json::Error::custom("expected a JSON object"))
}

/// Returns the JSON text of the member `name` of the object `text`, without decoding any value.
///
/// `None` also if `text` is not an object, or if the member is repeated.
pub fn find_member<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let [member] = Scanner::new(text).find(&[name]).ok()?;
    member.one()
}

impl<'a> Scanner<'a> {
    /// Reads an object and returns the texts of its members `names`.
    #[inline]
    pub(crate) fn find<const N: usize>(
        &mut self,
        names: &[&str; N],
    ) -> Result<[Occurrence<&'a str>; N], NotJson> {
        self.find_with(names, |scanner, _| scanner.value(1))
    }

    /// Reads an object like [`Self::find`]. `value` consumes each value; it gets the information whether the member
    /// is one of `names`.
    #[inline]
    pub(crate) fn find_with<const N: usize>(
        &mut self,
        names: &[&str; N],
        mut value: impl FnMut(&mut Self, bool) -> Result<&'a str, NotJson>,
    ) -> Result<[Occurrence<&'a str>; N], NotJson> {
        let mut found = [Occurrence::Absent; N];
        let mut object = self.open_object()?;
        while let Some(name) = self.next_name(&mut object)? {
            let member = names.iter().zip(&mut found).find(|(wanted, _)| name == **wanted);
            let text = value(self, member.is_some())?;
            if let Some((_, occurrence)) = member {
                occurrence.add(text);
            }
        }
        Ok(found)
    }

    /// Reads an object up to the first member `name` and returns that member's text. The rest is not read.
    ///
    /// `meta` is the text of the member `_meta`, if it is known: it is skipped without a scan.
    pub(crate) fn find_first(
        &mut self,
        name: &str,
        meta: Option<&'a str>,
    ) -> Result<Option<&'a str>, NotJson> {
        let mut object = self.open_object()?;
        while let Some(found) = self.next_name(&mut object)? {
            let known = meta.filter(|_| found == "_meta").and_then(|meta| self.skip(meta));
            let value = known.map_or_else(|| self.value(1), Ok)?;
            if found == name {
                return Ok(Some(value));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;
    use std::fmt;

    use proptest::prelude::*;
    use serde::de::{MapAccess, Visitor};
    use serde::{Deserialize, Deserializer};
    use serde_json::Value;

    use super::*;

    /// The members of an object in order, read by `serde_json`.
    #[derive(Debug)]
    struct Reference(Vec<(String, Value)>);

    impl<'de> Deserialize<'de> for Reference {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            struct Object;

            impl<'de> Visitor<'de> for Object {
                type Value = Reference;

                fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    f.write_str("an object")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Reference, A::Error> {
                    let mut members = Vec::new();
                    while let Some((name, value)) = access.next_entry::<Cow<'_, str>, Value>()? {
                        members.push((name.into_owned(), value));
                    }
                    Ok(Reference(members))
                }
            }

            deserializer.deserialize_map(Object)
        }
    }

    /// The look-up agrees with `serde_json` on the verdict, on the number of occurrences, and on the value.
    fn agrees(text: &str) {
        let names = ["a", "b", "\u{e9}"];
        match (find_members(text, names), serde_json::from_str::<Reference>(text)) {
            (Ok(found), Ok(Reference(members))) => {
                for (name, found) in names.into_iter().zip(found) {
                    let values = members.iter().filter(|(member, _)| member == name).map(|(_, value)| value);
                    let expected: Occurrence<Value> = values.cloned().collect();
                    let decoded = match found {
                        Occurrence::One(text) => Occurrence::One(serde_json::from_str(text).unwrap()),
                        Occurrence::Absent => Occurrence::Absent,
                        Occurrence::Several => Occurrence::Several,
                    };
                    assert_eq!(decoded, expected, "{name} in {text}");
                    assert_eq!(find_member(text, name), found.one(), "{name} in {text}");
                }
            }
            (Err(_), Err(_)) => {}
            // Only decoding limits the size of numbers.
            (Ok(_), Err(theirs)) if theirs.to_string().starts_with("number out of range") => {}
            (ours, theirs) => panic!("{text:?}: {ours:?}, serde_json: {theirs:?}"),
        }
    }

    #[test]
    fn members_are_found_by_their_decoded_name_and_repetition_is_visible() {
        let text = r#" {"a":{"b":1},"\u0062": "x" ,"c":1,"c":2,"A":3} "#;
        let found = find_members(text, ["a", "b", "c", "d"]).unwrap();
        let expected = [Occurrence::One(r#"{"b":1}"#), Occurrence::One("\"x\""), Occurrence::Several];
        assert_eq!(found[..3], expected);
        assert_eq!(found[3], Occurrence::Absent);
        for text in ["[]", "1", "", "{} {}", "{", "{\"a\":}", "{\"a\":\"\\ud800\"}"] {
            assert!(find_members(text, ["a"]).is_err(), "{text}");
            agrees(text);
        }
    }

    #[test]
    fn depth_is_no_reason_to_refuse_a_look_up() {
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        let text = format!(r#"{{"a":{deep}}}"#);
        assert_eq!(find_member(&text, "a"), Some(&*deep));
    }

    proptest! {
        #[test]
        fn any_object_is_searched_as_serde_json_reads_it(
            members in prop::collection::vec(
                (r"(a|b|A|\\u0061|\\u00e9|é|ab|)", r#"(1|"x"|\{"a":2\}|\[ "b" ,3\]|null|1e5|)"#),
                0..6,
            ),
        ) {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!(" \"{name}\" : {value} ")).collect();
            agrees(&format!("{{{}}}", members.join(",")));
        }

        #[test]
        fn any_text_gets_the_verdict_of_serde_json(text in "[\\[\\]{}:,\"\\\\ab0-9eu. ]{0,24}") {
            agrees(&text);
        }
    }
}
