//! A compiled schema: a flat arena of nodes that refer to each other by index.

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Number, Value};

use crate::choice::Choice;
use crate::number::Decimal;
use crate::value::Types;

/// Index of a node in the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeId(pub(crate) u32);

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// One schema: an object with keywords, or a boolean.
#[derive(Debug)]
pub(crate) struct Node {
    /// JSON pointer of the schema, for texts.
    pub(crate) location: Box<str>,
    /// The resource that the schema belongs to, for the dynamic scope.
    pub(crate) resource: u32,
    /// The keywords that can fail, cheap ones first. `true` has none.
    pub(crate) keywords: Vec<Keyword>,
    /// Whether verdicts are kept, because the node can judge the same value more than once.
    pub(crate) is_shared: bool,
}

impl Node {
    /// Whether this is the schema `false`.
    pub(crate) fn is_never(&self) -> bool {
        matches!(*self.keywords, [Keyword::Never])
    }
}

#[derive(Debug)]
pub(crate) enum Keyword {
    Never,
    Type(Types),
    Const(Value),
    Enum(Enumeration),
    Bound(Bound, Number),
    MultipleOf(Number, Decimal),
    Size(Measure, Side, u64),
    Pattern(Regex, Box<str>),
    Required(Vec<String>),
    DependentRequired(Vec<(String, Vec<String>)>),
    UniqueItems,
    Ref(NodeId),
    DynamicRef(DynamicRef),
    AllOf(Vec<NodeId>),
    AnyOf(Choice),
    OneOf(Choice),
    Not(NodeId),
    If(Condition),
    DependentSchemas(Vec<(String, NodeId)>),
    Properties(Box<Properties>),
    PropertyNames(NodeId),
    Items(Items),
    Contains(Contains),
    UnevaluatedProperties(NodeId),
    UnevaluatedItems(NodeId),
}

/// The values of `enum`. Strings are sorted, so that a long list costs one search.
#[derive(Debug)]
pub(crate) struct Enumeration {
    pub(crate) values: Vec<Value>,
    pub(crate) strings: Vec<String>,
    pub(crate) others: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    Minimum,
    Maximum,
    ExclusiveMinimum,
    ExclusiveMaximum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    Characters,
    Items,
    Members,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    AtLeast,
    AtMost,
}

#[derive(Debug)]
pub(crate) struct DynamicRef {
    /// Where the reference leads if the dynamic scope has no such anchor.
    pub(crate) fallback: NodeId,
    /// Index of the anchor's name in a scope.
    pub(crate) anchor: usize,
}

#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) test: NodeId,
    pub(crate) then: Option<NodeId>,
    pub(crate) otherwise: Option<NodeId>,
}

/// `properties`, `patternProperties` and `additionalProperties`, which depend on each other.
#[derive(Debug, Default)]
pub(crate) struct Properties {
    pub(crate) named: HashMap<String, NodeId>,
    pub(crate) patterns: Vec<(Regex, NodeId)>,
    pub(crate) rest: Option<NodeId>,
}

impl Properties {
    /// Whether the keywords say anything about a member.
    pub(crate) fn covers(&self, name: &str) -> bool {
        self.rest.is_some()
            || self.named.contains_key(name)
            || self.patterns.iter().any(|(pattern, _)| pattern.is_match(name))
    }
}

/// `prefixItems` and `items`.
#[derive(Debug, Default)]
pub(crate) struct Items {
    pub(crate) prefix: Vec<NodeId>,
    pub(crate) rest: Option<NodeId>,
}

impl Items {
    pub(crate) fn at(&self, index: usize) -> Option<NodeId> {
        self.prefix.get(index).copied().or(self.rest)
    }
}

#[derive(Debug)]
pub(crate) struct Contains {
    pub(crate) item: NodeId,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
}

/// How a node leads to another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// The other node judges the same value.
    InPlace,
    /// The other node judges a member or an item.
    Down,
}

impl Keyword {
    /// Calls `visit` with every node that the keyword leads to.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(NodeId, Edge)) {
        use Edge::{Down, InPlace};
        match self {
            Self::Ref(node) | Self::Not(node) => visit(*node, InPlace),
            Self::DynamicRef(reference) => visit(reference.fallback, InPlace),
            Self::AllOf(nodes) => nodes.iter().for_each(|node| visit(*node, InPlace)),
            Self::AnyOf(choice) | Self::OneOf(choice) => {
                choice.branches.iter().for_each(|node| visit(*node, InPlace));
            }
            Self::If(condition) => {
                visit(condition.test, InPlace);
                condition.then.iter().for_each(|node| visit(*node, InPlace));
                condition.otherwise.iter().for_each(|node| visit(*node, InPlace));
            }
            Self::DependentSchemas(all) => all.iter().for_each(|(_, node)| visit(*node, InPlace)),
            Self::Properties(properties) => {
                properties.named.values().for_each(|node| visit(*node, Down));
                properties.patterns.iter().for_each(|(_, node)| visit(*node, Down));
                properties.rest.iter().for_each(|node| visit(*node, Down));
            }
            Self::Items(items) => {
                items.prefix.iter().for_each(|node| visit(*node, Down));
                items.rest.iter().for_each(|node| visit(*node, Down));
            }
            Self::Contains(contains) => visit(contains.item, Down),
            Self::PropertyNames(node) | Self::UnevaluatedProperties(node) | Self::UnevaluatedItems(node) => {
                visit(*node, Down);
            }
            _ => {}
        }
    }

    /// Calls `visit` with every node that the keyword leads to, to replace it.
    pub(crate) fn visit_mut(&mut self, visit: &mut dyn FnMut(&mut NodeId, Edge)) {
        use Edge::{Down, InPlace};
        match self {
            Self::Ref(node) | Self::Not(node) => visit(node, InPlace),
            Self::DynamicRef(reference) => visit(&mut reference.fallback, InPlace),
            Self::AllOf(nodes) => nodes.iter_mut().for_each(|node| visit(node, InPlace)),
            Self::AnyOf(choice) | Self::OneOf(choice) => {
                choice.branches.iter_mut().for_each(|node| visit(node, InPlace));
            }
            Self::If(condition) => {
                visit(&mut condition.test, InPlace);
                condition.then.iter_mut().for_each(|node| visit(node, InPlace));
                condition.otherwise.iter_mut().for_each(|node| visit(node, InPlace));
            }
            Self::DependentSchemas(all) => all.iter_mut().for_each(|(_, node)| visit(node, InPlace)),
            Self::Properties(properties) => {
                properties.named.values_mut().for_each(|node| visit(node, Down));
                properties.patterns.iter_mut().for_each(|(_, node)| visit(node, Down));
                properties.rest.iter_mut().for_each(|node| visit(node, Down));
            }
            Self::Items(items) => {
                items.prefix.iter_mut().for_each(|node| visit(node, Down));
                items.rest.iter_mut().for_each(|node| visit(node, Down));
            }
            Self::Contains(contains) => visit(&mut contains.item, Down),
            Self::PropertyNames(node) | Self::UnevaluatedProperties(node) | Self::UnevaluatedItems(node) => {
                visit(node, Down);
            }
            _ => {}
        }
    }
}
