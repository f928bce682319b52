//! Schemas that cannot be used, and documents that are registered.

use duplexer_schema::Schema;
use serde_json::{Value, json};

#[test]
fn mistakes_in_a_schema_are_found_with_their_place() {
    let check = |schema: Value, expected: &str| {
        let error = Schema::compile(&schema).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    };
    check(
        json!({ "properties": { "a": { "type": "strin" } } }),
        r#"/properties/a/type: expected one of "array", "boolean", "integer", "null", "number", "object", "string", got "strin""#,
    );
    check(json!({ "minLength": -1 }), "/minLength: expected at least 0, got -1");
    check(json!({ "required": "a" }), r#"/required: expected an array, got "a""#);
    check(json!([]), "(the whole): expected an object or a boolean, got []");
    check(json!({ "$ref": "#/$defs/a" }), r##"(the whole): the reference "#/$defs/a" leads nowhere"##);
    check(
        json!({ "items": { "$ref": "#a" } }),
        r##"/items: the reference "#a" names an anchor that does not exist"##,
    );
    check(
        json!({ "items": { "pattern": "^(?=a)" } }),
        r#"/items: the pattern "^(?=a)" cannot be used: it looks ahead or behind, which takes unbounded time; write it without"#,
    );
    check(
        json!({ "$schema": "urn:x" }),
        r#"(the whole): the dialect "urn:x" is not known; use "https://json-schema.org/draft/2020-12/schema""#,
    );
}

/// TOOL-05, P-SCH-5: a schema is never fetched.
#[test]
fn other_documents_must_be_registered() {
    let schema = json!({ "items": { "$ref": "https://example.com/count.json" } });
    let error = Schema::compile(&schema).expect_err("it is not registered");
    assert_eq!(
        error.to_string(),
        "/items: the reference \"https://example.com/count.json\" leads to another document; documents are never \
         fetched, so write the schema into `$defs`"
    );
    let builder = Schema::builder().document("https://example.com/count.json", json!({ "type": "integer" }));
    let schema = builder.compile(&schema).unwrap();
    assert!(schema.is_valid(&json!([1])));
    assert!(!schema.is_valid(&json!(["a"])));
}

#[test]
fn the_metaschema_is_known() {
    let schema = json!({ "$ref": "https://json-schema.org/draft/2020-12/schema" });
    let schema = Schema::compile(&schema).unwrap();
    assert!(schema.is_valid(&json!({ "properties": { "a": { "type": "string" } } })));
    assert!(!schema.is_valid(&json!({ "properties": { "a": { "type": "text" } } })));
}

/// Compiled schemas are shared between the threads of a server.
#[test]
fn schemas_can_be_shared() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&Schema::compile(&json!(true)).unwrap());
}
