//! JSON Schemas (2020-12) of arguments and results, derived from types.
//!
//! The schemas use only what all clients can read: references only for recursive types, no `$schema`, no formats that
//! JSON Schema does not define, optional members that are not required instead of nullable, and choices as one `enum`.

pub(crate) mod arguments;
mod fields;
mod normalize;
pub(crate) mod validate;

use duplexer_types::json::Json;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use fields::declared_order;

/// A schema derived from a type.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) value: Value,
    /// The schema requires something that decoding does not check, such as a range.
    pub(crate) demands_more: bool,
}

/// Derives the schema of input that decodes into a `T`.
pub(crate) fn of_input<T: JsonSchema + ?Sized>() -> Generated {
    let settings = SchemaSettings::draft2020_12().for_deserialize();
    normalize::input(generate::<T>(settings))
}

/// Derives the schema of a serialized `T`.
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
    // The name of a Rust type is of no use to a model; an explicit title stays.
    if schema.get("title").and_then(Value::as_str) == Some(&*T::schema_name()) {
        schema.as_object_mut().map(|root| root.remove("title"));
    }
    schema
}

/// Derives the input schema of arguments that are a `T`. Fails with a reason if it is not an object.
pub(crate) fn of_arguments<T: JsonSchema + DeserializeOwned>() -> Result<Generated, String> {
    let mut generated = of_input::<T>();
    let Value::Object(root) = &mut generated.value else {
        generated.value = Value::Object(empty_object());
        return Ok(generated);
    };
    match root.get("type").and_then(Value::as_str) {
        Some("object") => {}
        // Variants of an enum: the schema is an object if every variant is.
        None if forms(root).is_some_and(|forms| forms.iter().all(is_object)) => {
            root.insert("type".into(), "object".into());
        }
        // The unit type: no arguments.
        Some("null") => *root = empty_object(),
        _ => return Err(format!("its arguments are not an object but {}", generated.value)),
    }
    // Clients show no description of the arguments as a whole.
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

/// Returns the schema of `{"result": ..}` around a value of `schema`. References keep their targets.
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

/// Renders a schema as text: `type`, `title` and `description` first, properties in the order of `fields`.
///
/// Elsewhere, in results and nested objects, required properties have their declared order and the others follow by name:
/// `required` is the only part of a derived schema that keeps the order.
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
            Some(Value::Object(schemas)) => {
                let required = root.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                map.serialize_entry("properties", &Properties { schemas, fields: self.fields, required })?;
            }
            Some(other) => map.serialize_entry("properties", other)?,
            None => {}
        }
        for (keyword, value) in root {
            if keyword != "properties" && !FIRST.contains(&keyword.as_str()) {
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
        let ordered = |schema| Ordered { schema, fields: &[] };
        match (self.keyword, self.value) {
            ("items" | "additionalProperties" | "not", schema) => ordered(schema).serialize(serializer),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(schemas)) => {
                serializer.collect_seq(schemas.iter().map(ordered))
            }
            ("$defs" | "patternProperties", Value::Object(schemas)) => {
                serializer.collect_map(schemas.iter().map(|(name, schema)| (name, ordered(schema))))
            }
            (_, value) => value.serialize(serializer),
        }
    }
}

struct Properties<'a> {
    schemas: &'a Map<String, Value>,
    fields: &'a [&'a str],
    required: &'a [Value],
}

impl serde::Serialize for Properties<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let position = |name: &str| {
            let declared = self.fields.iter().position(|field| *field == name);
            let required = self.required.iter().position(|field| field == name);
            (declared.unwrap_or(usize::MAX), required.unwrap_or(usize::MAX))
        };
        let mut ordered: Vec<_> = self.schemas.iter().collect();
        ordered.sort_by_key(|(name, _)| position(name));
        serializer
            .collect_map(ordered.into_iter().map(|(name, schema)| (name, Ordered { schema, fields: &[] })))
    }
}

#[cfg(test)]
mod tests;
