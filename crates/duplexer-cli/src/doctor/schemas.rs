//! Schemas of tools: what is invalid, and what hosts and model interfaces do not accept.

use std::collections::HashSet;

use duplexer::types::text::shown;
use duplexer_schema::{CompileError, Schema};
use serde_json::Value;

use super::messages::brief;
use super::report::Report;
use super::rules;

/// Maximum nodes of a schema that are visited.
const MAX_NODES: usize = 20_000;
/// Nesting from which on models and hosts have trouble.
const MAX_DEPTH: usize = 10;
/// Formats that JSON Schema defines.
const FORMATS: [&str; 19] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
];
/// Keywords whose value is a schema.
const SCHEMAS: [&str; 11] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Keywords whose value is an array of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const MAPS: [&str; 5] = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// Checks the schema of the arguments of a tool.
pub(super) fn input(tool: &str, schema: &Value, report: &mut Report) {
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    report.expect(rules::SCHEMA_ROOT, is_object, || format!("inputSchema of `{tool}`: {}", brief(schema)));
    let choices: Vec<&str> = ["anyOf", "oneOf", "allOf", "not", "enum"]
        .into_iter()
        .filter(|name| schema.get(name).is_some())
        .collect();
    report.expect(rules::SCHEMA_UNION, choices.is_empty(), || {
        format!("inputSchema of `{tool}` has {} at its root", choices.join(" and "))
    });
    if schema.is_object() {
        whole(&format!("inputSchema of `{tool}`"), schema, report);
    }
}

/// Checks the schema of the results of a tool.
pub(super) fn output(tool: &str, schema: &Value, report: &mut Report) {
    let place = format!("outputSchema of `{tool}`");
    if !schema.is_object() {
        report.find(rules::SCHEMA_VALID, format!("{place}: {}", brief(schema)));
        return;
    }
    let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
    report.expect(rules::OUTPUT_ROOT, is_object, || format!("{place}: {}", brief(schema)));
    whole(&place, schema, report);
}

fn whole(place: &str, schema: &Value, report: &mut Report) {
    let mut walk = Walk { place, root: schema, report, nodes: 0, deepest: 0, references: Vec::new() };
    walk.node(schema, "", 0);
    let (deepest, references) = (walk.deepest, walk.references);
    report.expect(rules::SCHEMA_DEPTH, deepest <= MAX_DEPTH, || format!("{place} has {deepest} levels"));
    let is_recursive = references.iter().any(|(from, to)| from == to || from.starts_with(&format!("{to}/")));
    report.expect(rules::SCHEMA_RECURSION, !is_recursive && !cycle(&references), || {
        format!("{place} contains itself")
    });
    match Schema::compile(schema) {
        Ok(_) => report.pass(rules::SCHEMA_VALID),
        Err(error) if is_foreign(schema, &error) => {}
        Err(error) => report.find(rules::SCHEMA_VALID, format!("{place}: {}", shown(&error.to_string()))),
    }
}

/// Returns whether the failure to compile is not one of the schema: it names another dialect or document.
fn is_foreign(schema: &Value, error: &CompileError) -> bool {
    let has_dialect = schema.get("$schema").is_some_and(|dialect| {
        dialect.as_str().is_some_and(|uri| !uri.contains("2020-12") && !uri.contains("draft-07"))
    });
    // References are reported on their own. A pattern that looks ahead is valid, and only not understood here.
    has_dialect || error.location().ends_with("/$ref") || error.location().ends_with("/pattern")
}

/// Returns whether references lead from one definition to others and back.
fn cycle(references: &[(String, String)]) -> bool {
    // A definition contains a reference if the place of the reference is below it.
    let next = |at: &str| -> Vec<&str> {
        let below = format!("{at}/");
        let inside = references.iter().filter(|(from, _)| from == at || from.starts_with(&below));
        inside.map(|(_, to)| to.as_str()).collect()
    };
    for (_, start) in references {
        let (mut seen, mut open) = (HashSet::new(), next(start));
        while let Some(at) = open.pop() {
            if at == start {
                return true;
            }
            if seen.insert(at) && seen.len() <= references.len() {
                open.extend(next(at));
            }
        }
    }
    false
}

/// A walk over the nodes of a schema.
struct Walk<'a> {
    place: &'a str,
    root: &'a Value,
    report: &'a mut Report,
    nodes: usize,
    deepest: usize,
    /// Where a reference is, and where it leads, as JSON pointers.
    references: Vec<(String, String)>,
}

impl Walk<'_> {
    fn node(&mut self, schema: &Value, at: &str, depth: usize) {
        self.nodes += 1;
        self.deepest = self.deepest.max(depth);
        // Deeper nodes are not needed to say that it is too deep; the parser has a limit of its own.
        if self.nodes > MAX_NODES {
            return;
        }
        let Some(members) = schema.as_object() else { return };
        self.keywords(schema, at);
        for name in SCHEMAS {
            if let Some(inner) = members.get(name).filter(|inner| inner.is_object()) {
                self.node(inner, &format!("{at}/{name}"), depth + 1);
            }
        }
        for name in LISTS {
            for (index, inner) in
                members.get(name).and_then(Value::as_array).into_iter().flatten().enumerate()
            {
                self.node(inner, &format!("{at}/{name}/{index}"), depth);
            }
        }
        for name in MAPS {
            let is_definitions = name.ends_with("efs") || name == "definitions";
            for (key, inner) in members.get(name).and_then(Value::as_object).into_iter().flatten() {
                let at = format!("{at}/{name}/{}", key.replace('~', "~0").replace('/', "~1"));
                if name == "properties" {
                    self.report.expect(rules::SCHEMA_BOOLEAN, !inner.is_boolean(), || {
                        format!("{} has {inner} at {}", self.place, shown(&at))
                    });
                }
                self.node(inner, &at, if is_definitions { depth } else { depth + 1 });
            }
        }
    }

    fn keywords(&mut self, schema: &Value, at: &str) {
        let place = |at: &str| if at.is_empty() { "its root".to_owned() } else { shown(at) };
        let is_array = match schema.get("type") {
            Some(Value::String(one)) => one == "array",
            Some(Value::Array(several)) => several.iter().any(|one| one == "array"),
            _ => false,
        };
        let has_items = schema.get("items").is_some() || schema.get("prefixItems").is_some();
        if is_array {
            self.report.expect(rules::SCHEMA_ITEMS, has_items, || format!("{} at {}", self.place, place(at)));
        }
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            self.report.expect(rules::SCHEMA_FORMAT, FORMATS.contains(&format), || {
                format!("{} has the format `{}` at {}", self.place, shown(format), place(at))
            });
        }
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#');
            let leads = pointer
                .is_some_and(|pointer| !pointer.starts_with('/') || self.root.pointer(pointer).is_some());
            self.report.expect(rules::SCHEMA_REFERENCE, leads, || {
                format!("{} refers to `{}` at {}", self.place, shown(reference), place(at))
            });
            self.references.extend(pointer.map(|pointer| (at.to_owned(), pointer.to_owned())));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Value) -> Vec<&'static str> {
        let mut report = Report::new("t");
        input("t", schema, &mut report);
        let mut ids: Vec<_> = report.findings.iter().map(|finding| finding.rule.id).collect();
        ids.dedup();
        ids
    }

    #[test]
    fn what_hosts_do_not_accept_is_found() {
        let check = |schema: Value, expected: &[&str]| assert_eq!(found(&schema), expected, "{schema}");
        check(json!({"type": "object"}), &[]);
        check(
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"], "format": "uri"}}}),
            &[],
        );
        check(json!(null), &["schema-root"]);
        check(json!({}), &["schema-root"]);
        check(json!({"type": "object", "anyOf": [{}]}), &["schema-union"]);
        check(json!({"type": "object", "properties": {"a": true}}), &["schema-boolean"]);
        check(json!({"type": "object", "properties": {"a": {"type": "array"}}}), &["schema-items"]);
        check(
            json!({"type": "object", "properties": {"a": {"type": "integer", "format": "uint32"}}}),
            &["schema-format"],
        );
        check(json!({"type": "object", "properties": {"a": {"$ref": "https://a/b"}}}), &["schema-reference"]);
        check(json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}}), &["schema-reference"]);
        check(json!({"type": "object", "properties": {"a": {"type": "txt"}}}), &["schema-valid"]);
        check(json!({"type": "object", "required": "a"}), &["schema-valid"]);
        check(json!({"type": "object", "properties": {"a": {"$ref": "#"}}}), &["schema-recursion"]);
        let defined = json!({"$ref": "#/$defs/x"});
        check(
            json!({"type": "object", "properties": {"a": defined, "b": defined}, "$defs": {"x": {"type": "string"}}}),
            &[],
        );
        check(
            json!({"type": "object", "properties": {"a": defined}, "$defs": {
                "x": {"type": "object", "properties": {"y": {"$ref": "#/$defs/y"}}},
                "y": {"type": "object", "properties": {"x": defined}}}}),
            &["schema-recursion"],
        );
        let mut deep = json!({"type": "object"});
        for _ in 0..12 {
            deep = json!({"type": "object", "properties": {"a": deep}});
        }
        check(deep, &["schema-depth"]);
    }
}
