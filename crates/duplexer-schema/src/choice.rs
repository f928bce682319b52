//! The branches of `anyOf` and `oneOf`, and what is known about each before it is tried.
//!
//! Facts come from the schema alone and are exact: a branch whose guard refuses a value cannot be valid for it. With a
//! tag one branch remains, and a recursive enum costs what its value costs.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::node::{Keyword, Node, NodeId};
use crate::text;
use crate::value::{Types, equal};

/// The branches of one `anyOf` or `oneOf`.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    pub(crate) branches: Vec<NodeId>,
    pub(crate) guards: Vec<Guard>,
    pub(crate) tag: Option<Tag>,
}

/// What distinguishes the branches that accept objects.
#[derive(Debug)]
pub(crate) enum Tag {
    /// A required member with another constant in each branch: internal and adjacent tags.
    Member { name: String, branches: HashMap<String, usize> },
    /// The name of the only required member: external tags.
    Key { branches: HashMap<String, usize> },
}

/// What a schema demands at its first level.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) types: Types,
    /// The values that it allows, if it lists them.
    pub(crate) fixed: Option<Vec<Value>>,
    pub(crate) required: Vec<String>,
    /// Required members that have one possible value.
    pub(crate) constants: Vec<(String, Value)>,
    /// Members that it declares, with the types that each can have.
    pub(crate) declared: HashMap<String, Types>,
}

impl Choice {
    pub(crate) fn new(branches: Vec<NodeId>) -> Self {
        Self { branches, ..Self::default() }
    }

    /// Returns the guards and the tag of the branches, for the finished arena.
    pub(crate) fn prepare(&self, nodes: &[Node]) -> (Vec<Guard>, Option<Tag>) {
        let guards: Vec<Guard> = self.branches.iter().map(|branch| Guard::of(nodes, *branch)).collect();
        let tag = Tag::of(&guards);
        (guards, tag)
    }

    /// Returns the branches that can be valid for `value`.
    pub(crate) fn candidates(&self, value: &Value) -> Vec<usize> {
        match self.tag.as_ref().and_then(|tag| tag.chosen(value)) {
            Some(Chosen::Branch(branch)) => vec![branch],
            Some(Chosen::None) => Vec::new(),
            _ => {
                let all = self.guards.iter().enumerate();
                all.filter(|(_, guard)| guard.admits(value)).map(|(branch, _)| branch).collect()
            }
        }
    }

    /// Returns the branches whose types allow `value`.
    pub(crate) fn of_type(&self, value: &Value) -> Vec<usize> {
        let types = Types::of(value);
        let all = self.guards.iter().enumerate();
        all.filter(|(_, guard)| guard.types.meets(types)).map(|(branch, _)| branch).collect()
    }

    /// Returns in a few words what the given branches expect.
    pub(crate) fn phrase(&self, branches: &[usize]) -> String {
        const MOST: usize = 8;
        let mut values = Vec::new();
        let mut forms: Vec<String> = Vec::new();
        for guard in branches.iter().filter_map(|branch| self.guards.get(*branch)) {
            match (&guard.fixed, guard.phrase()) {
                (Some(fixed), _) => values.extend(fixed),
                (None, Some(form)) if !forms.contains(&form) => forms.push(form),
                (None, Some(_)) => {}
                (None, None) => return "one of the allowed forms".to_owned(),
            }
        }
        if !values.is_empty() {
            forms.insert(0, text::choices(values));
        }
        if forms.is_empty() || forms.len() > MOST {
            return "one of the allowed forms".to_owned();
        }
        forms.join(" or ")
    }
}

/// What a tag says about a value.
pub(crate) enum Chosen {
    Branch(usize),
    None,
    Several,
}

impl Tag {
    fn of(guards: &[Guard]) -> Option<Self> {
        let objects: Vec<(usize, &Guard)> =
            guards.iter().enumerate().filter(|(_, guard)| guard.types.meets(Types::OBJECT)).collect();
        let (_, first) = objects.first().filter(|_| objects.len() > 1)?;
        let by_member = first.constants.iter().find_map(|(name, _)| {
            let branches = distinct(&objects, |guard| guard.constant(name)?.as_str())?;
            Some(Self::Member { name: name.clone(), branches })
        });
        by_member.or_else(|| {
            let only = |guard: &'_ Guard| match &*guard.required {
                [name] if guard.constants.is_empty() => Some(name.clone()),
                _ => None,
            };
            let names: Option<Vec<String>> = objects.iter().map(|(_, guard)| only(guard)).collect();
            let names = names?;
            let branches: HashMap<String, usize> =
                names.into_iter().zip(objects.iter().map(|(branch, _)| *branch)).collect();
            (branches.len() == objects.len()).then_some(Self::Key { branches })
        })
    }

    /// Returns what the tag says, or nothing if `value` is not an object.
    pub(crate) fn chosen(&self, value: &Value) -> Option<Chosen> {
        let members = value.as_object()?;
        let chosen = match self {
            Self::Member { name, branches } => {
                let branch = members.get(name).and_then(Value::as_str).and_then(|tag| branches.get(tag));
                branch.map_or(Chosen::None, |branch| Chosen::Branch(*branch))
            }
            Self::Key { branches } => {
                // The shorter side is searched, so that neither a long value nor a long enum costs much.
                let mut found = if members.len() < branches.len() {
                    let all: Vec<usize> =
                        members.keys().filter_map(|name| branches.get(name).copied()).collect();
                    all
                } else {
                    let present = branches.iter().filter(|(name, _)| members.contains_key(*name));
                    present.map(|(_, branch)| *branch).collect()
                };
                match (found.pop(), found.is_empty()) {
                    (Some(branch), true) => Chosen::Branch(branch),
                    (Some(_), false) => Chosen::Several,
                    (None, _) => Chosen::None,
                }
            }
        };
        Some(chosen)
    }
}

/// Maps the text of each guard to its branch, if every guard has one and all differ.
fn distinct<'g>(
    guards: &[(usize, &'g Guard)],
    text: impl Fn(&'g Guard) -> Option<&'g str>,
) -> Option<HashMap<String, usize>> {
    let mut branches = HashMap::new();
    for (branch, guard) in guards {
        if branches.insert(text(guard)?.to_owned(), *branch).is_some() {
            return None;
        }
    }
    Some(branches)
}

impl Guard {
    /// Collects what a node demands, through `$ref` and `allOf`.
    pub(crate) fn of(nodes: &[Node], id: NodeId) -> Self {
        let mut guard = Self {
            types: types(nodes, id, &mut { FUEL }),
            fixed: None,
            required: Vec::new(),
            constants: Vec::new(),
            declared: HashMap::new(),
        };
        let mut properties: Vec<(&String, NodeId)> = Vec::new();
        for keyword in in_place(nodes, id) {
            match keyword {
                Keyword::Required(names) => guard.required.extend(names.iter().cloned()),
                Keyword::Properties(all) => {
                    properties.extend(all.named.iter().map(|(name, node)| (name, *node)));
                }
                _ => {}
            }
        }
        guard.fixed = fixed(nodes, id);
        guard.required.sort();
        guard.required.dedup();
        for (name, node) in properties {
            let types = types(nodes, node, &mut { FUEL });
            let declared = guard.declared.entry(name.clone()).or_insert(Types::ALL);
            *declared = declared.intersection(types);
            let values = fixed(nodes, node).filter(|_| guard.required.contains(name));
            if let Some([value]) = values.as_deref() {
                guard.constants.push((name.clone(), value.clone()));
            }
        }
        guard.constants.sort_by(|(one, _), (two, _)| one.cmp(two));
        guard
    }

    pub(crate) fn constant(&self, name: &str) -> Option<&Value> {
        self.constants.iter().find(|(constant, _)| constant == name).map(|(_, value)| value)
    }

    /// Whether the schema can be valid for `value`.
    fn admits(&self, value: &Value) -> bool {
        if !self.types.meets(Types::of(value)) {
            return false;
        }
        let Value::Object(members) = value else { return true };
        let is_constant = |(name, constant): &(String, Value)| {
            members.get(name).is_some_and(|found| equal(found, constant))
        };
        self.required.iter().all(|name| members.contains_key(name)) && self.constants.iter().all(is_constant)
    }

    /// Returns in a few words what the schema expects, if that is possible.
    pub(crate) fn phrase(&self) -> Option<String> {
        const MOST: usize = 5;
        if let Some(fixed) = &self.fixed {
            return Some(text::choices(fixed));
        }
        match self.types {
            Types::ALL | Types::NONE => None,
            Types::OBJECT if (1..=MOST).contains(&self.required.len()) => {
                let name = |name: &String| match self.constant(name) {
                    Some(value) => format!("{name:?}: {}", text::shown(value)),
                    None => format!("{name:?}"),
                };
                let names: Vec<String> = self.required.iter().map(name).collect();
                Some(format!("an object with {}", names.join(", ")))
            }
            types => Some(types.nouns().join(" or ")),
        }
    }
}

/// How many nodes are read to find the types of one.
const FUEL: usize = 1000;

/// Returns the keywords that a node applies to its value unconditionally, through `$ref` and `allOf`.
fn in_place(nodes: &[Node], id: NodeId) -> Vec<&Keyword> {
    let mut keywords = Vec::new();
    let mut seen = HashSet::new();
    let mut pending = vec![id];
    while let Some(id) = pending.pop() {
        if !seen.insert(id) {
            continue;
        }
        for keyword in nodes.get(id.index()).map(|node| &*node.keywords).unwrap_or_default() {
            match keyword {
                Keyword::Ref(target) => pending.push(*target),
                Keyword::AllOf(all) => pending.extend(all),
                other => keywords.push(other),
            }
        }
    }
    keywords
}

fn fixed(nodes: &[Node], id: NodeId) -> Option<Vec<Value>> {
    in_place(nodes, id).into_iter().find_map(|keyword| match keyword {
        Keyword::Const(value) => Some(vec![value.clone()]),
        Keyword::Enum(values) => Some(values.values.clone()),
        _ => None,
    })
}

/// Returns the types that a node can be valid for. When the fuel is spent, that is all of them.
fn types(nodes: &[Node], id: NodeId, fuel: &mut usize) -> Types {
    let mut found = Types::ALL;
    for keyword in in_place(nodes, id) {
        if *fuel == 0 {
            return found;
        }
        *fuel -= 1;
        let here = match keyword {
            Keyword::Never => Types::NONE,
            Keyword::Type(types) => *types,
            Keyword::Const(value) => Types::of(value),
            Keyword::Enum(values) => values.values.iter().map(Types::of).fold(Types::NONE, Types::union),
            Keyword::AnyOf(choice) | Keyword::OneOf(choice) => {
                let all = choice.branches.iter().map(|branch| types(nodes, *branch, fuel));
                all.fold(Types::NONE, Types::union)
            }
            _ => Types::ALL,
        };
        found = found.intersection(here);
    }
    found
}
