//! Forms: a flat object of strings, numbers, booleans and choices.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::choice::{EnumSchema, MultiSelectSchema};
use crate::json::{Json, JsonObject, find_members};
use crate::model::{model, open_enum};
use crate::wire::{Shape, Wire};

model! {
    /// A form.
    pub struct FormSchema says "type" = "object" {
        /// The fields, in order.
        properties: JsonObject<PrimitiveSchema> = "properties",
    } optional {
        /// Fields that must be filled.
        required: Vec<String> = "required",
        /// The dialect of JSON Schema.
        schema: String = "$schema" since V2025_11_25,
    }
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub enum PrimitiveSchema {
    /// Text.
    String(StringSchema),
    /// A number.
    Number(NumberSchema),
    /// Yes or no.
    Boolean(BooleanSchema),
    /// One of several choices.
    Enum(EnumSchema),
    /// Any of several choices. Where that does not exist (2025-06-18) it becomes one of them.
    MultiSelect(MultiSelectSchema),
    /// A field this library does not know.
    #[cfg_attr(test, arbitrary(skip))]
    Other(Json),
}

model! {
    /// Text.
    pub struct StringSchema says "type" = "string" {} optional {
        /// The field's name, for people.
        title: String = "title",
        /// What it is for.
        description: String = "description",
        /// How many characters at least.
        min_length: u64 = "minLength",
        /// How many characters at most.
        max_length: u64 = "maxLength",
        /// What the text must look like.
        format: StringFormat = "format",
        /// What is filled in before the user changes it.
        default_value: String = "default" since V2025_11_25,
    }
}

open_enum! {
    /// What a text must look like.
    pub enum StringFormat {
        /// An e-mail address.
        Email = "email",
        /// A URI.
        Uri = "uri",
        /// A date.
        Date = "date",
        /// A date and a time.
        DateTime = "date-time",
    }
}

model! {
    /// A number.
    pub struct NumberSchema {
        /// Whole or not.
        kind: NumberKind = "type",
    } optional {
        /// The field's name, for people.
        title: String = "title",
        /// What it is for.
        description: String = "description",
        /// The smallest that is allowed.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        minimum: f64 = "minimum",
        /// The largest that is allowed.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        maximum: f64 = "maximum",
        /// What is filled in before the user changes it.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::maybe_number))]
        default_value: f64 = "default" since V2025_11_25,
    }
}

open_enum! {
    /// Whole or not.
    pub enum NumberKind {
        /// Any number.
        Number = "number",
        /// A whole one.
        Integer = "integer",
    }
}

model! {
    /// Yes or no.
    pub struct BooleanSchema says "type" = "boolean" {} optional {
        /// The field's name, for people.
        title: String = "title",
        /// What it is for.
        description: String = "description",
        /// What is filled in before the user changes it.
        default_value: bool = "default",
    }
}

impl Serialize for PrimitiveSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.write(Shape::FULL, serializer)
    }
}

/// A field that cannot be read is kept as it came: the others of its form are still good.
impl<'de> Deserialize<'de> for PrimitiveSchema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let json = Json::object_of(deserializer)?;
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
        Ok(known.unwrap_or(Self::Other(json)))
    }
}
