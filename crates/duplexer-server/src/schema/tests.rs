//! Schemas as clients see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;

#[derive(Deserialize, Serialize, JsonSchema)]
struct Query {
    /// What to look for.
    text: String,
    limit: Option<u32>,
    order: Option<Order>,
    #[serde(default = "yes")]
    exact: bool,
}

fn yes() -> bool {
    true
}

/// Which first.
#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    /// The newest.
    Newest,
    /// The oldest.
    Oldest,
}

/// TOOL-06; peers B4: no nullable unions, no `$schema`, no unknown formats, no titles of Rust types.
#[test]
fn an_input_schema_is_plain() {
    let made = of_arguments::<Query>().unwrap();
    assert_eq!(
        made.value,
        json!({
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What to look for." },
                "limit": { "type": "integer", "minimum": 0 },
                "order": {
                    "type": "string",
                    "enum": ["newest", "oldest"],
                    "description": "Which first.\n- newest: The newest.\n- oldest: The oldest.",
                },
                "exact": { "type": "boolean", "default": true },
            },
            "required": ["text"],
        })
    );
    assert!(!made.demands_more, "bounds of a u32 are what its decoding checks");
    assert!(is_in_order(&made.listed, &["text", "limit", "order", "exact"]), "{}", made.listed);
}

/// Returns whether the first members of these names follow each other in a text.
fn is_in_order(schema: &Json, names: &[&str]) -> bool {
    let at = |name: &&str| schema.as_str().find(&format!("\"{name}\":{{")).unwrap();
    names.iter().map(at).is_sorted()
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Journey {
    to: String,
    leg: Leg,
    #[serde(default)]
    by: Vec<Leg>,
    again: Option<Box<Journey>>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Leg {
    zone: Option<u8>,
    start: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    delay: String,
    #[serde(default)]
    minutes: u32,
    end: Option<End>,
    code: u8,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(tag = "type")]
enum End {
    Known { station: Option<String>, platform: u8, exit: Option<u8> },
    Unknown,
}

/// Hardening, defect 4: members keep their declared order at every level, optional or not, in input and in output.
#[test]
fn members_keep_their_declared_order_at_every_level() {
    let input = of_arguments::<Journey>().unwrap();
    let output = of_output::<Journey>();
    let listed = of_output::<Vec<Journey>>();
    for schema in [&input.listed, &output.listed, &listed.listed, listed.wrapped.as_ref().unwrap()] {
        assert!(is_in_order(schema, &["to", "leg", "by", "again"]), "{schema}");
        assert!(is_in_order(schema, &["zone", "start", "delay", "minutes", "end", "code"]), "{schema}");
        assert!(is_in_order(schema, &["station", "platform", "exit"]), "{schema}");
        assert!(!schema.as_str().contains("\\u0000"), "{schema}");
    }
    for (value, text) in [(&input.value, &input.listed), (&output.value, &output.listed)] {
        assert_eq!(*value, text.decode::<Value>().unwrap(), "the same schema is checked and listed");
    }
    assert_eq!(output.wrapped, None);
}

/// P-ELI-4: titles have the form that forms require, and are a valid schema everywhere else.
#[test]
fn choices_keep_their_titles() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Size {
        #[schemars(title = "As small as can be")]
        Small,
        /// Needs a van.
        Large,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Sized {
        size: Size,
    }
    assert_eq!(
        of_arguments::<Sized>().unwrap().value["properties"]["size"],
        json!({
            "type": "string",
            "oneOf": [
                { "const": "small", "title": "As small as can be" },
                { "const": "large", "title": "large" },
            ],
            "description": "- large: Needs a van.",
        })
    );
}

#[test]
fn demands_beyond_the_type_are_noticed() {
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Ranged {
        #[schemars(range(min = 1, max = 5))]
        stars: u8,
    }
    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Lengthy {
        #[schemars(length(max = 5))]
        name: String,
    }
    assert!(of_arguments::<Ranged>().unwrap().demands_more);
    assert!(of_arguments::<Lengthy>().unwrap().demands_more);
    assert!(!of_arguments::<Query>().unwrap().demands_more);
}

#[test]
fn arguments_are_objects_or_nothing() {
    #[derive(Deserialize, JsonSchema)]
    #[serde(tag = "by")]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Shape {
        Circle { radius: f64 },
        Square { side: f64 },
    }
    assert_eq!(of_arguments::<()>().unwrap().value, json!({ "type": "object", "properties": {} }));
    assert!(is_object(&of_arguments::<Shape>().unwrap().value));
    for fault in [of_arguments::<i64>().err(), of_arguments::<Vec<String>>().err()] {
        assert!(fault.unwrap().contains("not an object"));
    }
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Node {
    children: Vec<Node>,
    note: Option<String>,
}

/// A recursive type keeps a reference; every other type is inlined.
#[test]
fn only_recursion_is_referenced() {
    let node = of_output::<Node>().value;
    assert_eq!(node["properties"]["note"]["type"], json!(["string", "null"]), "written as null");
    let listed = wrapped(&of_output::<Vec<Node>>().value);
    assert!(listed["$defs"]["Node"].is_object() || !listed.to_string().contains("$defs/Node"), "{listed}");
    assert!(duplexer_schema::Schema::compile(&listed).is_ok());
    let validator = duplexer_schema::Schema::compile(&wrapped(&node)).unwrap();
    assert!(
        validator.is_valid(&json!({"result": {"children": [{"children": [], "note": null}], "note": "x"}}))
    );
    assert!(!validator.is_valid(&json!({"result": {"children": [{"children": 5}]}})));
}

/// A schema that accepts everything is an object: some clients reject a bare `true`.
#[test]
fn a_schema_of_any_value_is_an_empty_object() {
    #[derive(Deserialize, Serialize, JsonSchema)]
    struct Free {
        any: Value,
        many: Vec<Value>,
        named: std::collections::BTreeMap<String, Value>,
    }
    let input = of_arguments::<Free>().unwrap().value;
    assert_eq!(input["properties"]["any"], json!({}));
    assert_eq!(input["properties"]["many"]["items"], json!({}));
    assert_eq!(input["properties"]["named"]["additionalProperties"], true);
    assert_eq!(of_output::<Value>().value, json!({}));
    assert_eq!(of_output::<Free>().value["properties"]["any"], json!({}));
}
