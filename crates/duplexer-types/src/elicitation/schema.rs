//! Schemas of forms: a flat object of strings, numbers, booleans and enumerations.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::choice::{EnumSchema, MultiSelectSchema};
use crate::json::{Json, JsonObject, find_members};
use crate::model::{model, open_enum, read_from_json};
use crate::version::{ProtocolVersion, Window};
use crate::wire::{ForRevision, Shape, Wire, WireObject};

/// [Schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema) of a form: a flat JSON object.
///
/// ```
/// use duplexer_types::elicitation::FormSchema;
/// use serde_json::json;
///
/// let form: FormSchema = serde_json::from_str(
///     r#"{"type": "object", "properties": {"guests": {"type": "integer", "minimum": 1}}, "required": ["guests"]}"#,
/// )?;
/// assert!(form.check(&serde_json::from_value(json!({"guests": 4}))?).is_ok());
/// assert!(form.check(&serde_json::from_value(json!({"guests": 0}))?).is_err());
/// # Ok::<_, serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct FormSchema {
    /// Schemas of the fields, in order.
    pub properties: JsonObject<PrimitiveSchema>,
    /// Names of the required fields.
    pub required: Option<Vec<String>>,
    /// JSON Schema dialect.
    pub schema: Option<String>,
    /// Other members, such as a title, verbatim.
    #[cfg_attr(test, arbitrary(default))]
    pub others: JsonObject,
}

impl FormSchema {
    /// Creates a `FormSchema` from its required members.
    pub fn new(properties: impl Into<JsonObject<PrimitiveSchema>>) -> Self {
        Self { properties: properties.into(), required: None, schema: None, others: JsonObject::new() }
    }

    /// Sets `required`.
    #[must_use]
    pub fn required(mut self, required: impl Into<Vec<String>>) -> Self {
        self.required = Some(required.into());
        self
    }

    /// Sets `$schema`.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }
}

/// Members of a form that are not among [`FormSchema::others`].
const KNOWN: [&str; 4] = ["type", "properties", "required", "$schema"];

impl WireObject for FormSchema {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("type", "object")?;
        map.serialize_entry("properties", &ForRevision(&self.properties, shape))?;
        if let Some(required) = &self.required {
            map.serialize_entry("required", required)?;
        }
        if let Some(schema) = &self.schema
            && shape.has(Window::since(ProtocolVersion::V2025_11_25))
        {
            map.serialize_entry("$schema", schema)?;
        }
        for (name, value) in self.others.iter().filter(|(name, _)| !KNOWN.contains(name)) {
            map.serialize_entry(name, value)?;
        }
        Ok(())
    }
}

impl Wire for FormSchema {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        crate::wire::object(self, shape, serializer)
    }
}

/// Writes all members, whatever revision defines them.
impl Serialize for FormSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl FormSchema {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let mut others: JsonObject = json.decode()?;
        others.remove("type");
        let mut take = |name| others.remove(name).unwrap_or_else(Json::null);
        let [properties, required, schema] = ["properties", "required", "$schema"].map(&mut take);
        if properties.is_null() {
            return Err(serde_json::Error::missing_field("properties"));
        }
        Ok(Self {
            properties: properties.decode()?,
            required: required.decode()?,
            schema: schema.decode()?,
            others,
        })
    }
}

read_from_json!(object FormSchema);

/// [Schema](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema) of a form field.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// String field.
    String(StringSchema),
    /// Number field.
    Number(NumberSchema),
    /// Boolean field.
    Boolean(BooleanSchema),
    /// Single choice.
    Enum(EnumSchema),
    /// Multiple choice. Revisions without it (2025-06-18) get a single choice.
    MultiSelect(MultiSelectSchema),
    /// A field that this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

model! {
    /// [String field](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
    pub struct StringSchema const "type" = "string" {} optional {
        /// Display name.
        title: String = "title",
        /// Description of the field.
        description: String = "description",
        /// Minimum number of characters.
        min_length: u64 = "minLength",
        /// Maximum number of characters.
        max_length: u64 = "maxLength",
        /// Format of the string.
        format: StringFormat = "format",
        /// Default value.
        default_value: String = "default" since V2025_11_25,
    }
}

open_enum! {
    /// Format of a string field.
    pub enum StringFormat {
        /// E-mail address.
        Email = "email",
        /// URI.
        Uri = "uri",
        /// Date.
        Date = "date",
        /// Date and time.
        DateTime = "date-time",
    }
}

model! {
    /// [Number field](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
    pub struct NumberSchema {
        /// Number or integer.
        kind: NumberKind = "type",
    } optional {
        /// Display name.
        title: String = "title",
        /// Description of the field.
        description: String = "description",
        /// Minimum value.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        minimum: f64 = "minimum",
        /// Maximum value.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        maximum: f64 = "maximum",
        /// Default value.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        default_value: f64 = "default" since V2025_11_25,
    }
}

open_enum! {
    /// Kind of a number field.
    pub enum NumberKind {
        /// Any number.
        Number = "number",
        /// An integer.
        Integer = "integer",
    }
}

model! {
    /// [Boolean field](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
    pub struct BooleanSchema const "type" = "boolean" {} optional {
        /// Display name.
        title: String = "title",
        /// Description of the field.
        description: String = "description",
        /// Default value.
        default_value: bool = "default",
    }
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

impl PrimitiveSchema {
    /// A field that cannot be decoded is kept verbatim: the other fields of its form stay usable.
    #[expect(clippy::unnecessary_wraps, reason = "all types that are read from JSON have this signature")]
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let [kind, values, titled] =
            find_members(json.as_str(), ["type", "enum", "oneOf"]).unwrap_or_default();
        let has_choices = values.one().or(titled.one()).is_some();
        let known = match kind.one() {
            Some("\"string\"") if has_choices => json.decode().ok().map(Self::Enum),
            Some("\"string\"") => json.decode().ok().map(Self::String),
            Some("\"number\"" | "\"integer\"") => json.decode().ok().map(Self::Number),
            Some("\"boolean\"") => json.decode().ok().map(Self::Boolean),
            Some("\"array\"") => json.decode().ok().map(Self::MultiSelect),
            _ => None,
        };
        Ok(known.unwrap_or_else(|| Self::Other(json.clone())))
    }
}

read_from_json!(object PrimitiveSchema);
