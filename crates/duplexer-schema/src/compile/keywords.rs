//! Reads the keywords of one schema object.

use serde_json::{Map, Number, Value};

use super::{Compiler, Dialect};
use crate::choice::Choice;
use crate::documents::Home;
use crate::error::CompileError;
use crate::node::{
    Bound, Condition, Contains, DynamicRef, Enumeration, Items, Keyword, Measure, NodeId, Properties, Side,
};
use crate::number::{Decimal, Num};
use crate::pattern;
use crate::value::Types;

type Members = Map<String, Value>;

impl<'d> Compiler<'d> {
    /// Reads a schema. Parts that have the wrong type are skipped: the metaschema has refused them before.
    pub(super) fn keywords(&mut self, schema: &'d Value, home: &Home) -> Result<Vec<Keyword>, CompileError> {
        let schema = match schema {
            Value::Bool(true) => return Ok(Vec::new()),
            Value::Bool(false) => return Ok(vec![Keyword::Never]),
            Value::Object(members) => members,
            _ => return Err(CompileError::new(&*home.location, "a schema is an object or a boolean")),
        };
        let Dialect { applicator, unevaluated, validation } = self.dialect(home)?;
        let mut keywords = Vec::new();
        if validation {
            values(schema, &mut keywords);
            numbers(schema, &mut keywords);
            sizes(schema, &mut keywords);
            names(schema, &mut keywords);
            if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
                keywords.push(Keyword::Pattern(compiled(pattern, home)?, pattern.into()));
            }
        }
        self.references(schema, home, &mut keywords)?;
        if applicator {
            self.members(schema, home, &mut keywords)?;
            self.items(schema, &mut keywords)?;
            self.in_place(schema, &mut keywords)?;
        }
        if unevaluated {
            // Last: they depend on everything that the schema says besides.
            let properties = self.one(schema, "unevaluatedProperties")?;
            keywords.extend(properties.map(Keyword::UnevaluatedProperties));
            keywords.extend(self.one(schema, "unevaluatedItems")?.map(Keyword::UnevaluatedItems));
        }
        Ok(keywords)
    }

    fn references(
        &mut self,
        schema: &'d Members,
        home: &Home,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), CompileError> {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let target = self.documents.resolve(reference, home)?;
            keywords.push(Keyword::Ref(self.node(target.schema)?));
        }
        if let Some(reference) = schema.get("$dynamicRef").and_then(Value::as_str) {
            let target = self.documents.resolve(reference, home)?;
            let fallback = self.node(target.schema)?;
            keywords.push(match target.dynamic_anchor {
                Some(name) => Keyword::DynamicRef(DynamicRef { fallback, anchor: self.anchor(name) }),
                None => Keyword::Ref(fallback),
            });
        }
        Ok(())
    }

    fn anchor(&mut self, name: String) -> usize {
        self.anchors.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.anchors.push(name);
            self.anchors.len() - 1
        })
    }

    fn in_place(&mut self, schema: &'d Members, keywords: &mut Vec<Keyword>) -> Result<(), CompileError> {
        keywords.extend(self.several(schema, "allOf")?.map(Keyword::AllOf));
        keywords.extend(self.several(schema, "anyOf")?.map(Choice::new).map(Keyword::AnyOf));
        keywords.extend(self.several(schema, "oneOf")?.map(Choice::new).map(Keyword::OneOf));
        keywords.extend(self.one(schema, "not")?.map(Keyword::Not));
        if let Some(test) = self.one(schema, "if")? {
            let (then, otherwise) = (self.one(schema, "then")?, self.one(schema, "else")?);
            keywords.push(Keyword::If(Condition { test, then, otherwise }));
        }
        keywords.extend(self.named(schema, "dependentSchemas")?.map(Keyword::DependentSchemas));
        Ok(())
    }

    fn members(
        &mut self,
        schema: &'d Members,
        home: &Home,
        keywords: &mut Vec<Keyword>,
    ) -> Result<(), CompileError> {
        let named = self.named(schema, "properties")?;
        let patterns = self.named(schema, "patternProperties")?;
        let rest = self.one(schema, "additionalProperties")?;
        if named.is_some() || patterns.is_some() || rest.is_some() {
            let patterns = patterns.into_iter().flatten().map(|(pattern, node)| {
                let pattern = compiled(&pattern, home)?;
                Ok((pattern, node))
            });
            keywords.push(Keyword::Properties(Box::new(Properties {
                named: named.into_iter().flatten().collect(),
                patterns: patterns.collect::<Result<_, CompileError>>()?,
                rest,
            })));
        }
        keywords.extend(self.one(schema, "propertyNames")?.map(Keyword::PropertyNames));
        Ok(())
    }

    fn items(&mut self, schema: &'d Members, keywords: &mut Vec<Keyword>) -> Result<(), CompileError> {
        let prefix = self.several(schema, "prefixItems")?;
        let rest = self.one(schema, "items")?;
        if prefix.is_some() || rest.is_some() {
            keywords.push(Keyword::Items(Items { prefix: prefix.unwrap_or_default(), rest }));
        }
        if let Some(item) = self.one(schema, "contains")? {
            let min = count(schema, "minContains").unwrap_or(1);
            keywords.push(Keyword::Contains(Contains { item, min, max: count(schema, "maxContains") }));
        }
        Ok(())
    }

    fn one(&mut self, schema: &'d Members, keyword: &str) -> Result<Option<NodeId>, CompileError> {
        schema.get(keyword).map(|value| self.node(value)).transpose()
    }

    fn several(&mut self, schema: &'d Members, keyword: &str) -> Result<Option<Vec<NodeId>>, CompileError> {
        let list = schema.get(keyword).and_then(Value::as_array);
        list.map(|list| list.iter().map(|value| self.node(value)).collect()).transpose()
    }

    fn named(
        &mut self,
        schema: &'d Members,
        keyword: &str,
    ) -> Result<Option<Vec<(String, NodeId)>>, CompileError> {
        let map = schema.get(keyword).and_then(Value::as_object);
        let mut entry = |(name, value): (&String, &'d Value)| Ok((name.clone(), self.node(value)?));
        map.map(|map| map.iter().map(&mut entry).collect()).transpose()
    }
}

fn compiled(pattern: &str, home: &Home) -> Result<regex::Regex, CompileError> {
    pattern::compile(pattern).map_err(|reason| CompileError::new(&*home.location, reason))
}

fn values(schema: &Members, keywords: &mut Vec<Keyword>) {
    match schema.get("type") {
        Some(Value::String(name)) => keywords.push(Keyword::Type(Types::named(name))),
        Some(Value::Array(names)) => {
            let types = names.iter().filter_map(Value::as_str).map(Types::named);
            keywords.push(Keyword::Type(types.fold(Types::NONE, Types::union)));
        }
        _ => {}
    }
    keywords.extend(schema.get("const").cloned().map(Keyword::Const));
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let mut strings: Vec<String> =
            values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
        strings.sort();
        let others = values.iter().filter(|value| !value.is_string()).cloned().collect();
        keywords.push(Keyword::Enum(Enumeration { values: values.clone(), strings, others }));
    }
}

fn numbers(schema: &Members, keywords: &mut Vec<Keyword>) {
    let number = |keyword: &str| schema.get(keyword).and_then(Value::as_number).cloned();
    for (keyword, bound) in [
        ("minimum", Bound::Minimum),
        ("maximum", Bound::Maximum),
        ("exclusiveMinimum", Bound::ExclusiveMinimum),
        ("exclusiveMaximum", Bound::ExclusiveMaximum),
    ] {
        keywords.extend(number(keyword).map(|limit| Keyword::Bound(bound, limit)));
    }
    let multiple = |divisor: Number| {
        let decimal = Decimal::of(&divisor);
        Keyword::MultipleOf(divisor, decimal)
    };
    keywords.extend(number("multipleOf").map(multiple));
}

fn sizes(schema: &Members, keywords: &mut Vec<Keyword>) {
    for (keyword, measure, side) in [
        ("minLength", Measure::Characters, Side::AtLeast),
        ("maxLength", Measure::Characters, Side::AtMost),
        ("minItems", Measure::Items, Side::AtLeast),
        ("maxItems", Measure::Items, Side::AtMost),
        ("minProperties", Measure::Members, Side::AtLeast),
        ("maxProperties", Measure::Members, Side::AtMost),
    ] {
        keywords.extend(count(schema, keyword).map(|limit| Keyword::Size(measure, side, limit)));
    }
    if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
        keywords.push(Keyword::UniqueItems);
    }
}

fn names(schema: &Members, keywords: &mut Vec<Keyword>) {
    let list = |value: &Value| -> Option<Vec<String>> {
        let names = value.as_array()?.iter().filter_map(Value::as_str);
        Some(names.map(str::to_owned).collect())
    };
    keywords.extend(schema.get("required").and_then(list).map(Keyword::Required));
    if let Some(all) = schema.get("dependentRequired").and_then(Value::as_object) {
        let entry = |(name, names): (&String, &Value)| Some((name.clone(), list(names)?));
        keywords.push(Keyword::DependentRequired(all.iter().filter_map(entry).collect()));
    }
}

/// A keyword that counts something: an integer, in whatever notation.
fn count(schema: &Members, keyword: &str) -> Option<u64> {
    match Num::of(schema.get(keyword)?.as_number()?) {
        Num::Integer(integer) => u64::try_from(integer).ok(),
        Num::Double(_) => Some(u64::MAX),
    }
}
