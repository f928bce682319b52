//! What a check costs, in steps and in what it keeps, for values that are nested deep and wrong at the bottom.

use duplexer_schema::{CheckLimits, Report, Schema};
use serde_json::{Value, json};

/// Levels of nesting that `serde_json` reads.
const DEEPEST: usize = 127;

/// Stack of the threads that check: half of what the runtime's threads have, in an unoptimised build.
const STACK: usize = 1 << 20;

/// Writes `open`, as often as fits into the deepest value, around `bottom`.
pub(crate) fn nested(open: &str, close: &str, bottom: &str) -> String {
    let levels = open.matches(['{', '[']).count();
    let times = (DEEPEST - bottom.matches(['{', '[']).count()) / levels;
    format!("{}{bottom}{}", open.repeat(times), close.repeat(times))
}

fn checked(schema: &Value, text: &str) -> (Schema, Report) {
    let (schema, text) = (schema.clone(), text.to_owned());
    let check = move || {
        let schema = Schema::compile(&schema).unwrap_or_else(|error| panic!("{error}"));
        let value: Value = serde_json::from_str(&text).unwrap();
        let report = schema.check(&value);
        assert_eq!(schema.is_valid(&value), report.is_empty());
        (schema, report)
    };
    std::thread::Builder::new().stack_size(STACK).spawn(check).unwrap().join().unwrap()
}

/// Checks a value and the bounds that every check has: steps per byte, and 1 MiB per kB.
fn within_bounds(schema: &Value, text: &str) -> Report {
    let (schema, report) = checked(schema, text);
    assert!(report.steps() <= schema.limits().steps_for(text.len()), "{} steps", report.steps());
    let verdict = 96;
    let texts = |violation: &duplexer_schema::Violation| {
        violation.pointer().len() + violation.expected().len() + violation.found().len() + 128
    };
    let memory = report.verdicts() * verdict + report.violations().iter().map(texts).sum::<usize>();
    assert!(memory / 1024 <= text.len().max(1024), "{memory} bytes for {} of input", text.len());
    report
}

/// An ordinary type is not only within the limits, it is cheap, and its fault is found.
pub(crate) fn cheap(name: &str, schema: &Value, text: &str, message: &str) {
    let report = within_bounds(schema, text);
    let steps = usize::try_from(report.steps()).unwrap();
    assert!(steps <= 16 * text.len(), "{name}: {steps} steps for {} bytes", text.len());
    assert!(report.verdicts() <= text.len(), "{name}: {} verdicts", report.verdicts());
    let [violation] = report.violations() else { panic!("{name}: {report}") };
    assert_eq!(violation.message(), message, "{name}");
    let depth = violation.pointer().matches('/').count();
    assert!(depth >= 60, "{name}: {depth} levels deep: {violation}");
}

#[test]
fn structs_maps_lists_and_tuples_cost_what_their_values_cost() {
    let number = |open: &str, close: &str| nested(open, close, "true");
    let not_number = "expected an integer, got true";
    let node = json!({
        "type": "object",
        "properties": { "next": { "$ref": "#" }, "value": { "type": "integer" } },
        "required": ["value"],
    });
    let bottom = nested(r#"{"value":1,"next":"#, "}", r#"{"value":true}"#);
    cheap("struct", &node, &bottom, not_number);
    let optional = json!({
        "type": "object",
        "properties": {
            "next": { "anyOf": [{ "$ref": "#" }, { "type": "null" }] },
            "value": { "type": "integer" },
        },
        "required": ["value"],
    });
    cheap("Option", &optional, &bottom, not_number);
    let map = json!({ "anyOf": [
        { "type": "object", "additionalProperties": { "$ref": "#" } },
        { "type": "integer" },
    ]});
    cheap("map", &map, &number(r#"{"a":"#, "}"), "expected an object or an integer, got true");
    let list = json!({ "anyOf": [{ "type": "array", "items": { "$ref": "#" } }, { "type": "integer" }] });
    cheap("Vec", &list, &number("[", "]"), "expected an array or an integer, got true");
    let tuple = json!({ "anyOf": [
        { "type": "array", "prefixItems": [{ "type": "integer" }, { "$ref": "#" }], "minItems": 2, "maxItems": 2 },
        { "type": "null" },
    ]});
    cheap("tuple", &tuple, &number("[1,", "]"), "expected an array or null, got true");
}

#[test]
fn flattened_structs_cost_what_their_values_cost() {
    let flatten = json!({
        "$ref": "#/$defs/Outer",
        "$defs": {
            "Outer": {
                "type": "object",
                "properties": { "value": { "type": "integer" } },
                "allOf": [{
                    "type": "object",
                    "properties": { "next": { "anyOf": [{ "$ref": "#/$defs/Outer" }, { "type": "null" }] } },
                }],
                "required": ["value"],
                "unevaluatedProperties": false,
            },
        },
    });
    let text = nested(r#"{"value":1,"next":"#, "}", r#"{"value":true}"#);
    cheap("flatten", &flatten, &text, "expected an integer, got true");
    let tagged = json!({
        "$ref": "#/$defs/Outer",
        "$defs": {
            "Outer": {
                "type": "object",
                "properties": { "id": { "type": "integer" } },
                "required": ["id"],
                "oneOf": [
                    {
                        "type": "object",
                        "properties": { "kind": { "const": "one" }, "next": { "$ref": "#/$defs/Outer" } },
                        "required": ["kind", "next"],
                    },
                    { "type": "object", "properties": { "kind": { "const": "none" } }, "required": ["kind"] },
                ],
            },
        },
    });
    let text = nested(r#"{"id":1,"kind":"one","next":"#, "}", r#"{"id":1,"kind":"nome"}"#);
    cheap("flattened enum", &tagged, &text, r#"expected one of "one", "none", got "nome""#);
}

/// The schema of `And { left, right } | Or { left, right } | Not { left } | Is { value }` for a form of tags.
fn filter(form: impl Fn(&str, Value) -> Value) -> Value {
    let this = json!({ "$ref": "#/$defs/Filter" });
    let object = |names: &[&str], member: &Value| {
        let properties: serde_json::Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), member.clone())).collect();
        json!({ "type": "object", "properties": properties, "required": names })
    };
    json!({
        "$ref": "#/$defs/Filter",
        "$defs": { "Filter": { "oneOf": [
            form("And", object(&["left", "right"], &this)),
            form("Or", object(&["left", "right"], &this)),
            form("Not", object(&["left"], &this)),
            form("Is", object(&["value"], &json!({ "type": "string" }))),
        ]}},
    })
}

fn external(name: &str, content: Value) -> Value {
    json!({
        "type": "object", "properties": { name: content }, "required": [name], "additionalProperties": false,
    })
}

fn internal(name: &str, mut content: Value) -> Value {
    content["properties"]["type"] = json!({ "type": "string", "const": name });
    content["required"].as_array_mut().unwrap().push("type".into());
    content
}

fn adjacent(name: &str, content: Value) -> Value {
    json!({
        "type": "object",
        "properties": { "t": { "type": "string", "enum": [name] }, "c": content },
        "required": ["t", "c"],
    })
}

fn untagged(_: &str, content: Value) -> Value {
    content
}

/// Hardening, finding 1: a recursive enum and a value that is wrong at the bottom.
#[test]
fn tagged_enums_cost_what_their_values_cost() {
    let not_string = "expected a string, got 5";
    let text = nested(r#"{"Not":{"left":"#, "}}", r#"{"Is":{"value":5}}"#);
    cheap("external", &filter(external), &text, not_string);
    let text = nested(r#"{"type":"Not","left":"#, "}", r#"{"type":"Is","value":5}"#);
    cheap("internal", &filter(internal), &text, not_string);
    let text = nested(r#"{"t":"Not","c":{"left":"#, "}}", r#"{"t":"Is","c":{"value":5}}"#);
    cheap("adjacent", &filter(adjacent), &text, not_string);
}

/// Hardening, finding 1: the same, wide: both sides of every level are wrong.
#[test]
fn wide_enums_stay_within_the_bounds() {
    fn tree(depth: usize) -> Value {
        match depth {
            0 => json!({ "Is": { "value": 5 } }),
            _ => json!({ "Or": { "left": tree(depth - 1), "right": tree(depth - 1) } }),
        }
    }
    let report = within_bounds(&filter(external), &tree(9).to_string());
    assert!(report.is_cut());
    assert_eq!(report.violations().len(), 32);
}

/// Forms that cannot be distinguished are tried once each per value: no exponent, and a text in place of guesses.
#[test]
fn untagged_enums_stay_within_the_bounds() {
    let text = nested(r#"{"right":{"left":{"value":"x"}},"left":"#, "}", r#"{"value":5}"#);
    let report = within_bounds(&filter(untagged), &text);
    assert_eq!(report.violations().len(), 1, "{report}");
    assert!(!report.violations()[0].is_too_complex(), "{report}");
    let text = nested(r#"{"left":"#, "}", r#"{"value":5}"#);
    let report = within_bounds(&filter(untagged), &text);
    assert_eq!(report.violations()[0].message(), "expected a string, got 5", "{report}");
}

/// P-SCH-6: a schema that repeats itself, in place and below, is bounded too.
#[test]
fn schemas_that_repeat_themselves_stay_within_the_bounds() {
    let mut definitions = serde_json::Map::new();
    for index in 0..60 {
        let next = json!({ "$ref": format!("#/$defs/d{}", index + 1) });
        definitions.insert(format!("d{index}"), json!({ "allOf": [next.clone(), next] }));
    }
    definitions.insert("d60".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    assert_eq!(within_bounds(&schema, "5").to_string(), "- (the whole): expected a string, got 5");
    let circle = json!({ "allOf": [{ "$ref": "#" }, { "anyOf": [{ "$ref": "#" }] }], "type": "string" });
    assert_eq!(within_bounds(&circle, "5").to_string(), "- (the whole): expected a string, got 5");
    assert!(within_bounds(&circle, "\"x\"").is_empty());
    assert!(within_bounds(&json!({ "$ref": "#" }), "{}").is_empty());
}

/// A long chain of references, and a schema that is deeper than any message.
#[test]
fn deep_schemas_do_not_overflow_the_stack() {
    let mut definitions = serde_json::Map::new();
    for index in 0..5000 {
        let next = json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", index + 1) }] });
        definitions.insert(format!("d{index}"), next);
    }
    definitions.insert("d5000".to_owned(), json!(false));
    let schema = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
    let report = within_bounds(&schema, "5");
    assert_eq!(report.to_string(), "- (the whole): too complex to check");
}

#[test]
fn what_exceeds_the_budget_is_too_complex_to_check() {
    let schema = json!({ "items": { "type": "integer" } });
    let limits = CheckLimits::default().steps(20, 1);
    let schema = Schema::builder().limits(limits).compile(&schema).unwrap();
    let value = Value::from(vec![1; 1000]);
    assert!(!schema.is_valid(&value));
    let report = schema.check(&value);
    assert!(report.violations()[0].is_too_complex());
    assert_eq!(report.to_string(), "- (the whole): too complex to check");
    assert!(report.steps() <= schema.limits().steps_for(value.to_string().len()));
    assert!(schema.is_valid(&json!([1, 2, 3])));
}

/// A large value has no more steps than the limit in total, however many its length would allow.
#[test]
fn the_steps_of_a_large_value_are_limited_in_total() {
    let limits = CheckLimits::default();
    assert_eq!(limits.steps_for(4 << 20), 64 << 20);
    assert!(limits.steps_for(1024) < 64 << 20);
    let schema = json!({ "items": { "type": "integer" } });
    let schema = Schema::builder().limits(limits.max_steps(1000)).compile(&schema).unwrap();
    assert!(schema.is_valid(&Value::from(vec![1; 100])));
    let report = schema.check(&Value::from(vec![1; 10_000]));
    assert!(report.violations()[0].is_too_complex() && report.steps() <= 1000, "{report}");
}

/// Neither long lists nor long texts cost the square of their length.
#[test]
fn long_values_cost_their_length() {
    let numbers = Value::from((0..20_000).collect::<Vec<i32>>()).to_string();
    let unique = json!({ "uniqueItems": true, "items": { "type": "integer" } });
    assert!(within_bounds(&unique, &numbers).is_empty());
    let members = (0..20_000).map(|index| format!("\"m{index}\":1")).collect::<Vec<_>>().join(",");
    let open =
        json!({ "unevaluatedProperties": { "type": "integer" }, "propertyNames": { "pattern": "^m" } });
    assert!(within_bounds(&open, &format!("{{{members}}}")).is_empty());
    let text = format!("\"{}\"", "ä".repeat(200_000));
    let long = json!({ "minLength": 200_000, "maxLength": 200_000, "pattern": "^(ä+)+$" });
    assert!(within_bounds(&long, &text).is_empty());
}
