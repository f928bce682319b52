//! Checks one value: first whether it is valid, then, if it is not, why.
//!
//! Verdicts about shared nodes are kept by node and address of the value, so that the work is at most nodes times size.
//! Whatever remains is bounded by the budget of steps.

mod budget;
mod choose;
mod evaluated;
mod explain;
mod findings;
mod leaf;
mod memo;
mod scope;
mod valid;

use std::collections::HashMap;
use std::hash::RandomState;
use std::rc::Rc;

use serde_json::Value;

use crate::compile::Compiled;
use crate::limits::CheckLimits;
use crate::node::{Keyword, Node, NodeId};
use crate::report::{Report, Violation};
use crate::value;

use budget::Budget;
use findings::Findings;
use memo::Memo;
use scope::{Scope, Scopes};

/// Why a check ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The budget of steps or depth is spent.
    TooComplex,
    /// The list of violations is full.
    Full,
}

type Verdict = Result<bool, Stop>;

/// The state of one check.
struct Checker<'s> {
    schema: &'s Compiled,
    budget: Budget,
    memo: Memo,
    scopes: Scopes<'s>,
    findings: Findings,
    /// Member names as values, by the address of the name: `propertyNames` judges them.
    names: HashMap<usize, Rc<Value>>,
    hasher: RandomState,
}

/// Returns whether `value` is valid. A value that is too complex to check is not.
pub(crate) fn is_valid(schema: &Compiled, limits: &CheckLimits, value: &Value) -> bool {
    let mut checker = Checker::new(schema, limits, value);
    checker.valid(schema.root, value, Scope::EMPTY) == Ok(true)
}

/// Returns what is wrong with `value`.
pub(crate) fn check(schema: &Compiled, limits: &CheckLimits, value: &Value) -> Report {
    let mut checker = Checker::new(schema, limits, value);
    let stop = match checker.valid(schema.root, value, Scope::EMPTY) {
        Ok(true) => return checker.report(),
        Ok(false) => checker.explain(schema.root, value, Scope::EMPTY).err(),
        Err(stop) => Some(stop),
    };
    match stop {
        Some(Stop::TooComplex) => checker.findings.push_last(Violation::too_complex()),
        // A reference that leads to itself through `not` can fail without any reason to give.
        None if checker.findings.is_empty() => {
            let _ = checker.findings.mismatch("something else".to_owned(), value);
        }
        _ => {}
    }
    checker.report()
}

impl<'s> Checker<'s> {
    fn new(schema: &'s Compiled, limits: &CheckLimits, value: &Value) -> Self {
        let size = value::size(value);
        Self {
            schema,
            budget: Budget::new(limits.steps_for(size)),
            memo: Memo::new(CheckLimits::verdicts_for(size)),
            scopes: Scopes::new(schema),
            findings: Findings::new(limits.most_violations()),
            names: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    fn report(self) -> Report {
        let Findings { violations, is_cut, .. } = self.findings;
        Report { violations, is_cut, steps: self.budget.steps(), verdicts: self.memo.len() }
    }

    fn node(&self, id: NodeId) -> &'s Node {
        &self.schema.nodes[id.index()]
    }

    /// Where a dynamic reference leads in this scope, or where another reference does.
    fn target(&self, keyword: &Keyword, scope: Scope) -> Option<NodeId> {
        match keyword {
            Keyword::Ref(node) => Some(*node),
            Keyword::DynamicRef(reference) => {
                Some(self.scopes.find(scope, reference.anchor).unwrap_or(reference.fallback))
            }
            _ => None,
        }
    }

    /// A member name as a value. It lives as long as the check, because verdicts are kept by address.
    fn name(&mut self, name: &String) -> Rc<Value> {
        let address = std::ptr::from_ref(name).addr();
        Rc::clone(self.names.entry(address).or_insert_with(|| Rc::new(Value::from(name.as_str()))))
    }
}
