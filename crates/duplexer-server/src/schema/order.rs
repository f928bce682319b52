//! Keeps the order in which types declare their members. JSON Schema and the maps of `serde_json` do not, but readers
//! expect it.
//!
//! A schema in progress marks each object with the order of its members. The mark is a keyword that no schema has; it
//! moves with the object through normalization, decides the order of the rendered text, and is removed at the end.

use duplexer_types::json::Json;
use serde_json::{Map, Value};

use super::normalize::{walk, walk_beside};

/// Holds the names of all members in order.
const MARK: &str = "\u{0}order";
/// Keywords that come first.
const FIRST: [&str; 3] = ["type", "title", "description"];

/// Marks every object with the order of its members, as far as it is known: first that of `required` under both
/// contracts, then by name those that neither contract requires (skipped if empty, and optional).
///
/// `other` is the schema of the same type under the other contract. An optional member is required there, because it
/// is always written, unless the author says otherwise.
pub(super) fn mark(schema: &mut Value, other: &Value) {
    walk_beside(schema, other, &mut |schema, other| {
        let Some(Value::Object(members)) = schema.get("properties") else { return };
        let is_member = |name: &&str| members.contains_key(*name);
        let required = |list: Option<&Value>| -> Vec<String> {
            let names = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            names.filter(is_member).map(str::to_owned).collect()
        };
        let mut order = required(schema.get("required"));
        let others = required(other.get("required"));
        // The longer list says more about the places of the others.
        if others.len() > order.len() {
            let own = std::mem::replace(&mut order, others);
            merge(&mut order, own);
        } else {
            merge(&mut order, others);
        }
        set(schema, order);
    });
}

/// Sets the order of the members of the outermost object, as far as `fields` has them.
pub(super) fn declare(schema: &mut Value, fields: &[&str]) {
    let Value::Object(schema) = schema else { return };
    let mut order: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
    if let Some(Value::Array(known)) = schema.remove(MARK) {
        merge(&mut order, known.iter().filter_map(Value::as_str).map(str::to_owned));
    }
    set(schema, order);
}

/// Inserts what `order` lacks, each name behind the one before it.
fn merge(order: &mut Vec<String>, names: impl IntoIterator<Item = String>) {
    let mut at = 0;
    for name in names {
        if let Some(found) = order.iter().position(|known| *known == name) {
            at = found + 1;
        } else {
            order.insert(at, name);
            at += 1;
        }
    }
}

fn set(schema: &mut Map<String, Value>, order: Vec<String>) {
    if order.len() > 1 {
        schema.insert(MARK.to_owned(), order.into());
    }
}

/// Removes all marks.
pub(super) fn strip(schema: &mut Value) {
    walk(schema, &mut |schema| {
        schema.remove(MARK);
    });
}

/// Renders a schema as text: `type`, `title` and `description` first, members in their order, without marks.
pub(super) fn render(schema: &Value) -> Json {
    Json::encode(&Ordered(schema)).unwrap_or_else(|_| Json::object())
}

struct Ordered<'a>(&'a Value);

impl serde::Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let Value::Object(root) = self.0 else { return self.0.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for keyword in FIRST {
            root.get(keyword).map_or(Ok(()), |value| map.serialize_entry(keyword, value))?;
        }
        match root.get("properties") {
            Some(Value::Object(schemas)) => {
                let order = root.get(MARK).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                map.serialize_entry("properties", &Properties { schemas, order })?;
            }
            Some(other) => map.serialize_entry("properties", other)?,
            None => {}
        }
        for (keyword, value) in root {
            if keyword != "properties" && keyword != MARK && !FIRST.contains(&keyword.as_str()) {
                map.serialize_entry(keyword, &Keyword { keyword, value })?;
            }
        }
        map.end()
    }
}

/// The value of a keyword. Schemas in it are ordered too; plain values stay verbatim.
struct Keyword<'a> {
    keyword: &'a str,
    value: &'a Value,
}

impl serde::Serialize for Keyword<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use super::normalize::{NAMED, ONE, SEVERAL};
        match self.value {
            schema if ONE.contains(&self.keyword) => Ordered(schema).serialize(serializer),
            Value::Array(schemas) if SEVERAL.contains(&self.keyword) => {
                serializer.collect_seq(schemas.iter().map(Ordered))
            }
            Value::Object(schemas) if NAMED.contains(&self.keyword) => {
                serializer.collect_map(schemas.iter().map(|(name, schema)| (name, Ordered(schema))))
            }
            value => value.serialize(serializer),
        }
    }
}

struct Properties<'a> {
    schemas: &'a Map<String, Value>,
    order: &'a [Value],
}

impl serde::Serialize for Properties<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let position = |name: &str| self.order.iter().position(|known| known == name).unwrap_or(usize::MAX);
        let mut ordered: Vec<_> = self.schemas.iter().collect();
        ordered.sort_by_key(|(name, _)| position(name));
        serializer.collect_map(ordered.into_iter().map(|(name, schema)| (name, Ordered(schema))))
    }
}
