//! Facts about JSON values: their type, size, equality and hash.

use std::hash::{BuildHasher, Hash, Hasher};

use serde_json::Value;

use crate::number::Num;

/// A set of JSON types. `number` is the union of integers and fractions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const OBJECT: Self = Self(1);
    pub(crate) const ARRAY: Self = Self(2);
    pub(crate) const STRING: Self = Self(4);
    pub(crate) const INTEGER: Self = Self(8);
    pub(crate) const FRACTION: Self = Self(16);
    pub(crate) const NUMBER: Self = Self(8 | 16);
    pub(crate) const BOOLEAN: Self = Self(32);
    pub(crate) const NULL: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn named(name: &str) -> Self {
        match name {
            "object" => Self::OBJECT,
            "array" => Self::ARRAY,
            "string" => Self::STRING,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "boolean" => Self::BOOLEAN,
            "null" => Self::NULL,
            _ => Self::NONE,
        }
    }

    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::OBJECT,
            Value::Array(_) => Self::ARRAY,
            Value::String(_) => Self::STRING,
            Value::Number(number) if Num::of(number).is_integer() => Self::INTEGER,
            Value::Number(_) => Self::FRACTION,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Null => Self::NULL,
        }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Nouns for the members of the set, in a fixed order.
    pub(crate) fn nouns(self) -> Vec<&'static str> {
        const NOUNS: [(Types, &str); 6] = [
            (Types::OBJECT, "an object"),
            (Types::ARRAY, "an array"),
            (Types::STRING, "a string"),
            (Types::NUMBER, "a number"),
            (Types::BOOLEAN, "a boolean"),
            (Types::NULL, "null"),
        ];
        let noun = |(types, noun): (Self, &'static str)| match self.intersection(types) {
            Self::NONE => None,
            Self::INTEGER => Some("an integer"),
            _ => Some(noun),
        };
        NOUNS.into_iter().filter_map(noun).collect()
    }
}

/// A lower bound of the length of a value's JSON text. It never recurses.
pub(crate) fn size(value: &Value) -> usize {
    let mut size = 0;
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        size += match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Number(_) => 1,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                pending.extend(items);
                2 + items.len().saturating_sub(1)
            }
            Value::Object(members) => {
                pending.extend(members.values());
                let names: usize = members.keys().map(|name| name.len() + 3).sum();
                2 + names + members.len().saturating_sub(1)
            }
        };
    }
    size
}

/// Whether two values are equal as JSON Schema has it: numbers by their value, members in any order.
pub(crate) fn equal(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => Num::of(one).compare(Num::of(two)).is_eq(),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| equal(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            let same = |(name, value)| two.get(name).is_some_and(|other| equal(value, other));
            one.len() == two.len() && one.iter().all(same)
        }
        (one, two) => one == two,
    }
}

/// A hash that equal values share.
pub(crate) fn hash(value: &Value, state: &impl BuildHasher) -> u64 {
    let mut hasher = state.build_hasher();
    match value {
        Value::Null => 0_u8.hash(&mut hasher),
        Value::Bool(truth) => (1_u8, truth).hash(&mut hasher),
        Value::Number(number) => {
            2_u8.hash(&mut hasher);
            Num::of(number).hash(&mut hasher);
        }
        Value::String(text) => (3_u8, text).hash(&mut hasher),
        Value::Array(items) => {
            (4_u8, items.len()).hash(&mut hasher);
            for item in items {
                hash(item, state).hash(&mut hasher);
            }
        }
        Value::Object(members) => {
            // A sum does not depend on the order of members.
            let entry = |(name, value): (&String, &Value)| state.hash_one((name, hash(value, state)));
            let sum = members.iter().map(entry).fold(0_u64, u64::wrapping_add);
            (5_u8, members.len(), sum).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::hash::RandomState;

    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_have_equal_hashes() {
        let state = RandomState::new();
        let check = |one: Value, two: Value, expected: bool| {
            assert_eq!(equal(&one, &two), expected, "{one} and {two}");
            assert_eq!(hash(&one, &state) == hash(&two, &state), expected, "{one} and {two}");
        };
        check(json!(1), json!(1.0), true);
        check(json!(0), json!(false), false);
        check(json!({"a": 1, "b": [2.0]}), json!({"b": [2], "a": 1.0}), true);
        check(json!([1, 2]), json!([2, 1]), false);
        check(json!({"a": null}), json!({}), false);
        check(json!("1"), json!(1), false);
    }

    #[test]
    fn the_size_is_at_most_the_length_of_the_text() {
        for value in [json!([]), json!({"a": [1, 2.5, null, true], "b": {"c": "ä\n"}}), json!(false)] {
            assert!(size(&value) <= value.to_string().len(), "{value}");
        }
    }
}
