//! `unevaluatedProperties` and `unevaluatedItems`: what the other keywords of a schema have judged.

use std::collections::HashSet;

use serde_json::Value;

use super::scope::Scope;
use super::{Checker, Stop, Verdict};
use crate::node::{Keyword, Node, NodeId};

/// Which members or items of one value are evaluated, by position.
struct Evaluated {
    places: Vec<bool>,
    seen: HashSet<(NodeId, Scope)>,
}

impl Evaluated {
    fn all(&mut self) {
        self.places.fill(true);
    }
}

impl<'s> Checker<'s> {
    pub(super) fn unevaluated_hold(
        &mut self,
        node: &'s Node,
        rest: NodeId,
        value: &Value,
        scope: Scope,
    ) -> Verdict {
        let evaluated = self.evaluated(node, value, scope)?;
        let parts: Vec<&Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        for (part, _) in parts.into_iter().zip(evaluated).filter(|(_, is_evaluated)| !is_evaluated) {
            if !self.below(rest, part, scope)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns for each member or item whether a keyword of `node` has evaluated it, `unevaluated..` aside.
    pub(super) fn evaluated(
        &mut self,
        node: &'s Node,
        value: &Value,
        scope: Scope,
    ) -> Result<Vec<bool>, Stop> {
        let length = match value {
            Value::Object(members) => members.len(),
            Value::Array(items) => items.len(),
            _ => 0,
        };
        self.budget.spend(length)?;
        let mut evaluated = Evaluated { places: vec![false; length], seen: HashSet::new() };
        let is_own = |keyword: &Keyword| {
            matches!(keyword, Keyword::UnevaluatedProperties(_) | Keyword::UnevaluatedItems(_))
        };
        for keyword in node.keywords.iter().filter(|keyword| !is_own(keyword)) {
            self.evaluate(keyword, value, scope, &mut evaluated)?;
        }
        Ok(evaluated.places)
    }

    /// Marks what a node evaluates. The node holds for the value, or the schema around it fails anyway.
    fn evaluate_node(
        &mut self,
        id: NodeId,
        value: &Value,
        scope: Scope,
        evaluated: &mut Evaluated,
    ) -> Result<(), Stop> {
        let node = self.node(id);
        let scope = self.scopes.enter(scope, node.resource);
        self.budget.enter()?;
        if evaluated.seen.insert((id, scope)) {
            for keyword in &node.keywords {
                self.evaluate(keyword, value, scope, evaluated)?;
            }
        }
        self.budget.leave();
        Ok(())
    }

    fn evaluate(
        &mut self,
        keyword: &'s Keyword,
        value: &Value,
        scope: Scope,
        evaluated: &mut Evaluated,
    ) -> Result<(), Stop> {
        self.budget.step()?;
        match (keyword, value) {
            (Keyword::Ref(_) | Keyword::DynamicRef(_), _) => {
                if let Some(target) = self.target(keyword, scope) {
                    self.evaluate_node(target, value, scope, evaluated)?;
                }
            }
            (Keyword::AllOf(all), _) => {
                for node in all {
                    self.evaluate_node(*node, value, scope, evaluated)?;
                }
            }
            (Keyword::AnyOf(choice) | Keyword::OneOf(choice), _) => {
                for branch in self.candidates(choice, value)? {
                    self.evaluate_if_valid(choice.branches[branch], value, scope, evaluated)?;
                }
            }
            (Keyword::If(condition), _) => {
                self.evaluate_if_valid(condition.test, value, scope, evaluated)?;
                if let Some(node) = self.consequence(condition, value, scope)? {
                    self.evaluate_node(node, value, scope, evaluated)?;
                }
            }
            (Keyword::DependentSchemas(all), Value::Object(members)) => {
                for (_, node) in all.iter().filter(|(name, _)| members.contains_key(name)) {
                    self.evaluate_node(*node, value, scope, evaluated)?;
                }
            }
            (keyword, value) => self.evaluate_parts(keyword, value, scope, evaluated)?,
        }
        Ok(())
    }

    fn evaluate_if_valid(
        &mut self,
        node: NodeId,
        value: &Value,
        scope: Scope,
        evaluated: &mut Evaluated,
    ) -> Result<(), Stop> {
        if self.valid(node, value, scope)? {
            self.evaluate_node(node, value, scope, evaluated)
        } else {
            Ok(())
        }
    }

    /// Marks what a keyword evaluates by itself.
    fn evaluate_parts(
        &mut self,
        keyword: &'s Keyword,
        value: &Value,
        scope: Scope,
        evaluated: &mut Evaluated,
    ) -> Result<(), Stop> {
        match (keyword, value) {
            (Keyword::Properties(properties), Value::Object(members)) => {
                for (place, name) in members.keys().enumerate() {
                    self.budget.spend(1 + properties.patterns.len() * (1 + name.len() / 8))?;
                    evaluated.places[place] |= properties.covers(name);
                }
            }
            (Keyword::Items(items), Value::Array(_)) => {
                if items.rest.is_some() {
                    evaluated.all();
                }
                evaluated.places.iter_mut().take(items.prefix.len()).for_each(|place| *place = true);
            }
            (Keyword::Contains(contains), Value::Array(items)) => {
                for (place, item) in items.iter().enumerate() {
                    evaluated.places[place] |= self.below(contains.item, item, scope)?;
                }
            }
            (Keyword::UnevaluatedProperties(_), Value::Object(_))
            | (Keyword::UnevaluatedItems(_), Value::Array(_)) => evaluated.all(),
            _ => {}
        }
        Ok(())
    }
}
