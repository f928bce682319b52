//! The words for what is wrong: a model reads them and corrects itself.

use duplexer_schema::{CheckLimits, Schema};
use serde_json::{Value, json};

fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::compile(schema).unwrap_or_else(|error| panic!("{error}"));
    let report = schema.check(value);
    assert_eq!(report.is_empty(), schema.is_valid(value));
    report.violations().iter().map(ToString::to_string).collect()
}

fn check(schema: Value, value: Value, expected: &[&str]) {
    assert_eq!(faults(&schema, &value), expected, "{value} against {schema}");
}

/// TOOL-01, peers B6: every fault, with its place, what was expected and what was there.
#[test]
fn every_fault_is_listed_with_its_place() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "integer" },
            "b": { "type": "string", "maxLength": 3 },
            "c": { "enum": ["x", "y"] },
            "d/e": { "items": { "type": "number", "minimum": 1 } },
        },
        "required": ["a", "z"],
        "additionalProperties": false,
    });
    check(
        schema,
        json!({"a": "five", "b": "long", "c": "z", "d/e": [2, 0], "extra": 1}),
        &[
            "/z: required, but missing",
            r#"/a: expected an integer, got "five""#,
            r#"/b: expected at most 3 characters, got "long""#,
            r#"/c: expected one of "x", "y", got "z""#,
            "/d~1e/1: expected at least 1, got 0",
            "/extra: there is no such member; leave it out",
        ],
    );
}

#[test]
fn every_keyword_has_words() {
    let whole = |schema: Value, value: Value, expected: &str| {
        check(schema, value, &[&format!("(the whole): {expected}")]);
    };
    whole(json!(false), json!(1), "expected nothing here, got 1");
    whole(json!({"type": ["string", "null"]}), json!(1.5), "expected a string or null, got 1.5");
    whole(json!({"type": ["integer", "string"]}), json!(1.5), "expected a string or an integer, got 1.5");
    whole(json!({"const": {"a": 1}}), json!({}), r#"expected {"a":1}, got {}"#);
    whole(json!({"maximum": 2.5}), json!(3), "expected at most 2.5, got 3");
    whole(json!({"exclusiveMinimum": 0}), json!(0), "expected more than 0, got 0");
    whole(json!({"exclusiveMaximum": 0}), json!(0), "expected less than 0, got 0");
    whole(json!({"multipleOf": 0.1}), json!(0.25), "expected a multiple of 0.1, got 0.25");
    whole(json!({"minLength": 1}), json!(""), r#"expected at least 1 character, got """#);
    whole(json!({"minItems": 2}), json!([1]), "expected at least 2 items, got [1]");
    whole(json!({"maxProperties": 0}), json!({"a": 1}), r#"expected at most 0 members, got {"a":1}"#);
    whole(json!({"pattern": "^a"}), json!("b"), r#"expected text that matches ^a, got "b""#);
    whole(
        json!({"uniqueItems": true}),
        json!([1, 1.0]),
        "expected items that differ from each other, got [1,1.0]",
    );
    whole(
        json!({"prefixItems": [true], "items": false}),
        json!([1, 2]),
        "expected no more than 1 item, got [1,2]",
    );
    whole(json!({"not": {"type": "null"}}), json!(null), "expected anything but null, got null");
    whole(json!({"contains": {"const": 1}}), json!([2]), "expected at least 1 item that is 1, got [2]");
    whole(
        json!({"contains": {"type": "string"}, "minContains": 0, "maxContains": 1}),
        json!(["a", "b"]),
        r#"expected at most 1 item that is a string, got ["a","b"]"#,
    );
    check(
        json!({"propertyNames": {"maxLength": 1}}),
        json!({"ab": 1}),
        &[r#"/ab: expected a name of the member that is at most 1 character, got "ab""#],
    );
    check(json!({"dependentRequired": {"a": ["b"]}}), json!({"a": 1}), &["/b: required, but missing"]);
    check(
        json!({"properties": {"a": false}}),
        json!({"a": 1}),
        &["/a: there is no such member; leave it out"],
    );
    check(
        json!({"prefixItems": [true], "unevaluatedItems": false}),
        json!([1, 2]),
        &["/1: there is no such item; leave it out"],
    );
    check(
        json!({"if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}}),
        json!({"a": 1}),
        &["/b: required, but missing"],
    );
}

#[test]
fn of_a_choice_only_the_form_that_was_meant_is_explained() {
    let shape = json!({ "oneOf": [
        {
            "type": "object",
            "properties": { "kind": { "const": "circle" }, "radius": { "type": "number" } },
            "required": ["kind", "radius"],
        },
        {
            "type": "object",
            "properties": { "kind": { "const": "square" }, "side": { "type": "number" } },
            "required": ["kind", "side"],
        },
    ]});
    check(shape.clone(), json!({"kind": "circle", "side": 1}), &["/radius: required, but missing"]);
    check(shape.clone(), json!({"side": 1}), &[r#"/kind: expected one of "circle", "square", got nothing"#]);
    check(
        shape.clone(),
        json!({"kind": "oval"}),
        &[r#"/kind: expected one of "circle", "square", got "oval""#],
    );
    check(
        shape,
        json!("circle"),
        &[
            r#"(the whole): expected an object with "kind": "circle", "radius" or an object with "kind": "square", "side", got "circle""#,
        ],
    );
    let external = json!({ "oneOf": [
        { "const": "Nothing" },
        { "const": "Everything" },
        { "type": "object", "properties": { "Some": { "type": "integer" } }, "required": ["Some"] },
        { "type": "object", "properties": { "Many": { "type": "array" } }, "required": ["Many"] },
    ]});
    check(external.clone(), json!({"Some": "a"}), &[r#"/Some: expected an integer, got "a""#]);
    check(
        external.clone(),
        json!({"Sum": 1}),
        &[r#"(the whole): expected an object with one of "Many", "Some", got {"Sum":1}"#],
    );
    check(
        external.clone(),
        json!("Some"),
        &[r#"(the whole): expected one of "Nothing", "Everything", got "Some""#],
    );
    check(
        external,
        json!(1),
        &[
            r#"(the whole): expected one of "Nothing", "Everything" or an object with "Some" or an object with "Many", got 1"#,
        ],
    );
}

#[test]
fn without_a_tag_the_nearest_form_is_explained() {
    let untagged = json!({ "anyOf": [
        { "type": "object", "properties": { "a": {}, "b": {} }, "required": ["a", "b"] },
        { "type": "object", "properties": { "c": {}, "d": { "type": "integer" } }, "required": ["c", "d"] },
    ]});
    check(untagged.clone(), json!({"a": 1}), &["/b: required, but missing"]);
    check(untagged.clone(), json!({"c": 1, "d": "x"}), &[r#"/d: expected an integer, got "x""#]);
    check(
        untagged,
        json!({}),
        &[r#"(the whole): expected an object with "a", "b" or an object with "c", "d", got {}"#],
    );
    check(
        json!({"oneOf": [{"type": "integer"}, {"minimum": 2}]}),
        json!(3),
        &["(the whole): expected exactly one of the allowed forms, got 3"],
    );
    check(
        json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        json!(3),
        &["(the whole): expected a string or null, got 3"],
    );
}

#[test]
fn members_of_a_form_that_fails_are_not_called_unknown() {
    let schema = json!({
        "type": "object",
        "allOf": [{ "properties": { "from": { "type": "string" } } }],
        "unevaluatedProperties": false,
    });
    check(schema.clone(), json!({"from": 1}), &["/from: expected a string, got 1"]);
    check(schema, json!({"from": "a", "x": 1}), &["/x: there is no such member; leave it out"]);
}

#[test]
fn long_values_and_long_lists_are_cut() {
    let schema = json!({"items": {"type": "string"}});
    let value = Value::from((0..100).collect::<Vec<i32>>());
    let report = Schema::compile(&schema).unwrap().check(&value);
    assert_eq!((report.violations().len(), report.is_cut()), (32, true));
    assert!(report.to_string().ends_with("\n- and more"));
    let few = Schema::builder().limits(CheckLimits::default().violations(2)).compile(&schema).unwrap();
    assert_eq!(few.check(&value).violations().len(), 2);
    assert!(!few.check(&json!([1, 2])).is_cut(), "nothing was left out");
    let long = faults(&json!({"type": "integer"}), &json!("x".repeat(10_000)));
    assert!(long[0].len() < 200);
}

#[test]
fn the_parts_of_a_violation_can_be_read() {
    let report = Schema::compile(&json!({"maximum": 5})).unwrap().check(&json!(6));
    let violation = &report.violations()[0];
    assert_eq!((violation.pointer(), violation.expected(), violation.found()), ("", "at most 5", "6"));
    assert_eq!(violation.message(), "expected at most 5, got 6");
}
