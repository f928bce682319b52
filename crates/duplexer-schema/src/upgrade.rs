//! Schemas of draft-07, rewritten as 2020-12.
//!
//! Many generators still write draft-07. The rewriting keeps what its keywords mean; a JSON pointer that leads through a
//! list in `items` or through `dependencies` is not followed.

use serde_json::{Map, Value};

const DRAFT_07: &str = "json-schema.org/draft-07/schema";

/// Keywords that draft-07 does not have, and therefore ignores.
const UNKNOWN: [&str; 11] = [
    "$anchor",
    "$dynamicAnchor",
    "$dynamicRef",
    "$vocabulary",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that hold something else than schemas.
const PLAIN: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords that hold schemas by name.
const NAMED: [&str; 4] = ["$defs", "definitions", "patternProperties", "properties"];

/// Returns the schema in 2020-12 if it says that it is in draft-07.
pub(crate) fn upgraded(schema: &Value) -> Option<Value> {
    let dialect = schema.get("$schema")?.as_str()?;
    let dialect = dialect.strip_suffix('#').unwrap_or(dialect);
    let (_, path) = dialect.split_once("://")?;
    (path == DRAFT_07).then(|| rewritten(schema))
}

fn rewritten(schema: &Value) -> Value {
    match schema {
        Value::Object(members) => Value::Object(rewritten_object(members)),
        Value::Array(schemas) => schemas.iter().map(rewritten).collect(),
        other => other.clone(),
    }
}

fn rewritten_object(schema: &Map<String, Value>) -> Map<String, Value> {
    let mut upgraded = Map::new();
    let is_reference = schema.get("$ref").is_some_and(Value::is_string);
    for (keyword, value) in schema {
        let keyword = keyword.as_str();
        // Beside a reference everything is ignored, but definitions can be referred to.
        let is_ignored = is_reference && !["$ref", "$defs", "definitions"].contains(&keyword);
        if is_ignored || keyword == "$schema" || UNKNOWN.contains(&keyword) {
            continue;
        }
        match (keyword, value) {
            ("$id", Value::String(id)) => identify(id, &mut upgraded),
            ("items", Value::Array(_)) => insert(&mut upgraded, "prefixItems", rewritten(value)),
            ("additionalItems", _) => {
                if schema.get("items").is_some_and(Value::is_array) {
                    insert(&mut upgraded, "items", rewritten(value));
                }
            }
            ("dependencies", Value::Object(all)) => split_dependencies(all, &mut upgraded),
            (_, Value::Object(schemas)) if NAMED.contains(&keyword) => {
                let schemas = schemas.iter().map(|(name, schema)| (name.clone(), rewritten(schema)));
                insert(&mut upgraded, keyword, Value::Object(schemas.collect()));
            }
            _ if PLAIN.contains(&keyword) => insert(&mut upgraded, keyword, value.clone()),
            _ => insert(&mut upgraded, keyword, rewritten(value)),
        }
    }
    upgraded
}

fn insert(schema: &mut Map<String, Value>, keyword: &str, value: Value) {
    schema.insert(keyword.to_owned(), value);
}

/// In draft-07 the fragment of an `$id` is an anchor.
fn identify(id: &str, schema: &mut Map<String, Value>) {
    let (uri, fragment) = id.split_once('#').unwrap_or((id, ""));
    if !fragment.is_empty() {
        insert(schema, "$anchor", fragment.into());
    }
    if !uri.is_empty() {
        insert(schema, "$id", uri.into());
    }
}

fn split_dependencies(all: &Map<String, Value>, schema: &mut Map<String, Value>) {
    let (mut required, mut schemas) = (Map::new(), Map::new());
    for (name, dependency) in all {
        if dependency.is_array() {
            required.insert(name.clone(), dependency.clone());
        } else {
            schemas.insert(name.clone(), rewritten(dependency));
        }
    }
    insert(schema, "dependentRequired", Value::Object(required));
    insert(schema, "dependentSchemas", Value::Object(schemas));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn draft_07_is_rewritten() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "#root",
            "items": [{ "type": "string" }],
            "additionalItems": { "$ref": "#/definitions/number", "minimum": 5 },
            "dependencies": { "a": ["b"], "c": { "required": ["d"] } },
            "definitions": { "number": { "items": { "type": "number" }, "additionalItems": false } },
            "unevaluatedItems": false,
            "const": { "items": [] },
        });
        let expected = json!({
            "$anchor": "root",
            "prefixItems": [{ "type": "string" }],
            "items": { "$ref": "#/definitions/number" },
            "dependentRequired": { "a": ["b"] },
            "dependentSchemas": { "c": { "required": ["d"] } },
            "definitions": { "number": { "items": { "type": "number" } } },
            "const": { "items": [] },
        });
        assert_eq!(upgraded(&schema), Some(expected));
        assert_eq!(upgraded(&json!({ "items": [] })), None);
    }
}
