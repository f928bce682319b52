//! The schemas that `#[derive(JsonSchema)]` makes of recursive types, with values that are wrong at the bottom.

#![allow(dead_code, reason = "the types are only described")]

use std::collections::HashMap;

use duplexer_schema::Schema;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;

use crate::bounds::{cheap, nested};

fn check<T: JsonSchema>(text: &str, message: &str) {
    let schema = schema_for!(T).to_value();
    assert_eq!(Schema::compile(&schema).unwrap().ambiguity(), None, "{schema}");
    cheap(&T::schema_name(), &schema, text, message);
}

#[derive(Deserialize, JsonSchema)]
struct Struct {
    value: i32,
    next: Option<Box<Struct>>,
    list: Option<Vec<Struct>>,
    map: Option<HashMap<String, Struct>>,
    pair: Option<(i32, Box<Struct>)>,
}

#[test]
fn structs_are_cheap() {
    for open in
        [r#"{"value":1,"next":"#, r#"{"value":1,"next":null,"list":null,"map":null,"pair":null,"next":"#]
    {
        check::<Struct>(&nested(open, "}", r#"{"value":true}"#), "expected an integer, got true");
    }
    let bottom = r#"{"value":true}"#;
    check::<Struct>(&nested(r#"{"value":1,"list":["#, "]}", bottom), "expected an integer, got true");
    check::<Struct>(&nested(r#"{"value":1,"map":{"k":"#, "}}", bottom), "expected an integer, got true");
    check::<Struct>(&nested(r#"{"value":1,"pair":[1,"#, "]}", bottom), "expected an integer, got true");
}

#[derive(Deserialize, JsonSchema)]
struct Leaf {
    value: String,
}

#[derive(Deserialize, JsonSchema)]
struct Pair<T> {
    left: Box<T>,
    right: Option<Box<T>>,
}

#[derive(Deserialize, JsonSchema)]
enum External {
    And { left: Box<External>, right: Box<External> },
    Or(Pair<External>),
    Not(Box<External>),
    All(Vec<External>),
    Is(Leaf),
    Nothing,
    Everything,
}

#[test]
fn external_tags_are_cheap() {
    let wrong = "expected a string, got 5";
    let bottom = r#"{"Is":{"value":5}}"#;
    check::<External>(&nested(r#"{"Not":"#, "}", bottom), wrong);
    check::<External>(&nested(r#"{"All":["Nothing","#, "]}", bottom), wrong);
    check::<External>(&nested(r#"{"And":{"right":"Nothing","left":"#, "}}", bottom), wrong);
    check::<External>(&nested(r#"{"Or":{"left":"#, "}}", bottom), wrong);
    let unknown = r#"expected one of "Nothing", "Everything", got "Some""#;
    check::<External>(&nested(r#"{"Not":"#, "}", r#""Some""#), unknown);
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Internal {
    And { left: Box<Internal>, right: Box<Internal> },
    Or(Pair<Internal>),
    Not { left: Box<Internal> },
    Is(Leaf),
    Nothing,
}

#[test]
fn internal_tags_are_cheap() {
    let wrong = "expected a string, got 5";
    let bottom = r#"{"type":"Is","value":5}"#;
    check::<Internal>(&nested(r#"{"type":"Not","left":"#, "}", bottom), wrong);
    check::<Internal>(&nested(r#"{"type":"Or","right":null,"left":"#, "}", bottom), wrong);
    check::<Internal>(&nested(r#"{"type":"And","right":{"type":"Nothing"},"left":"#, "}", bottom), wrong);
    let unknown = r#"expected one of "And", "Or", "Not", "Is", "Nothing", got "Some""#;
    check::<Internal>(&nested(r#"{"type":"Not","left":"#, "}", r#"{"type":"Some"}"#), unknown);
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    And { left: Box<Adjacent>, right: Box<Adjacent> },
    Or(Pair<Adjacent>),
    Not(Box<Adjacent>),
    Is(Leaf),
    Nothing,
}

#[test]
fn adjacent_tags_are_cheap() {
    let wrong = "expected a string, got 5";
    let bottom = r#"{"t":"Is","c":{"value":5}}"#;
    check::<Adjacent>(&nested(r#"{"t":"Not","c":"#, "}", bottom), wrong);
    check::<Adjacent>(&nested(r#"{"t":"Or","c":{"left":"#, "}}", bottom), wrong);
    check::<Adjacent>(&nested(r#"{"t":"And","c":{"right":{"t":"Nothing"},"left":"#, "}}", bottom), wrong);
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Flat {
    id: i32,
    #[serde(flatten)]
    links: Links,
    #[serde(flatten)]
    form: FlatForm,
}

#[derive(Deserialize, JsonSchema)]
struct Links {
    next: Option<Box<Flat>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "form")]
enum FlatForm {
    Round { radius: f64 },
    Square { side: f64 },
}

#[test]
fn flattened_types_are_cheap() {
    let open = r#"{"id":1,"form":"Round","radius":1,"next":"#;
    let wrong = "expected a number, got true";
    check::<Flat>(&nested(open, "}", r#"{"id":1,"form":"Square","side":true}"#), wrong);
    let unknown = r#"expected one of "Round", "Square", got "Oval""#;
    check::<Flat>(&nested(open, "}", r#"{"id":1,"form":"Oval"}"#), unknown);
    let extra = "there is no such member; leave it out";
    check::<Flat>(&nested(open, "}", r#"{"id":1,"form":"Square","side":1,"x":1}"#), extra);
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    And { left: Box<Untagged>, right: Box<Untagged> },
    Or { left: Box<Untagged>, right: Box<Untagged> },
    Is { value: String },
}

#[test]
fn untagged_forms_with_the_same_members_are_ambiguous() {
    let schema = Schema::compile(&schema_for!(Untagged).to_value()).unwrap();
    assert_eq!(schema.ambiguity().unwrap().members(), ["left", "right"]);
}
