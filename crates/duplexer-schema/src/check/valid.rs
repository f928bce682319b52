//! Judges values, yes or no.

use serde_json::{Map, Value};

use super::memo::{Known, Question};
use super::scope::Scope;
use super::{Checker, Verdict};
use crate::node::{Condition, Contains, Items, Keyword, Node, NodeId, Properties};

impl<'s> Checker<'s> {
    /// Judges a value by a node.
    pub(super) fn valid(&mut self, id: NodeId, value: &Value, scope: Scope) -> Verdict {
        let node = self.node(id);
        let scope = self.scopes.enter(scope, node.resource);
        if !node.is_shared {
            return self.judge(node, value, scope);
        }
        self.budget.step()?;
        let level = self.budget.level();
        let question = Question::new(id, value, scope);
        match self.memo.get(&question) {
            Some(Known::Open | Known::Valid) => return Ok(true),
            Some(Known::Failed { progress }) => {
                self.memo.fault_level = level + usize::from(progress);
                return Ok(false);
            }
            Some(Known::Explained) => {
                self.memo.fault_level = level;
                return Ok(false);
            }
            None => {}
        }
        self.memo.set(question, Known::Open);
        let is_valid = self.judge(node, value, scope)?;
        let progress = u16::try_from(self.memo.fault_level.saturating_sub(level)).unwrap_or(u16::MAX);
        self.memo.set(question, if is_valid { Known::Valid } else { Known::Failed { progress } });
        Ok(is_valid)
    }

    fn judge(&mut self, node: &'s Node, value: &Value, scope: Scope) -> Verdict {
        self.budget.enter()?;
        for keyword in &node.keywords {
            if !self.holds(node, keyword, value, scope)? {
                self.budget.leave();
                return Ok(false);
            }
        }
        self.budget.leave();
        Ok(true)
    }

    /// Judges a member or an item.
    pub(super) fn below(&mut self, id: NodeId, value: &Value, scope: Scope) -> Verdict {
        self.budget.step()?;
        self.budget.descend();
        let verdict = self.valid(id, value, scope);
        self.budget.ascend();
        verdict
    }

    fn holds(&mut self, node: &'s Node, keyword: &'s Keyword, value: &Value, scope: Scope) -> Verdict {
        match (keyword, value) {
            (Keyword::Ref(_) | Keyword::DynamicRef(_), _) => match self.target(keyword, scope) {
                Some(target) => self.valid(target, value, scope),
                None => Ok(true),
            },
            (Keyword::AllOf(all), _) => self.all_hold(all, value, scope),
            (Keyword::AnyOf(choice), _) => Ok(self.matching(choice, value, scope, 1)? > 0),
            (Keyword::OneOf(choice), _) => {
                let matching = self.matching(choice, value, scope, 2)?;
                Ok(if matching == 2 { self.fault_here() } else { matching == 1 })
            }
            (Keyword::Not(node), _) => {
                let is_valid = self.valid(*node, value, scope)?;
                Ok(!is_valid || self.fault_here())
            }
            (Keyword::If(condition), _) => match self.consequence(condition, value, scope)? {
                Some(consequence) => self.valid(consequence, value, scope),
                None => Ok(true),
            },
            (Keyword::DependentSchemas(all), Value::Object(members)) => {
                self.budget.spend(all.len())?;
                for (_, node) in all.iter().filter(|(name, _)| members.contains_key(name)) {
                    if !self.valid(*node, value, scope)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Keyword::Properties(properties), Value::Object(members)) => {
                self.properties_hold(properties, members, scope)
            }
            (Keyword::PropertyNames(node), Value::Object(members)) => self.names_hold(*node, members, scope),
            (Keyword::Items(schemas), Value::Array(items)) => self.items_hold(schemas, items, scope),
            (Keyword::Contains(contains), Value::Array(items)) => {
                let found = self.contained(contains, items, scope)?;
                let holds = found >= contains.min && contains.max.is_none_or(|max| found <= max);
                Ok(holds || self.fault_here())
            }
            (Keyword::UnevaluatedProperties(rest), Value::Object(_))
            | (Keyword::UnevaluatedItems(rest), Value::Array(_)) => {
                self.unevaluated_hold(node, *rest, value, scope)
            }
            (leaf, _) => Ok(self.leaf(leaf, value)? || self.fault_here()),
        }
    }

    /// Notes that the fault lies in the value being judged, not below it. The result is always `false`.
    pub(super) fn fault_here(&mut self) -> bool {
        self.memo.fault_level = self.budget.level();
        false
    }

    fn all_hold(&mut self, all: &[NodeId], value: &Value, scope: Scope) -> Verdict {
        for node in all {
            if !self.valid(*node, value, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The schema that applies after `if`.
    pub(super) fn consequence(
        &mut self,
        condition: &Condition,
        value: &Value,
        scope: Scope,
    ) -> Result<Option<NodeId>, super::Stop> {
        if condition.then.is_none() && condition.otherwise.is_none() {
            return Ok(None);
        }
        let holds = self.valid(condition.test, value, scope)?;
        Ok(if holds { condition.then } else { condition.otherwise })
    }

    fn properties_hold(
        &mut self,
        properties: &Properties,
        members: &Map<String, Value>,
        scope: Scope,
    ) -> Verdict {
        for (name, value) in members {
            for node in self.member_schemas(properties, name)? {
                if !self.below(node, value, scope)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The schemas that apply to a member.
    pub(super) fn member_schemas(
        &mut self,
        properties: &Properties,
        name: &str,
    ) -> Result<impl Iterator<Item = NodeId> + use<>, super::Stop> {
        self.budget.spend(1 + properties.patterns.len() * (1 + name.len() / 8))?;
        let named = properties.named.get(name).copied();
        let matching = properties.patterns.iter().filter(|(pattern, _)| pattern.is_match(name));
        let matching: Vec<NodeId> = matching.map(|(_, node)| *node).collect();
        let is_rest = named.is_none() && matching.is_empty();
        let rest = properties.rest.filter(|_| is_rest);
        Ok(named.into_iter().chain(matching).chain(rest))
    }

    fn names_hold(&mut self, node: NodeId, members: &Map<String, Value>, scope: Scope) -> Verdict {
        for name in members.keys() {
            let name = self.name(name);
            if !self.below(node, &name, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn items_hold(&mut self, schemas: &Items, items: &[Value], scope: Scope) -> Verdict {
        for (index, item) in items.iter().enumerate() {
            let Some(node) = schemas.at(index) else { break };
            if !self.below(node, item, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// How many items match; counting ends where the answer is certain.
    pub(super) fn contained(
        &mut self,
        contains: &Contains,
        items: &[Value],
        scope: Scope,
    ) -> Result<u64, super::Stop> {
        let enough = contains.max.map_or(contains.min, |max| max.saturating_add(1));
        let mut found = 0;
        for item in items {
            if found >= enough {
                break;
            }
            found += u64::from(self.below(contains.item, item, scope)?);
        }
        Ok(found)
    }
}
