//! Recursive choices whose forms cannot be distinguished.

use duplexer_schema::Schema;
use serde_json::{Value, json};

fn ambiguity(forms: Value) -> Option<String> {
    let schema = json!({ "$ref": "#/$defs/Filter", "$defs": { "Filter": { "anyOf": forms } } });
    Schema::compile(&schema).unwrap().ambiguity().map(|ambiguity| ambiguity.to_string())
}

fn object(members: &Value) -> Value {
    let required: Vec<&String> = members.as_object().unwrap().keys().collect();
    json!({ "type": "object", "properties": members, "required": required })
}

#[test]
fn recursive_forms_with_the_same_members_are_ambiguous() {
    let this = json!({ "$ref": "#/$defs/Filter" });
    let pair = object(&json!({ "left": this, "right": this }));
    let text = ambiguity(json!([pair, { "type": "string" }, pair])).unwrap();
    assert_eq!(
        text,
        "/$defs/Filter: forms 1 and 3 have the same members (`left`, `right`), and the choice contains itself: \
         nothing distinguishes the forms; give the enum a tag, such as #[serde(tag = \"type\")]"
    );
}

#[test]
fn forms_that_differ_are_not_ambiguous() {
    let this = json!({ "$ref": "#/$defs/Filter" });
    let check = |forms: Value| assert_eq!(ambiguity(forms.clone()), None, "{forms}");
    let tagged = |tag: &str| object(&json!({ "type": { "const": tag }, "left": this, "right": this }));
    check(json!([tagged("and"), tagged("or")]));
    let external = |tag: &str| object(&json!({ tag: object(&json!({ "left": this, "right": this })) }));
    check(json!([external("and"), external("or")]));
    // Not recursive: a wrong guess costs nothing.
    let flat = object(&json!({ "left": true }));
    check(json!([flat, flat]));
    // Other members, or members of other types.
    check(json!([object(&json!({ "left": this })), object(&json!({ "right": this }))]));
    let typed = |kind: &str| object(&json!({ "value": { "type": kind }, "next": this }));
    check(json!([typed("string"), typed("integer")]));
    check(json!([object(&json!({ "next": this })), { "type": "null" }]));
}
