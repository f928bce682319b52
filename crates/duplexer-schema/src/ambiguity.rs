//! Finds choices whose forms cannot be distinguished before they are read.

use std::fmt;

use crate::choice::{Guard, Tag};
use crate::node::{Edge, Keyword, Node, NodeId};
use crate::value::Types;

/// A choice that contains itself and has two forms that cannot be distinguished before they are read.
///
/// A decoder that tries one form after the other reads the inner choice once per form, on every level: the time doubles
/// with each level of the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    location: String,
    forms: (usize, usize),
    members: Vec<String>,
    cause: Cause,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// Both forms have the same members.
    SameMembers,
    /// Both forms contain the choice in the same place.
    SamePlace,
}

impl Ambiguity {
    /// Returns the place of the choice in the schema, as a JSON pointer.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns the members that both forms have; none if the forms are arrays.
    pub fn members(&self) -> &[String] {
        &self.members
    }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = if self.location.is_empty() { "(the whole)" } else { &self.location };
        let (one, two) = self.forms;
        let members: Vec<String> = self.members.iter().map(|name| format!("`{name}`")).collect();
        let members = members.join(", ");
        write!(f, "{location}: forms {one} and {two} ")?;
        match self.cause {
            Cause::SameMembers => write!(
                f,
                "have the same members ({members}), and the choice contains itself: nothing distinguishes the forms"
            )?,
            Cause::SamePlace => {
                let place = if members.is_empty() { "their items or other members" } else { &members };
                write!(
                    f,
                    "both contain the choice in {place}: decoding reads it once for each form, on every level"
                )?;
            }
        }
        write!(f, "; give the enum a tag, such as #[serde(tag = \"type\")]")
    }
}

pub(crate) fn find(nodes: &[Node]) -> Option<Ambiguity> {
    let choices = nodes.iter().enumerate().flat_map(|(index, node)| {
        let choices = node.keywords.iter().filter_map(|keyword| match keyword {
            // A decoder reads the tag first. A required member is no tag to it: it reads every member of a form.
            Keyword::AnyOf(choice) | Keyword::OneOf(choice)
                if !matches!(choice.tag, Some(Tag::Member { .. })) =>
            {
                Some(choice)
            }
            _ => None,
        });
        choices.map(move |choice| (index, node, choice))
    });
    for (index, node, choice) in choices {
        let leads_back = |branch: usize| reaches(nodes, choice.branches[branch], index);
        for (two, second) in choice.guards.iter().enumerate() {
            for (one, first) in choice.guards[..two].iter().enumerate() {
                let found = |members, cause| Ambiguity {
                    location: node.location.to_string(),
                    forms: (one + 1, two + 1),
                    members,
                    cause,
                };
                if are_alike(first, second) && (leads_back(one) || leads_back(two)) {
                    let mut members: Vec<String> = second.declared.keys().cloned().collect();
                    members.sort();
                    return Some(found(members, Cause::SameMembers));
                }
                let places = |branch: usize| places(nodes, choice.branches[branch], index);
                let types = first.types.intersection(second.types);
                if let Some(members) = common(types, &places(one), &places(two)) {
                    return Some(found(members, Cause::SamePlace));
                }
            }
        }
    }
    None
}

/// A part of a value that a form reads as the choice, or as something that contains it.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Member(String),
    OtherMembers,
    Items,
}

/// Returns the places in which the schema `start` contains the node `goal`.
fn places(nodes: &[Node], start: NodeId, goal: usize) -> Vec<Place> {
    let mut places = Vec::new();
    let mut seen = vec![false; nodes.len()];
    let mut pending = vec![start];
    while let Some(id) = pending.pop() {
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        for keyword in &nodes[id.index()].keywords {
            keyword.visit(&mut |node: NodeId, edge: Edge| {
                if matches!(edge, Edge::InPlace) {
                    pending.push(node);
                }
            });
            let leads_back = |node: &NodeId| reaches(nodes, *node, goal);
            match keyword {
                Keyword::Properties(properties) => {
                    let named = properties.named.iter().filter(|(_, node)| leads_back(node));
                    places.extend(named.map(|(name, _)| Place::Member(name.clone())));
                    let others = properties.patterns.iter().map(|(_, node)| node).chain(&properties.rest);
                    places.extend(others.filter(|node| leads_back(node)).map(|_| Place::OtherMembers));
                }
                Keyword::Items(items) => {
                    let items = items.prefix.iter().chain(&items.rest);
                    places.extend(items.filter(|node| leads_back(node)).map(|_| Place::Items));
                }
                _ => {}
            }
        }
    }
    places
}

/// Returns the members that are in both lists, for values of the given types; `None` if the lists share no place.
fn common(types: Types, one: &[Place], two: &[Place]) -> Option<Vec<String>> {
    let mut members = Vec::new();
    let mut is_shared = false;
    for (first, second) in one.iter().flat_map(|first| two.iter().map(move |second| (first, second))) {
        let name = match (first, second) {
            (Place::Items, Place::Items) if types.meets(Types::ARRAY) => None,
            (Place::Items, _) | (_, Place::Items) => continue,
            _ if !types.meets(Types::OBJECT) => continue,
            (Place::Member(first), Place::Member(second)) if first != second => continue,
            (Place::Member(name), _) | (_, Place::Member(name)) => Some(name),
            (Place::OtherMembers, Place::OtherMembers) => None,
        };
        is_shared = true;
        members.extend(name.cloned());
    }
    members.sort();
    members.dedup();
    is_shared.then_some(members)
}

/// Whether two forms accept objects with the same members, and no member that both require has distinct types or values.
fn are_alike(one: &Guard, two: &Guard) -> bool {
    let are_objects = one.types.meets(Types::OBJECT) && two.types.meets(Types::OBJECT);
    let same_members = !one.declared.is_empty()
        && one.required == two.required
        && one.declared.len() == two.declared.len()
        && one.declared.keys().all(|name| two.declared.contains_key(name));
    let differs = |name: &String| {
        let types = one.declared.get(name).zip(two.declared.get(name));
        let values = one.constant(name).zip(two.constant(name));
        types.is_some_and(|(one, two)| !one.meets(*two)) || values.is_some_and(|(one, two)| one != two)
    };
    are_objects && same_members && !one.required.iter().any(differs)
}

/// Whether references lead from `start` to the node `goal`.
fn reaches(nodes: &[Node], start: NodeId, goal: usize) -> bool {
    let mut seen = vec![false; nodes.len()];
    let mut pending = vec![start];
    while let Some(id) = pending.pop() {
        if id.index() == goal {
            return true;
        }
        if std::mem::replace(&mut seen[id.index()], true) {
            continue;
        }
        for keyword in &nodes[id.index()].keywords {
            keyword.visit(&mut |node: NodeId, _: Edge| pending.push(node));
        }
    }
    false
}
