//! Finds choices whose forms cannot be distinguished.

use std::fmt;

use crate::choice::Guard;
use crate::node::{Edge, Keyword, Node, NodeId};
use crate::value::Types;

/// A choice that contains itself and has two forms with the same members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ambiguity {
    location: String,
    forms: (usize, usize),
    members: Vec<String>,
}

impl Ambiguity {
    /// Returns the place of the choice in the schema, as a JSON pointer.
    pub fn location(&self) -> &str {
        &self.location
    }

    /// Returns the members that both forms have.
    pub fn members(&self) -> &[String] {
        &self.members
    }
}

impl fmt::Display for Ambiguity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let location = if self.location.is_empty() { "(the whole)" } else { &self.location };
        let (one, two) = self.forms;
        let members: Vec<String> = self.members.iter().map(|name| format!("`{name}`")).collect();
        write!(
            f,
            "{location}: forms {one} and {two} have the same members ({}), and the choice contains itself: nothing distinguishes \
             the forms; give the enum a tag, such as #[serde(tag = \"type\")]",
            members.join(", ")
        )
    }
}

pub(crate) fn find(nodes: &[Node]) -> Option<Ambiguity> {
    let choices = nodes.iter().enumerate().flat_map(|(index, node)| {
        let choices = node.keywords.iter().filter_map(|keyword| match keyword {
            Keyword::AnyOf(choice) | Keyword::OneOf(choice) if choice.tag.is_none() => Some(choice),
            _ => None,
        });
        choices.map(move |choice| (index, node, choice))
    });
    for (index, node, choice) in choices {
        for (two, second) in choice.guards.iter().enumerate() {
            let same = |(_, first): &(usize, &Guard)| are_alike(first, second);
            let Some((one, _)) = choice.guards[..two].iter().enumerate().find(same) else { continue };
            let leads_back = |branch: usize| reaches(nodes, choice.branches[branch], index);
            if leads_back(one) || leads_back(two) {
                let mut members: Vec<String> = second.declared.keys().cloned().collect();
                members.sort();
                return Some(Ambiguity {
                    location: node.location.to_string(),
                    forms: (one + 1, two + 1),
                    members,
                });
            }
        }
    }
    None
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
