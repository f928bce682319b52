//! Enumerations in forms, in the three spellings of the revisions.

use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::json::Json;
use crate::model::read_from_json;
use crate::version::feature;
use crate::wire::{Shape, Wire, WireObject, object};

/// Option of an enumeration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Choice {
    /// Value of the option.
    pub value: String,
    /// Display name.
    pub title: Option<String>,
}

impl Choice {
    /// Creates an option without a display name.
    pub fn new(value: impl Into<String>) -> Self {
        Self { value: value.into(), title: None }
    }

    /// Creates an option with a display name.
    pub fn titled(value: impl Into<String>, title: impl Into<String>) -> Self {
        Self { value: value.into(), title: Some(title.into()) }
    }

    fn shown(&self) -> &str {
        self.title.as_ref().unwrap_or(&self.value)
    }
}

/// [Single-choice field](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
///
/// Without display names it is written as `enum`, with display names as `oneOf`, or as `enumNames` for revisions
/// without `oneOf`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct EnumSchema {
    /// The options, in order.
    #[cfg_attr(test, arbitrary(with = crate::arbitrary::choices))]
    pub choices: Vec<Choice>,
    /// Display name.
    pub title: Option<String>,
    /// Description of the field.
    pub description: Option<String>,
    /// Default value.
    pub default_value: Option<String>,
}

impl EnumSchema {
    /// Creates a field for one of `choices`.
    pub fn new(choices: impl Into<Vec<Choice>>) -> Self {
        Self { choices: choices.into(), title: None, description: None, default_value: None }
    }

    /// Sets `title`.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets `default`.
    #[must_use]
    pub fn default_value(mut self, default_value: impl Into<String>) -> Self {
        self.default_value = Some(default_value.into());
        self
    }
}

/// [Multiple-choice field](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#requested-schema).
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
#[non_exhaustive]
pub struct MultiSelectSchema {
    /// The options, in order.
    #[cfg_attr(test, arbitrary(with = crate::arbitrary::choices))]
    pub choices: Vec<Choice>,
    /// Display name.
    pub title: Option<String>,
    /// Description of the field.
    pub description: Option<String>,
    /// Minimum number of selected options.
    pub min_items: Option<u64>,
    /// Maximum number of selected options.
    pub max_items: Option<u64>,
    /// Default value.
    pub default_value: Option<Vec<String>>,
}

impl MultiSelectSchema {
    /// Creates a field for any of `choices`.
    pub fn new(choices: impl Into<Vec<Choice>>) -> Self {
        Self {
            choices: choices.into(),
            title: None,
            description: None,
            min_items: None,
            max_items: None,
            default_value: None,
        }
    }

    /// Sets `title`.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets `description`.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets `minItems`.
    #[must_use]
    pub fn min_items(mut self, min_items: impl Into<u64>) -> Self {
        self.min_items = Some(min_items.into());
        self
    }

    /// Sets `maxItems`.
    #[must_use]
    pub fn max_items(mut self, max_items: impl Into<u64>) -> Self {
        self.max_items = Some(max_items.into());
        self
    }

    /// Sets `default`.
    #[must_use]
    pub fn default_value(mut self, default_value: impl Into<Vec<String>>) -> Self {
        self.default_value = Some(default_value.into());
        self
    }
}

/// An option in `oneOf` and `anyOf`.
#[derive(Serialize, Deserialize)]
struct Titled<T> {
    #[serde(rename = "const")]
    value: T,
    #[serde(default = "Option::default")]
    title: Option<T>,
}

fn titled(choices: &[Choice]) -> Vec<Titled<&str>> {
    choices.iter().map(|choice| Titled { value: &*choice.value, title: Some(choice.shown()) }).collect()
}

fn values(choices: &[Choice]) -> Vec<&str> {
    choices.iter().map(|choice| &*choice.value).collect()
}

fn have_titles(choices: &[Choice]) -> bool {
    choices.iter().any(|choice| choice.title.is_some())
}

/// The spellings of an enumeration, in a field or in its `items`.
#[derive(Deserialize)]
struct Spelling {
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    #[serde(rename = "enumNames")]
    names: Option<Vec<String>>,
    #[serde(rename = "oneOf")]
    one_of: Option<Vec<Titled<String>>>,
    #[serde(rename = "anyOf")]
    any_of: Option<Vec<Titled<String>>>,
    title: Option<String>,
    description: Option<String>,
    default: Option<String>,
}

impl Spelling {
    fn choices(&mut self) -> Option<Vec<Choice>> {
        if let Some(titled) = self.one_of.take().or_else(|| self.any_of.take()) {
            return Some(titled.into_iter().map(|Titled { value, title }| Choice { value, title }).collect());
        }
        let mut names = self.names.take().unwrap_or_default().into_iter();
        let values = self.values.take()?;
        Some(values.into_iter().map(|value| Choice { value, title: names.next() }).collect())
    }
}

impl WireObject for EnumSchema {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("type", "string")?;
        entry(map, "title", self.title.as_ref())?;
        entry(map, "description", self.description.as_ref())?;
        if !have_titles(&self.choices) {
            map.serialize_entry("enum", &values(&self.choices))?;
        } else if shape.has(feature::TITLED_ENUMS) {
            map.serialize_entry("oneOf", &titled(&self.choices))?;
        } else {
            map.serialize_entry("enum", &values(&self.choices))?;
            let names: Vec<&str> = self.choices.iter().map(Choice::shown).collect();
            map.serialize_entry("enumNames", &names)?;
        }
        let default = self.default_value.as_ref().filter(|_| shape.has(feature::TITLED_ENUMS));
        entry(map, "default", default)
    }
}

impl WireObject for MultiSelectSchema {
    fn members<M: SerializeMap>(&self, _: Shape, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("type", "array")?;
        entry(map, "title", self.title.as_ref())?;
        entry(map, "description", self.description.as_ref())?;
        entry(map, "minItems", self.min_items.as_ref())?;
        entry(map, "maxItems", self.max_items.as_ref())?;
        map.serialize_entry("items", &Items(&self.choices))?;
        entry(map, "default", self.default_value.as_ref())
    }
}

fn entry<M: SerializeMap, T: Serialize>(map: &mut M, name: &str, value: Option<&T>) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, value))
}

struct Items<'a>(&'a [Choice]);

impl Serialize for Items<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if have_titles(self.0) {
            map.serialize_entry("anyOf", &titled(self.0))?;
        } else {
            map.serialize_entry("type", "string")?;
            map.serialize_entry("enum", &values(self.0))?;
        }
        map.end()
    }
}

impl Wire for EnumSchema {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        object(self, shape, serializer)
    }
}

impl Wire for MultiSelectSchema {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        object(self, shape, serializer)
    }
}

impl EnumSchema {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        let mut spelling: Spelling = json.decode()?;
        let choices = spelling.choices().ok_or_else(|| serde_json::Error::missing_field("enum"))?;
        let Spelling { title, description, default, .. } = spelling;
        Ok(Self { choices, title, description, default_value: default })
    }
}

read_from_json!(EnumSchema);

impl MultiSelectSchema {
    fn read(json: &Json) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Field {
            items: Spelling,
            title: Option<String>,
            description: Option<String>,
            min_items: Option<u64>,
            max_items: Option<u64>,
            default: Option<Vec<String>>,
        }

        let Field { mut items, title, description, min_items, max_items, default } = json.decode()?;
        let choices = items.choices().ok_or_else(|| serde_json::Error::missing_field("enum"))?;
        Ok(Self { choices, title, description, min_items, max_items, default_value: default })
    }
}

read_from_json!(MultiSelectSchema);
