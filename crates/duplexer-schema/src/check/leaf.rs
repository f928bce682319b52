//! Keywords that judge a value without other schemas, and the words for what they expect.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value};

use super::{Checker, Verdict};
use crate::node::{Bound, Enumeration, Keyword, Measure, Side};
use crate::number::{Decimal, Num};
use crate::text::{choices, counted, shown};
use crate::value::{Types, equal, hash, size};

/// How many bytes of a text count as one step of a pattern.
const PATTERN_BYTES: usize = 8;
/// How many bytes of a text count as one step of any other keyword.
const TEXT_BYTES: usize = 64;

impl Checker<'_> {
    /// Judges a value by a keyword; keywords with other schemas are not judged here.
    pub(super) fn leaf(&mut self, keyword: &Keyword, value: &Value) -> Verdict {
        self.budget.step()?;
        Ok(match (keyword, value) {
            (Keyword::Never, _) => false,
            (Keyword::Type(types), value) => types.meets(Types::of(value)),
            (Keyword::Const(constant), value) => equal(constant, value),
            (Keyword::Enum(values), value) => self.is_among(values, value)?,
            (Keyword::Bound(bound, limit), Value::Number(number)) => is_within(*bound, limit, number),
            (Keyword::MultipleOf(_, divisor), Value::Number(number)) => {
                Decimal::of(number).is_multiple_of(*divisor)
            }
            (Keyword::Size(measure, side, limit), value) => self.has_size(*measure, *side, *limit, value)?,
            (Keyword::Pattern(pattern, _), Value::String(text)) => {
                self.budget.spend(text.len() / PATTERN_BYTES)?;
                pattern.is_match(text)
            }
            (Keyword::Required(names), Value::Object(members)) => self.has_all(names, members)?,
            (Keyword::DependentRequired(all), Value::Object(members)) => {
                for (name, names) in all {
                    self.budget.step()?;
                    if members.contains_key(name) && !self.has_all(names, members)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Keyword::UniqueItems, Value::Array(items)) => self.are_unique(items)?,
            _ => true,
        })
    }

    fn is_among(&mut self, values: &Enumeration, value: &Value) -> Verdict {
        if let Value::String(text) = value {
            return Ok(values.strings.binary_search(text).is_ok());
        }
        self.budget.spend(values.others.len() / 4)?;
        Ok(values.others.iter().any(|other| equal(other, value)))
    }

    fn has_size(&mut self, measure: Measure, side: Side, limit: u64, value: &Value) -> Verdict {
        let length = match (measure, value) {
            (Measure::Characters, Value::String(text)) => {
                self.budget.spend(text.len() / TEXT_BYTES)?;
                text.chars().count()
            }
            (Measure::Items, Value::Array(items)) => items.len(),
            (Measure::Members, Value::Object(members)) => members.len(),
            _ => return Ok(true),
        };
        let length = u64::try_from(length).unwrap_or(u64::MAX);
        Ok(match side {
            Side::AtLeast => length >= limit,
            Side::AtMost => length <= limit,
        })
    }

    fn has_all(&mut self, names: &[String], members: &Map<String, Value>) -> Verdict {
        for name in names {
            self.budget.step()?;
            if !members.contains_key(name) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Sorts by hash, so that only items of equal hashes are compared.
    fn are_unique(&mut self, items: &[Value]) -> Verdict {
        for item in items {
            self.budget.spend(1 + size(item) / 4)?;
        }
        let mut hashed: Vec<(u64, &Value)> =
            items.iter().map(|item| (hash(item, &self.hasher), item)).collect();
        hashed.sort_by_key(|(hash, _)| *hash);
        for group in hashed.chunk_by(|(one, _), (two, _)| one == two) {
            for (index, (_, item)) in group.iter().enumerate() {
                self.budget.spend(index)?;
                if group[..index].iter().any(|(_, other)| equal(item, other)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

fn is_within(bound: Bound, limit: &Number, number: &Number) -> bool {
    let order = Num::of(number).compare(Num::of(limit));
    match bound {
        Bound::Minimum => order != Ordering::Less,
        Bound::Maximum => order != Ordering::Greater,
        Bound::ExclusiveMinimum => order == Ordering::Greater,
        Bound::ExclusiveMaximum => order == Ordering::Less,
    }
}

/// Returns what a keyword expects, to follow the word "expected".
pub(super) fn expectation(keyword: &Keyword) -> String {
    match keyword {
        Keyword::Never => "nothing here".to_owned(),
        Keyword::Type(types) => types.nouns().join(" or "),
        Keyword::Const(value) => shown(value),
        Keyword::Enum(values) => choices(&values.values),
        Keyword::Bound(Bound::Minimum, limit) => format!("at least {limit}"),
        Keyword::Bound(Bound::Maximum, limit) => format!("at most {limit}"),
        Keyword::Bound(Bound::ExclusiveMinimum, limit) => format!("more than {limit}"),
        Keyword::Bound(Bound::ExclusiveMaximum, limit) => format!("less than {limit}"),
        Keyword::MultipleOf(divisor, _) => format!("a multiple of {divisor}"),
        Keyword::Size(measure, side, limit) => {
            let side = match side {
                Side::AtLeast => "at least",
                Side::AtMost => "at most",
            };
            let noun = match measure {
                Measure::Characters => "character",
                Measure::Items => "item",
                Measure::Members => "member",
            };
            format!("{side} {}", counted(*limit, noun))
        }
        Keyword::Pattern(_, pattern) => format!("text that matches {pattern}"),
        Keyword::UniqueItems => "items that differ from each other".to_owned(),
        _ => "something else".to_owned(),
    }
}
