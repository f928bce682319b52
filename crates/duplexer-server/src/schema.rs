//! JSON Schemas (2020-12) of arguments and results, derived from types.
//!
//! The schemas use only what all clients can read: references only for recursive types, no `$schema`, no formats that
//! JSON Schema does not define, optional members that are not required instead of nullable, and choices as one `enum`.

pub(crate) mod arguments;
mod fields;
mod normalize;
mod order;
pub(crate) mod validate;

use duplexer_types::json::Json;
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

pub(crate) use fields::declared_order;

/// A schema of input, derived from a type.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) value: Value,
    /// The schema as clients see it: members have their declared order.
    pub(crate) listed: Json,
    /// The schema requires something that decoding does not check, such as a range.
    pub(crate) demands_more: bool,
}

/// A schema of output, derived from a type.
#[derive(Clone, Debug)]
pub(crate) struct GeneratedOutput {
    pub(crate) value: Value,
    /// The schema as clients see it.
    pub(crate) listed: Json,
    /// The schema of `{"result": ..}` around a value that is not an object, for revisions that require an object.
    pub(crate) wrapped: Option<Json>,
}

/// Derives the schema of a serialized `T`.
pub(crate) fn of_output<T: JsonSchema + ?Sized>() -> GeneratedOutput {
    let mut value = generate::<T>(Contract::Serialize);
    normalize::output(&mut value);
    let listed = order::render(&value);
    let wrapped = (!is_object(&value)).then(|| order::render(&wrapped(&value)));
    order::strip(&mut value);
    GeneratedOutput { value, listed, wrapped }
}

/// Derives a schema whose members are marked with their order. Only `required` keeps an order, and each contract
/// requires other members, so both are needed.
fn generate<T: JsonSchema + ?Sized>(contract: Contract) -> Value {
    let other = match contract {
        Contract::Serialize => Contract::Deserialize,
        _ => Contract::Serialize,
    };
    let mut schema = generate_unordered::<T>(contract);
    order::mark(&mut schema, &generate_unordered::<T>(other));
    schema
}

fn generate_unordered<T: JsonSchema + ?Sized>(contract: Contract) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
        settings.contract = contract;
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
    let mut value = generate::<T>(Contract::Deserialize);
    let demands_more = normalize::input(&mut value);
    value = arguments_object(value)?;
    order::declare(&mut value, declared_order::<T>());
    let listed = order::render(&value);
    order::strip(&mut value);
    Ok(Generated { value, listed, demands_more })
}

/// Returns the schema of an object of arguments, or the reason why it is none.
fn arguments_object(value: Value) -> Result<Value, String> {
    let Value::Object(mut root) = value else { return Ok(Value::Object(empty_object())) };
    match root.get("type").and_then(Value::as_str) {
        Some("object") => {}
        // Variants of an enum: the schema is an object if every variant is.
        None if forms(&root).is_some_and(|forms| forms.iter().all(is_object)) => {
            root.insert("type".into(), "object".into());
        }
        // The unit type: no arguments.
        Some("null") => root = empty_object(),
        _ => {
            let mut value = Value::Object(root);
            order::strip(&mut value);
            return Err(format!("its arguments are not an object but {value}"));
        }
    }
    // Clients show no description of the arguments as a whole.
    root.remove("description");
    root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    Ok(Value::Object(root))
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
fn wrapped(schema: &Value) -> Value {
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

#[cfg(test)]
mod tests;
