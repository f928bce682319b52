//! Random schemas and random values: no panic, no cost beyond the limits, and one answer.

use duplexer_schema::{CheckLimits, Schema};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Few names and small numbers, so that schemas and values meet.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "type"]).prop_map(str::to_owned)
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        name().prop_map(Value::from),
        "\\PC{0,5}".prop_map(Value::from),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 64, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn leaf() -> impl Strategy<Value = Value> {
    let types = vec!["object", "array", "string", "integer", "number", "boolean", "null"];
    let small = 0_u8..4;
    prop_oneof![
        any::<bool>().prop_map(Value::from),
        prop::sample::select(types).prop_map(|name| json!({ "type": name })),
        scalar().prop_map(|value| json!({ "const": value })),
        prop::collection::vec(scalar(), 1..4).prop_map(|values| json!({ "enum": values })),
        (small.clone(), small.clone())
            .prop_map(|(min, max)| json!({ "minimum": min, "exclusiveMaximum": max })),
        (1_u8..4).prop_map(|divisor| json!({ "multipleOf": f64::from(divisor) / 10.0 })),
        (small.clone(), small.clone()).prop_map(|(min, max)| json!({ "minLength": min, "maxLength": max })),
        (small.clone(), small).prop_map(|(min, max)| json!({ "minItems": min, "maxProperties": max })),
        prop::collection::btree_set(name(), 0..3).prop_map(|names| json!({ "required": names })),
        Just(json!({ "uniqueItems": true })),
        Just(json!({ "pattern": "^[a-c]" })),
        Just(json!({ "dependentRequired": { "a": ["b"] } })),
        Just(json!({ "$ref": "#" })),
        Just(json!({ "$ref": "#/$defs/node" })),
        Just(json!({ "$dynamicRef": "#node" })),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    let node = leaf().prop_recursive(5, 48, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let keyword = |names: Vec<&'static str>| prop::sample::select(names);
        let one = vec![
            "not",
            "items",
            "contains",
            "additionalProperties",
            "propertyNames",
            "unevaluatedProperties",
            "unevaluatedItems",
            "if",
        ];
        let single = (keyword(one), inner.clone()).prop_map(|(keyword, schema)| json!({ keyword: schema }));
        let several = (keyword(vec!["allOf", "anyOf", "oneOf", "prefixItems"]), list)
            .prop_map(|(keyword, schemas)| json!({ keyword: schemas }));
        let named = (
            keyword(vec!["properties", "patternProperties", "dependentSchemas"]),
            prop::collection::btree_map(name(), inner.clone(), 1..4),
        )
            .prop_map(|(keyword, schemas)| json!({ keyword: schemas }));
        let condition = (inner.clone(), inner.clone(), inner)
            .prop_map(|(test, then, otherwise)| json!({ "if": test, "then": then, "else": otherwise }));
        let part = prop_oneof![single, several, named, condition];
        // Keywords of one schema influence each other.
        prop::collection::vec(part, 1..4).prop_map(|parts| {
            let members = parts.into_iter().filter_map(|part| part.as_object().cloned()).flatten();
            Value::Object(members.collect())
        })
    });
    (node.clone(), node).prop_map(|(root, definition)| {
        let anchored = json!({ "$dynamicAnchor": "node", "allOf": [definition] });
        json!({ "allOf": [root], "$defs": { "node": anchored } })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checks_agree_and_stay_within_their_limits(schema in schema(), value in value()) {
        for limits in [CheckLimits::default(), CheckLimits::default().steps(50, 1).violations(3)] {
            let compiled = Schema::builder().limits(limits).compile(&schema);
            let compiled = compiled.unwrap_or_else(|error| panic!("{error} in {schema}"));
            let report = compiled.check(&value);
            prop_assert_eq!(report.is_empty(), compiled.is_valid(&value));
            let bytes = value.to_string().len();
            prop_assert!(report.steps() <= limits.steps_for(bytes));
            prop_assert!(report.verdicts() <= 4 * bytes + 4096);
            prop_assert!(report.violations().len() <= 33);
            let _ = (compiled.ambiguity(), report.to_string());
            for violation in report.violations() {
                let parent = violation.pointer().rsplit_once('/').map_or("", |(parent, _)| parent);
                prop_assert!(value.pointer(parent).is_some(), "{} leads nowhere", violation.pointer());
            }
        }
    }

    #[test]
    fn any_value_as_a_schema_is_refused_or_used(schema in value(), value in value()) {
        if let Ok(schema) = Schema::compile(&schema) {
            prop_assert_eq!(schema.check(&value).is_empty(), schema.is_valid(&value));
        }
    }

    #[test]
    fn any_text_as_a_pattern_is_refused_or_used(pattern in "\\PC{0,12}", value in "\\PC{0,12}") {
        if let Ok(schema) = Schema::compile(&json!({ "pattern": pattern })) {
            let _ = schema.is_valid(&json!(value));
        }
    }
}
