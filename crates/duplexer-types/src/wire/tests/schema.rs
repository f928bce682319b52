//! The schema of each revision: the official one if there is one, else derived by the matrix.
//!
//! Objects are closed, so that a member that a revision does not have is a fault.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex};

use duplexer_schema::Schema;
use serde_json::{Value, json};

use super::matrix::{self, Gone};
use crate::version::ProtocolVersion as V;

/// Returns the official schema of a revision, as published.
pub(crate) fn official(version: V) -> Value {
    let text = match version {
        V::V2026_07_28 => include_str!("../../../tests/schema/2026-07-28.json"),
        _ => include_str!("../../../tests/schema/2025-11-25.json"),
    };
    serde_json::from_str(text).expect("a schema")
}

static SCHEMAS: LazyLock<HashMap<V, Value>> =
    LazyLock::new(|| V::ALL.iter().map(|version| (*version, definitions(*version))).collect());

fn definitions(version: V) -> Value {
    let mut defs = official(version)["$defs"].take();
    correct(&mut defs, version);
    for (name, def) in defs.as_object_mut().expect("definitions") {
        // `_meta` is an open object.
        if !name.ends_with("MetaObject") && !name.ends_with("Meta") {
            close(def);
        }
    }
    for row in matrix::ROWS.iter().filter(|row| version < row.since) {
        row.remove(&mut defs);
    }
    defs
}

/// Corrects faults of the generator that made the schemas from the specification's TypeScript, which is normative:
/// `number` became `integer` in places, and `null` is missing from JSON. Also adds the tasks extension, and the handshake
/// form of extensions, which the open capability objects of 2025-11-25 allow.
fn correct(defs: &mut Value, version: V) {
    let answers =
        &mut defs["ElicitResult"]["properties"]["content"]["additionalProperties"]["anyOf"][1]["type"];
    assert_eq!(answers[1].take(), "integer");
    answers[1] = "number".into();
    if version == V::V2026_07_28 {
        defs["JSONValue"] = json!(true);
        defs["SubscriptionFilter"]["properties"]["taskIds"] =
            json!({"type": "array", "items": {"type": "string"}});
    } else {
        for capabilities in ["ClientCapabilities", "ServerCapabilities"] {
            defs[capabilities]["properties"]["extensions"] =
                json!({"type": "object", "additionalProperties": {"type": "object"}});
        }
        for bound in ["minimum", "maximum", "default"] {
            let kind = &mut defs["NumberSchema"]["properties"][bound]["type"];
            assert_eq!(kind.take(), "integer");
            *kind = "number".into();
        }
    }
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            let is_object =
                members.get("properties").is_some_and(Value::is_object) && members.contains_key("type");
            if is_object && !members.contains_key("additionalProperties") {
                members.insert("additionalProperties".into(), false.into());
            }
            // Schemas of tools are open; a part of a conjunction cannot be closed.
            let is_closed = |name: &str| !name.ends_with("putSchema") && name != "allOf";
            members.iter_mut().filter(|(name, _)| is_closed(name)).for_each(|(_, value)| close(value));
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        _ => {}
    }
}

impl matrix::Row {
    fn remove(&self, defs: &mut Value) {
        let place = defs.pointer_mut(self.place).unwrap_or_else(|| panic!("{}", self.place));
        match self.gone {
            Gone::Member(name) => {
                let removed = place["properties"].as_object_mut().expect("an object").remove(name);
                assert!(removed.is_some(), "{} {name}", self.place);
            }
            Gone::Kind(name) => {
                let kinds = place["anyOf"].as_array_mut().expect("alternatives");
                let before = kinds.len();
                kinds.retain(|kind| kind["$ref"] != format!("#/$defs/{name}") && kind["type"] != name);
                assert_eq!(kinds.len() + 1, before, "{} {name}", self.place);
            }
        }
    }
}

type Compiled = HashMap<(V, &'static str), Option<Arc<Schema>>>;

/// Returns the validator of a definition, if the revision has it.
pub(crate) fn validator(version: V, name: &'static str) -> Option<Arc<Schema>> {
    static COMPILED: LazyLock<Mutex<Compiled>> = LazyLock::new(Mutex::default);
    let compile = || {
        let defs = &SCHEMAS[&version];
        defs.get(name)?;
        let schema = json!({"$ref": format!("#/$defs/{name}"), "$defs": defs});
        Some(Arc::new(Schema::compile(&schema).expect("a schema")))
    };
    COMPILED.lock().expect("no panic").entry((version, name)).or_insert_with(compile).clone()
}

/// Returns the faults of `value` against the definition `name` of the revision.
pub(crate) fn faults(version: V, name: &'static str, value: &Value) -> Vec<String> {
    validator(version, name).map_or_else(Vec::new, |validator| {
        validator.check(value).violations().iter().map(ToString::to_string).collect()
    })
}

/// The schemas reject invalid values: otherwise the tests that use them could not fail.
#[test]
fn schemas_refuse_what_a_revision_does_not_have() {
    let check = |version, name, value: Value, good: bool| {
        assert_eq!(faults(version, name, &value).is_empty(), good, "{version} {name} {value}");
    };
    let tool = |member: &str, value: Value| {
        let mut tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        tool[member] = value;
        tool
    };
    check(V::V2024_11_05, "Tool", tool("title", "T".into()), false);
    check(V::V2025_06_18, "Tool", tool("title", "T".into()), true);
    check(V::V2025_06_18, "Tool", tool("icons", json!([])), false);
    check(V::V2025_11_25, "Tool", tool("icons", json!([])), true);
    check(V::V2025_11_25, "Tool", tool("execution", json!({})), true);
    check(V::V2026_07_28, "Tool", tool("execution", json!({})), false);
    check(V::V2026_07_28, "Tool", tool("description", Value::Null), false);
    check(V::V2025_11_25, "Tool", tool("outputSchema", json!({"type": "array"})), false);
    check(V::V2026_07_28, "Tool", tool("outputSchema", json!({"type": "array"})), true);
    let audio = json!({"type": "audio", "data": "", "mimeType": "audio/wav"});
    check(V::V2024_11_05, "ContentBlock", audio.clone(), false);
    check(V::V2025_03_26, "ContentBlock", audio, true);
    check(V::V2026_07_28, "CallToolResult", json!({"content": []}), false);
    check(V::V2025_11_25, "CallToolResult", json!({"content": []}), true);
    check(V::V2025_11_25, "CallToolResult", json!({"content": [], "resultType": "complete"}), false);
}
