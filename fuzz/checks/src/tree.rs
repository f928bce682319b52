//! The reference implementation: JSON as a tree that keeps repeated members.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Tree {
    Scalar(Value),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

/// Verdict of the reference implementation.
pub(crate) enum Reading {
    Tree(Tree),
    NotJson,
    /// Beyond a limit that only the reference implementation has: of nesting, or of the size of numbers.
    Limited,
}

/// How often a member occurs in an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Found<'t> {
    Absent,
    Once(&'t Tree),
    Repeated,
}

impl<'t> Found<'t> {
    pub(crate) fn once(self) -> Option<&'t Tree> {
        match self {
            Self::Once(tree) => Some(tree),
            Self::Absent | Self::Repeated => None,
        }
    }

    pub(crate) fn is_present(self) -> bool {
        self != Self::Absent
    }
}

impl Tree {
    pub(crate) fn read(text: &str) -> Reading {
        match serde_json::from_str(text) {
            Ok(tree) => Reading::Tree(tree),
            Err(error) => {
                let (error, limits) =
                    (error.to_string(), ["recursion limit exceeded", "number out of range"]);
                if limits.iter().any(|limit| error.starts_with(limit)) {
                    Reading::Limited
                } else {
                    Reading::NotJson
                }
            }
        }
    }

    /// Reads a text that the implementation under test has accepted.
    pub(crate) fn of(text: &str) -> Option<Self> {
        match Self::read(text) {
            Reading::Tree(tree) => Some(tree),
            Reading::Limited => None,
            Reading::NotJson => {
                assert!(text.is_empty(), "accepted, but not JSON: {text:?}");
                None
            }
        }
    }

    pub(crate) fn get(&self, name: &str) -> Found<'_> {
        let Self::Object(members) = self else { return Found::Absent };
        let mut same = members.iter().filter(|(member, _)| member == name);
        match (same.next(), same.next()) {
            (None, _) => Found::Absent,
            (Some((_, tree)), None) => Found::Once(tree),
            (Some(_), Some(_)) => Found::Repeated,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self {
            Self::Scalar(value) => value.as_str(),
            Self::Array(_) | Self::Object(_) => None,
        }
    }

    pub(crate) fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Scalar(Value::Null))
    }

    /// Whether any object inside has a repeated member.
    pub(crate) fn repeats(&self) -> bool {
        match self {
            Self::Scalar(_) => false,
            Self::Array(items) => items.iter().any(Self::repeats),
            Self::Object(members) => {
                let mut names: Vec<_> = members.iter().map(|(name, _)| name).collect();
                names.sort_unstable();
                names.windows(2).any(|pair| pair[0] == pair[1])
                    || members.iter().any(|(_, tree)| tree.repeats())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyTree;

        impl<'de> Visitor<'de> for AnyTree {
            type Value = Tree;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }

            fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
                Ok(Tree::Scalar(value.into()))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
                Ok(Tree::Scalar(value.into()))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
                Ok(Tree::Scalar(value.into()))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
                Ok(Tree::Scalar(value.into()))
            }

            fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
                Ok(Tree::Scalar(value.into()))
            }

            fn visit_unit<E: Error>(self) -> Result<Tree, E> {
                Ok(Tree::Scalar(Value::Null))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
                let mut all = Vec::new();
                while let Some(item) = items.next_element()? {
                    all.push(item);
                }
                Ok(Tree::Array(all))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
                let mut all = Vec::new();
                while let Some(member) = members.next_entry()? {
                    all.push(member);
                }
                Ok(Tree::Object(all))
            }
        }

        deserializer.deserialize_any(AnyTree)
    }
}
