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
    // Other members, or other types.
    check(json!([object(&json!({ "left": this })), object(&json!({ "right": this }))]));
    check(json!([object(&json!({ "next": this })), { "type": "null" }]));
    let list = json!({ "type": "array", "items": this });
    let map = json!({ "type": "object", "additionalProperties": this });
    check(json!([list, map, { "type": "string" }]));
    // Only one of the forms contains the choice in the member.
    let leaf = object(&json!({ "next": { "type": "string" }, "more": true }));
    check(json!([object(&json!({ "next": this })), leaf]));
}

/// serde tries the forms of an untagged enum one after the other, so that each level doubles the time.
#[test]
fn forms_that_contain_the_choice_in_the_same_place_are_ambiguous() {
    let this = json!({ "$ref": "#/$defs/Filter" });
    let check = |forms: Value, place: &str| {
        let text = ambiguity(forms.clone()).unwrap_or_else(|| panic!("not ambiguous: {forms}"));
        let start = format!("/$defs/Filter: forms 1 and 2 both contain the choice in {place}: ");
        assert!(text.starts_with(&start), "{text}");
    };
    let pair = object(&json!({ "left": this, "right": this }));
    check(json!([pair, object(&json!({ "left": this, "note": true }))]), "`left`");
    let typed = |kind: &str| object(&json!({ "value": { "type": kind }, "next": this }));
    check(json!([typed("string"), typed("integer")]), "`next`");
    let optional = |name: &str| json!({ "type": "object", "properties": { name: true, "next": this }, "required": [name] });
    check(json!([optional("a"), optional("b")]), "`next`");
    let list = json!({ "type": "array", "items": this });
    let tuple = json!({ "type": "array", "prefixItems": [this, this] });
    check(json!([list, tuple]), "their items or other members");
    let map = json!({ "type": "object", "additionalProperties": this });
    check(json!([map, pair]), "`left`, `right`");
}
