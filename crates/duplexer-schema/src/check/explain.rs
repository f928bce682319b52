//! Lists what is wrong with a value that is not valid.
//!
//! Of a choice only one branch is explained, and a shared node only once per value.

use serde_json::{Map, Value};

use super::leaf::expectation;
use super::memo::{Known, Question};
use super::scope::Scope;
use super::{Checker, Stop};
use crate::choice::{Choice, Guard};
use crate::node::{Contains, Items, Keyword, Node, NodeId, Properties};
use crate::text::counted;

type Done = Result<(), Stop>;

/// A part of a value.
#[derive(Clone, Copy)]
enum Part<'a> {
    Member(&'a str),
    Item(usize),
}

impl<'s> Checker<'s> {
    /// Lists why a node does not hold; nothing if it does.
    pub(super) fn explain(&mut self, id: NodeId, value: &Value, scope: Scope) -> Done {
        let node = self.node(id);
        let inner = self.scopes.enter(scope, node.resource);
        if node.is_shared {
            let question = Question::new(id, value, inner);
            if self.memo.get(&question) == Some(Known::Explained) || self.valid(id, value, scope)? {
                return Ok(());
            }
            self.memo.set(question, Known::Explained);
        }
        self.budget.enter()?;
        self.explain_keywords(node, value, inner)?;
        self.budget.leave();
        Ok(())
    }

    fn explain_keywords(&mut self, node: &'s Node, value: &Value, scope: Scope) -> Done {
        let before = self.findings.len();
        for keyword in &node.keywords {
            let is_unevaluated =
                matches!(keyword, Keyword::UnevaluatedProperties(_) | Keyword::UnevaluatedItems(_));
            // A branch that fails evaluates nothing: what it declares would be listed as unknown.
            if is_unevaluated && self.findings.len() > before {
                continue;
            }
            self.explain_keyword(node, keyword, value, scope)?;
            // A value of the wrong type or not among the allowed ones: everything else follows from that.
            let is_decisive = matches!(keyword, Keyword::Type(_) | Keyword::Const(_) | Keyword::Enum(_));
            if is_decisive && self.findings.len() > before {
                break;
            }
        }
        Ok(())
    }

    fn explain_keyword(&mut self, node: &'s Node, keyword: &'s Keyword, value: &Value, scope: Scope) -> Done {
        match (keyword, value) {
            (Keyword::Ref(_) | Keyword::DynamicRef(_), _) => match self.target(keyword, scope) {
                Some(target) => self.explain(target, value, scope),
                None => Ok(()),
            },
            (Keyword::AllOf(all), _) => all.iter().try_for_each(|node| self.explain(*node, value, scope)),
            (Keyword::AnyOf(choice), _) => match self.matching(choice, value, scope, 1)? {
                0 => self.explain_choice(choice, value, scope),
                _ => Ok(()),
            },
            (Keyword::OneOf(choice), _) => self.explain_one_of(choice, value, scope),
            (Keyword::Not(other), _) => self.explain_not(*other, value, scope),
            (Keyword::If(condition), _) => match self.consequence(condition, value, scope)? {
                Some(consequence) => self.explain(consequence, value, scope),
                None => Ok(()),
            },
            (Keyword::DependentSchemas(all), Value::Object(members)) => {
                let mut present = all.iter().filter(|(name, _)| members.contains_key(name));
                present.try_for_each(|(_, node)| self.explain(*node, value, scope))
            }
            (Keyword::Required(names), Value::Object(members)) => self.explain_required(names, members),
            (Keyword::DependentRequired(all), Value::Object(members)) => {
                let mut present = all.iter().filter(|(name, _)| members.contains_key(name));
                present.try_for_each(|(_, names)| self.explain_required(names, members))
            }
            (Keyword::Properties(properties), Value::Object(members)) => {
                self.explain_properties(properties, members, scope)
            }
            (Keyword::PropertyNames(name), Value::Object(members)) => {
                self.explain_names(*name, members, scope)
            }
            (Keyword::Items(schemas), Value::Array(items)) => {
                self.explain_items(schemas, items, value, scope)
            }
            (Keyword::Contains(contains), Value::Array(items)) => {
                self.explain_contains(contains, items, value, scope)
            }
            (Keyword::UnevaluatedProperties(rest), Value::Object(members)) => {
                let evaluated = self.evaluated(node, value, scope)?;
                let parts = members.iter().zip(evaluated).filter(|(_, is_evaluated)| !is_evaluated);
                for ((name, member), _) in parts {
                    self.explain_below(*rest, Part::Member(name), member, scope)?;
                }
                Ok(())
            }
            (Keyword::UnevaluatedItems(rest), Value::Array(items)) => {
                let evaluated = self.evaluated(node, value, scope)?;
                let parts = items.iter().enumerate().zip(evaluated).filter(|(_, is_evaluated)| !is_evaluated);
                for ((index, item), _) in parts {
                    self.explain_below(*rest, Part::Item(index), item, scope)?;
                }
                Ok(())
            }
            (leaf, _) => {
                if self.leaf(leaf, value)? {
                    return Ok(());
                }
                self.findings.mismatch(expectation(leaf), value)
            }
        }
    }

    /// Explains a member or an item.
    fn explain_below(&mut self, id: NodeId, part: Part<'_>, value: &Value, scope: Scope) -> Done {
        let length = match part {
            Part::Member(name) => {
                self.budget.spend(1 + name.len() / 64)?;
                self.findings.descend(name)
            }
            Part::Item(index) => {
                self.budget.step()?;
                self.findings.descend(&index.to_string())
            }
        };
        self.budget.descend();
        if self.node(id).is_never() {
            let noun = match part {
                Part::Member(_) => "member",
                Part::Item(_) => "item",
            };
            self.findings.unknown(noun, value)?;
        } else {
            self.explain(id, value, scope)?;
        }
        self.budget.ascend();
        self.findings.ascend(length);
        Ok(())
    }

    fn explain_one_of(&mut self, choice: &Choice, value: &Value, scope: Scope) -> Done {
        match self.matching(choice, value, scope, 2)? {
            0 => self.explain_choice(choice, value, scope),
            1 => Ok(()),
            _ => self.findings.mismatch("exactly one of the allowed forms".to_owned(), value),
        }
    }

    fn explain_not(&mut self, other: NodeId, value: &Value, scope: Scope) -> Done {
        if !self.valid(other, value, scope)? {
            return Ok(());
        }
        let phrase = Guard::of(&self.schema.nodes, other).phrase();
        let expected =
            phrase.map_or_else(|| "something else".to_owned(), |phrase| format!("anything but {phrase}"));
        self.findings.mismatch(expected, value)
    }

    fn explain_required(&mut self, names: &[String], members: &Map<String, Value>) -> Done {
        for name in names {
            self.budget.step()?;
            if !members.contains_key(name) {
                self.findings.missing(name)?;
            }
        }
        Ok(())
    }

    fn explain_properties(
        &mut self,
        properties: &Properties,
        members: &Map<String, Value>,
        scope: Scope,
    ) -> Done {
        for (name, value) in members {
            for node in self.member_schemas(properties, name)? {
                self.explain_below(node, Part::Member(name), value, scope)?;
            }
        }
        Ok(())
    }

    /// The place of a wrong name is the member that has it.
    fn explain_names(&mut self, node: NodeId, members: &Map<String, Value>, scope: Scope) -> Done {
        for key in members.keys() {
            let name = self.name(key);
            if self.below(node, &name, scope)? {
                continue;
            }
            let broken =
                self.node(node).keywords.iter().find_map(|keyword| match self.leaf(keyword, &name) {
                    Ok(false) => Some(expectation(keyword)),
                    _ => None,
                });
            let expected = broken.map_or_else(
                || "another name of the member".to_owned(),
                |expected| format!("a name of the member that is {expected}"),
            );
            let length = self.findings.descend(key);
            self.findings.mismatch(expected, &name)?;
            self.findings.ascend(length);
        }
        Ok(())
    }

    fn explain_items(&mut self, schemas: &Items, items: &[Value], whole: &Value, scope: Scope) -> Done {
        for (index, item) in items.iter().enumerate() {
            let Some(node) = schemas.at(index) else { break };
            if index >= schemas.prefix.len() && self.node(node).is_never() {
                let most = u64::try_from(schemas.prefix.len()).unwrap_or(u64::MAX);
                return self.findings.mismatch(format!("no more than {}", counted(most, "item")), whole);
            }
            self.explain_below(node, Part::Item(index), item, scope)?;
        }
        Ok(())
    }

    fn explain_contains(
        &mut self,
        contains: &Contains,
        items: &[Value],
        whole: &Value,
        scope: Scope,
    ) -> Done {
        let found = self.contained(contains, items, scope)?;
        let (side, limit) = match contains.max {
            _ if found < contains.min => ("at least", contains.min),
            Some(max) if found > max => ("at most", max),
            _ => return Ok(()),
        };
        let phrase = Guard::of(&self.schema.nodes, contains.item).phrase();
        let form =
            phrase.map_or_else(|| "of the right form".to_owned(), |phrase| format!("that is {phrase}"));
        self.findings.mismatch(format!("{side} {} {form}", counted(limit, "item")), whole)
    }
}
