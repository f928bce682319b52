//! JSON Schemas of arguments and results, made from types.
//!
//! The dialect is 2020-12. What some clients cannot read is written in a way that all can: references only where a type
//! contains itself, no `$schema`, no formats that JSON Schema does not define, optional members that are simply not
//! required, and choices as one `enum`.

mod fields;
mod normalize;
pub(crate) mod validate;

use duplexer_types::json::Json;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use fields::declared_order;

/// A schema made from a type.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) value: Value,
    /// Whether the schema demands something that reading a value into the type does not check, such as a range.
    pub(crate) demands_more: bool,
}

/// The schema of what a client may send as a `T`.
pub(crate) fn of_input<T: JsonSchema + ?Sized>() -> Generated {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    normalize::input(generate::<T>(settings))
}

/// The schema of what a `T` is written as.
pub(crate) fn of_output<T: JsonSchema + ?Sized>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    normalize::output(generate::<T>(settings))
}

fn generate<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    // The name of a Rust type tells a model nothing; a title that its author gave stays.
    if schema.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        schema.as_object_mut().map(|root| root.remove("title"));
    }
    schema
}

/// The input schema of a tool whose arguments are a `T`: an object, or the reason why it is none.
pub(crate) fn of_arguments<T: JsonSchema + DeserializeOwned>() -> Result<Generated, String> {
    let mut generated = of_input::<T>();
    let Value::Object(root) = &mut generated.value else {
        generated.value = Value::Object(empty_object());
        return Ok(generated);
    };
    match root.get("type").and_then(Value::as_str) {
        Some("object") => {}
        // The forms of an enum: each must be an object for the whole to be one.
        None if forms(root).is_some_and(|forms| forms.iter().all(is_object)) => {
            root.insert("type".into(), "object".into());
        }
        // No arguments at all.
        Some("null") => *root = empty_object(),
        _ => return Err(format!("its arguments are not an object but {}", generated.value)),
    }
    // The description of the type is the description of nothing that a client shows.
    if let Value::Object(root) = &mut generated.value {
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    Ok(generated)
}

fn empty_object() -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), Value::from("object"))])
}

fn forms(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["oneOf", "anyOf"].iter().find_map(|keyword| schema.get(*keyword)?.as_array())
}

pub(crate) fn is_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// The schema of `{"result": ..}` around what `schema` describes. References keep their targets.
pub(crate) fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let definitions = inner.as_object_mut().and_then(|inner| inner.remove("$defs"));
    normalize::redirect_root(&mut inner, "#/properties/result");
    let mut outer = serde_json::json!({
        "type": "object",
        "properties": { "result": inner },
        "required": ["result"],
    });
    if let (Some(mut definitions), Some(outer)) = (definitions, outer.as_object_mut()) {
        normalize::redirect_root(&mut definitions, "#/properties/result");
        outer.insert("$defs".into(), definitions);
    }
    outer
}

/// The schema as text: what people look for first comes first, and properties stand in the order `fields` gives.
pub(crate) fn render(schema: &Value, fields: &[&str]) -> Json {
    Json::encode(&Ordered { schema, fields }).unwrap_or_else(|_| Json::object())
}

struct Ordered<'a> {
    schema: &'a Value,
    fields: &'a [&'a str],
}

impl serde::Serialize for Ordered<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        const FIRST: [&str; 3] = ["type", "title", "description"];
        let Value::Object(root) = self.schema else { return self.schema.serialize(serializer) };
        let mut map = serializer.serialize_map(Some(root.len()))?;
        for keyword in FIRST {
            root.get(keyword).map_or(Ok(()), |value| map.serialize_entry(keyword, value))?;
        }
        match root.get("properties") {
            Some(Value::Object(properties)) => {
                map.serialize_entry("properties", &Properties { properties, fields: self.fields })?;
            }
            Some(other) => map.serialize_entry("properties", other)?,
            None => {}
        }
        for (keyword, value) in root {
            if keyword != "properties" && !FIRST.contains(&keyword.as_str()) {
                map.serialize_entry(keyword, value)?;
            }
        }
        map.end()
    }
}

struct Properties<'a> {
    properties: &'a Map<String, Value>,
    fields: &'a [&'a str],
}

impl serde::Serialize for Properties<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let place = |name: &str| self.fields.iter().position(|field| *field == name).unwrap_or(usize::MAX);
        let mut ordered: Vec<_> = self.properties.iter().collect();
        ordered.sort_by_key(|(name, _)| place(name));
        serializer
            .collect_map(ordered.into_iter().map(|(name, schema)| (name, Ordered { schema, fields: &[] })))
    }
}

#[cfg(test)]
mod tests;
