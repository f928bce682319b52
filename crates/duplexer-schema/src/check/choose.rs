//! `anyOf` and `oneOf`: which branches hold, and which one a value is nearest to.

use serde_json::Value;

use super::scope::Scope;
use super::{Checker, Stop};
use crate::choice::{Choice, Chosen, Tag};
use crate::text::choices;

impl Checker<'_> {
    /// Counts the branches that hold, up to `enough`.
    pub(super) fn matching(
        &mut self,
        choice: &Choice,
        value: &Value,
        scope: Scope,
        enough: usize,
    ) -> Result<usize, Stop> {
        let mut deepest = self.budget.level();
        let mut found = 0;
        for branch in self.candidates(choice, value)? {
            if self.valid(choice.branches[branch], value, scope)? {
                found += 1;
                if found == enough {
                    break;
                }
            } else {
                deepest = deepest.max(self.memo.fault_level);
            }
        }
        self.memo.fault_level = deepest;
        Ok(found)
    }

    /// The branches that can hold. With a tag that is one lookup, otherwise one test per guard.
    pub(super) fn candidates(&mut self, choice: &Choice, value: &Value) -> Result<Vec<usize>, Stop> {
        self.budget.step()?;
        if choice.tag.is_none() || !value.is_object() {
            self.budget.spend(choice.branches.len() / 4)?;
        }
        Ok(choice.candidates(value))
    }

    /// Explains why no branch holds, through the branch that the tag chooses or the nearest one.
    pub(super) fn explain_choice(
        &mut self,
        choice: &Choice,
        value: &Value,
        scope: Scope,
    ) -> Result<(), Stop> {
        match choice.tag.as_ref().and_then(|tag| Some((tag, tag.chosen(value)?))) {
            Some((_, Chosen::Branch(branch))) => return self.explain(choice.branches[branch], value, scope),
            Some((tag, Chosen::None)) => return self.explain_tag(tag, choice, value),
            _ => {}
        }
        let branches = choice.of_type(value);
        match &*branches {
            [] => {
                let all: Vec<usize> = (0..choice.branches.len()).collect();
                self.findings.mismatch(choice.phrase(&all), value)
            }
            [branch] => self.explain(choice.branches[*branch], value, scope),
            _ => match self.nearest(choice, &branches, value, scope)? {
                Some(branch) => self.explain(choice.branches[branch], value, scope),
                None => self.findings.mismatch(choice.phrase(&branches), value),
            },
        }
    }

    /// The tag is missing or unknown.
    fn explain_tag(&mut self, tag: &Tag, choice: &Choice, value: &Value) -> Result<(), Stop> {
        match tag {
            Tag::Member { name, .. } => {
                let values = choice.guards.iter().filter_map(|guard| guard.constant(name));
                let expected = choices(values);
                match value.get(name) {
                    None => self.findings.missing_tag(name, expected),
                    Some(found) => {
                        let length = self.findings.descend(name);
                        self.findings.mismatch(expected, found)?;
                        self.findings.ascend(length);
                        Ok(())
                    }
                }
            }
            Tag::Key { branches } => {
                let mut names: Vec<Value> = branches.keys().map(|name| name.as_str().into()).collect();
                names.sort_by(|one, two| one.as_str().cmp(&two.as_str()));
                self.findings.mismatch(format!("an object with {}", choices(&names)), value)
            }
        }
    }

    /// The branch whose fault lies deepest; among those, the one that declares most of the members. None on a tie.
    fn nearest(
        &mut self,
        choice: &Choice,
        branches: &[usize],
        value: &Value,
        scope: Scope,
    ) -> Result<Option<usize>, Stop> {
        let mut best = (0, 0);
        let mut nearest = None;
        for &branch in branches {
            if self.valid(choice.branches[branch], value, scope)? {
                continue;
            }
            let depth = self.memo.fault_level.saturating_sub(self.budget.level());
            let declared = &choice.guards[branch].declared;
            let members = value
                .as_object()
                .map_or(0, |members| members.keys().filter(|name| declared.contains_key(*name)).count());
            self.budget.spend(members)?;
            let rank = (depth, members);
            if rank > best {
                (best, nearest) = (rank, Some(branch));
            } else if rank == best {
                nearest = None;
            }
        }
        Ok(nearest)
    }
}
