//! Simplifies generated schemas, in one walk over all subschemas.

use serde_json::{Map, Value};

/// Formats that schemars writes for Rust's number types. No dialect of JSON Schema defines them.
const NUMBER_FORMATS: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
    "uint", "float", "double",
];

/// Keywords that require more of a value than that it can be decoded.
const DEMANDS: [&str; 17] = [
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "pattern",
    "contains",
    "if",
];

/// Keywords that hold a schema, schemas in an array, or schemas by name.
pub(super) const ONE: [&str; 8] =
    ["additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"];
pub(super) const SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
pub(super) const NAMED: [&str; 4] = ["$defs", "dependentSchemas", "patternProperties", "properties"];

/// Simplifies a schema of input. Returns whether it requires something that decoding does not check.
pub(super) fn input(value: &mut Value) -> bool {
    let mut demands_more = false;
    walk(value, &mut |schema| {
        demands_more |= natural_number(schema);
        let demands = schema.keys().any(|keyword| DEMANDS.contains(&keyword.as_str()));
        demands_more |= demands && !is_bounded(schema);
        one_enum(schema);
        optional_members(schema);
    });
    strip_marks(value);
    demands_more
}

/// Simplifies a schema of output.
pub(super) fn output(value: &mut Value) {
    as_object(value);
    walk(value, &mut |schema| {
        natural_number(schema);
        one_enum(schema);
    });
    strip_marks(value);
}

/// Marks schemas of numbers whose bounds follow from the Rust type, until the walk is over.
const MARK: &str = "\u{0}bounded";

fn is_bounded(schema: &Map<String, Value>) -> bool {
    schema.contains_key(MARK)
}

fn strip_marks(value: &mut Value) {
    walk(value, &mut |schema| {
        schema.remove(MARK);
    });
}

/// Removes the format of a number. Returns whether its bounds differ from those of the Rust type that the format names.
fn natural_number(schema: &mut Map<String, Value>) -> bool {
    let Some(format) = schema.get("format").and_then(Value::as_str) else { return false };
    if !NUMBER_FORMATS.contains(&format) {
        return false;
    }
    let (lowest, highest) = bounds(format);
    let differs = |keyword: &str, natural: Option<i64>| {
        schema.get(keyword).is_some_and(|bound| natural.is_none_or(|natural| bound.as_i64() != Some(natural)))
    };
    let demands = differs("minimum", lowest) || differs("maximum", highest);
    schema.remove("format");
    if !demands {
        schema.insert(MARK.to_owned(), Value::Null);
    }
    demands
}

fn bounds(format: &str) -> (Option<i64>, Option<i64>) {
    match format {
        "uint8" => (Some(0), Some(u8::MAX.into())),
        "uint16" => (Some(0), Some(u16::MAX.into())),
        "uint32" => (Some(0), Some(u32::MAX.into())),
        "int8" => (Some(i8::MIN.into()), Some(i8::MAX.into())),
        "int16" => (Some(i16::MIN.into()), Some(i16::MAX.into())),
        "int32" => (Some(i32::MIN.into()), Some(i32::MAX.into())),
        _ if format.starts_with("uint") => (Some(0), None),
        _ => (None, None),
    }
}

/// Merges choices into one `enum`, which every client understands; schemars writes one schema per described choice.
/// Choices with titles remain separate schemas of a value and its title, as forms require.
fn one_enum(schema: &mut Map<String, Value>) {
    let Some(Value::Array(forms)) = schema.get("oneOf") else { return };
    let Some(forms) = forms.iter().map(alternatives).collect::<Option<Vec<_>>>() else { return };
    let remarks: Vec<String> = forms.iter().filter_map(remark).collect();
    let is_titled = forms.iter().any(|form| form.title.is_some());
    if is_titled {
        schema.insert("oneOf".into(), forms.iter().flat_map(titled).collect());
    } else {
        schema.insert("enum".into(), forms.iter().flat_map(|form| form.values.clone()).collect());
        schema.remove("oneOf");
    }
    schema.insert("type".into(), "string".into());
    if !remarks.is_empty() {
        let before = schema.get("description").and_then(Value::as_str);
        let lines: Vec<&str> = before.into_iter().chain(remarks.iter().map(String::as_str)).collect();
        let description = lines.join("\n");
        schema.insert("description".into(), description.into());
    }
}

/// Choices of an enum with their title and description.
struct Alternatives {
    values: Vec<Value>,
    title: Option<String>,
    description: Option<String>,
}

/// Returns the choices of a schema that consists of nothing else.
fn alternatives(form: &Value) -> Option<Alternatives> {
    let form = form.as_object()?;
    let known = |key: &String| matches!(key.as_str(), "type" | "enum" | "const" | "title" | "description");
    if form.get("type").and_then(Value::as_str) != Some("string") || !form.keys().all(known) {
        return None;
    }
    let values = match (form.get("const"), form.get("enum")) {
        (Some(choice), None) => vec![choice.clone()],
        (None, Some(Value::Array(some))) => some.clone(),
        _ => return None,
    };
    let text = |keyword| form.get(keyword).and_then(Value::as_str).map(Into::into);
    Some(Alternatives { values, title: text("title"), description: text("description") })
}

fn remark(form: &Alternatives) -> Option<String> {
    match (&form.description, &*form.values) {
        (Some(remark), [Value::String(choice)]) => Some(format!("- {choice}: {remark}")),
        _ => None,
    }
}

fn titled(form: &Alternatives) -> impl Iterator<Item = Value> {
    form.values.iter().map(|value| {
        let title = form.title.clone().map_or_else(|| value.clone(), Value::from);
        serde_json::json!({ "const": value, "title": title })
    })
}

/// Makes optional members non-nullable: they can be omitted instead.
fn optional_members(schema: &mut Map<String, Value>) {
    let required: Vec<String> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).map(Into::into).collect(),
        _ => Vec::new(),
    };
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (_, property) in properties.iter_mut().filter(|(name, _)| !required.contains(name)) {
        if let Value::Object(property) = property {
            without_null(property);
        }
    }
}

fn without_null(property: &mut Map<String, Value>) {
    if property.get("default") == Some(&Value::Null) {
        property.remove("default");
    }
    if let Some(Value::Array(types)) = property.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = &**types {
            let only = only.clone();
            property.insert("type".into(), only);
        }
    }
    if let Some(Value::Array(choices)) = property.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
    let Some(Value::Array(forms)) = property.get_mut("anyOf") else { return };
    forms.retain(|form| form.get("type").and_then(Value::as_str) != Some("null"));
    if forms.len() == 1
        && let Some(Value::Array(mut forms)) = property.remove("anyOf")
        && let Some(Value::Object(only)) = forms.pop()
    {
        for (keyword, value) in only {
            property.entry(keyword).or_insert(value);
        }
    }
}

/// Writes the schema `true` as `{}`: both accept everything, and some clients expect an object.
fn as_object(schema: &mut Value) {
    if *schema == Value::Bool(true) {
        *schema = Value::Object(Map::new());
    }
}

/// Visits every subschema, inner ones first.
pub(super) fn walk(value: &mut Value, visit: &mut impl FnMut(&mut Map<String, Value>)) {
    walk_beside(value, &Value::Null, &mut |schema, _| visit(schema));
}

/// Visits every subschema, inner ones first, together with what `other` has in the same place.
pub(super) fn walk_beside(
    value: &mut Value,
    other: &Value,
    visit: &mut impl FnMut(&mut Map<String, Value>, &Value),
) {
    let Value::Object(schema) = value else { return };
    for (keyword, inner) in schema.iter_mut() {
        let beside = &other[keyword.as_str()];
        match (inner, keyword.as_str()) {
            (Value::Object(named), keyword) if NAMED.contains(&keyword) => {
                for (name, inner) in named.iter_mut() {
                    as_object(inner);
                    walk_beside(inner, &beside[name.as_str()], visit);
                }
            }
            (Value::Array(several), keyword) if SEVERAL.contains(&keyword) => {
                for (at, inner) in several.iter_mut().enumerate() {
                    as_object(inner);
                    walk_beside(inner, &beside[at], visit);
                }
            }
            (inner, keyword) if ONE.contains(&keyword) => {
                // `additionalProperties` is a boolean in the schemas of all clients.
                if keyword != "additionalProperties" {
                    as_object(inner);
                }
                walk_beside(inner, beside, visit);
            }
            _ => {}
        }
    }
    visit(schema, other);
}

/// Redirects references to the root to its new location.
pub(super) fn redirect_root(value: &mut Value, location: &str) {
    match value {
        Value::Object(schema) => {
            if schema.get("$ref").and_then(Value::as_str) == Some("#") {
                schema.insert("$ref".into(), location.into());
            }
            schema.values_mut().for_each(|inner| redirect_root(inner, location));
        }
        Value::Array(several) => several.iter_mut().for_each(|inner| redirect_root(inner, location)),
        _ => {}
    }
}
