//! Answers to forms: the defaults of a form, and the check of an answer against its fields.

use std::fmt;

use serde_json::{Number, Value};

use super::choice::Choice;
use super::schema::{FormSchema, NumberKind, NumberSchema, PrimitiveSchema};
use super::{ElicitFormParams, ElicitResult};
use crate::json::{Json, JsonObject};

/// Whole numbers up to this magnitude have an exact `f64`.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl FormSchema {
    /// Returns the default values of the fields that have one, in the order of the form. Defaults of integer fields are
    /// integers.
    pub fn defaults(&self) -> JsonObject {
        self.properties
            .iter()
            .filter_map(|(name, field)| Some((name, Json::from(default_of(field)?))))
            .collect()
    }

    /// Checks the content of an answer against the form.
    ///
    /// # Errors
    /// Fails with all faults: required fields that are missing, fields that the form does not have, and values that do
    /// not fit their field. Formats of strings and fields of unknown kinds are not checked.
    pub fn check(&self, content: &JsonObject) -> Result<(), InvalidAnswer> {
        let mut faults = Vec::new();
        for name in self.required.iter().flatten().filter(|name| content.get(name).is_none()) {
            faults.push(format!("`{name}` is required"));
        }
        for (name, value) in content.iter() {
            match self.properties.get(name) {
                None => faults.push(format!("the form has no field `{name}`")),
                Some(field) => {
                    let fault =
                        value.decode().map_or(Some("valid JSON".to_owned()), |value| misfit(field, &value));
                    faults.extend(fault.map(|expected| format!("`{name}` must be {expected}")));
                }
            }
        }
        if faults.is_empty() { Ok(()) } else { Err(InvalidAnswer(faults)) }
    }
}

impl ElicitResult {
    /// Creates the result of a form that was submitted with its default values.
    ///
    /// # Errors
    /// Fails if a required field has no default.
    pub fn accept_defaults(form: &ElicitFormParams) -> Result<Self, InvalidAnswer> {
        let content = form.requested_schema.defaults();
        form.requested_schema.check(&content)?;
        Ok(Self::accept(content))
    }
}

/// Content of an answer that does not fit its form. Lists all faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnswer(Vec<String>);

impl InvalidAnswer {
    /// Returns the faults, one sentence each.
    pub fn faults(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the answer does not fit the form: {}", self.0.join("; "))
    }
}

impl std::error::Error for InvalidAnswer {}

fn default_of(field: &PrimitiveSchema) -> Option<Value> {
    match field {
        PrimitiveSchema::String(field) => field.default_value.clone().map(Value::from),
        PrimitiveSchema::Number(field) => number(field.default_value?, field),
        PrimitiveSchema::Boolean(field) => field.default_value.map(Value::from),
        PrimitiveSchema::Enum(field) => field.default_value.clone().map(Value::from),
        PrimitiveSchema::MultiSelect(field) => field.default_value.clone().map(Value::from),
        PrimitiveSchema::Other(field) => serde_json::from_str(field.member("default")?).ok(),
    }
}

/// Returns 5 and not 5.0 as the value of an integer field.
fn number(value: f64, field: &NumberSchema) -> Option<Value> {
    if field.kind == NumberKind::Integer && value.fract() == 0.0 && value.abs() <= EXACT {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number up to 2^53 fits")]
        return Some(Value::from(value as i64));
    }
    Number::from_f64(value).map(Value::Number)
}

/// Returns what the field expects, if the value is something else.
fn misfit(field: &PrimitiveSchema, value: &Value) -> Option<String> {
    match field {
        PrimitiveSchema::String(field) => match value.as_str() {
            Some(text) => range(text.chars().count(), field.min_length, field.max_length, "characters"),
            None => Some("a string".to_owned()),
        },
        PrimitiveSchema::Number(field) => number_misfit(field, value),
        PrimitiveSchema::Boolean(_) => (!value.is_boolean()).then(|| "true or false".to_owned()),
        PrimitiveSchema::Enum(field) => (!is_choice(&field.choices, value)).then(|| one_of(&field.choices)),
        PrimitiveSchema::MultiSelect(field) => match value.as_array() {
            Some(chosen) if chosen.iter().all(|one| is_choice(&field.choices, one)) => {
                range(chosen.len(), field.min_items, field.max_items, "options")
            }
            _ => Some(format!("an array of {}", one_of(&field.choices))),
        },
        PrimitiveSchema::Other(_) => None,
    }
}

fn number_misfit(field: &NumberSchema, value: &Value) -> Option<String> {
    let whole = field.kind == NumberKind::Integer;
    let kind = if whole { "an integer" } else { "a number" };
    let Some(number) = value.as_f64().filter(|number| !whole || number.fract() == 0.0) else {
        return Some(kind.to_owned());
    };
    match (field.minimum, field.maximum) {
        (Some(least), _) if number < least => Some(format!("{kind} of at least {least}")),
        (_, Some(most)) if number > most => Some(format!("{kind} of at most {most}")),
        _ => None,
    }
}

fn range(count: usize, least: Option<u64>, most: Option<u64>, of: &str) -> Option<String> {
    let count = count as u64;
    match (least, most) {
        (Some(least), _) if count < least => Some(format!("at least {least} {of}")),
        (_, Some(most)) if count > most => Some(format!("at most {most} {of}")),
        _ => None,
    }
}

fn is_choice(choices: &[Choice], value: &Value) -> bool {
    value.as_str().is_some_and(|text| choices.iter().any(|choice| choice.value == text))
}

fn one_of(choices: &[Choice]) -> String {
    let values: Vec<&str> = choices.iter().map(|choice| choice.value.as_str()).collect();
    format!("one of {}", values.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form(schema: &str) -> FormSchema {
        serde_json::from_str(schema).unwrap()
    }

    /// F-8, P-ELI-9: integers stay integers.
    #[test]
    fn defaults_have_the_order_of_the_form_and_the_kind_of_their_field() {
        let form = form(
            r#"{"type": "object", "properties": {
                "name": {"type": "string", "default": "Ada"},
                "age": {"type": "integer", "default": 30},
                "score": {"type": "number", "default": 95.5},
                "none": {"type": "string"},
                "ok": {"type": "boolean", "default": true},
                "role": {"type": "string", "enum": ["a", "b"], "default": "b"},
                "all": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "default": ["y"]},
                "new": {"type": "colour", "default": {"r": 1}}}}"#,
        );
        let defaults = Json::from(form.defaults());
        assert_eq!(
            defaults.as_str(),
            r#"{"name":"Ada","age":30,"score":95.5,"ok":true,"role":"b","all":["y"],"new":{"r":1}}"#
        );
        assert_eq!(form.check(&form.defaults()), Ok(()));
    }

    #[test]
    fn an_answer_that_does_not_fit_lists_all_faults() {
        let form = form(
            r#"{"type": "object", "required": ["name", "age"], "properties": {
                "name": {"type": "string", "minLength": 2},
                "age": {"type": "integer", "minimum": 1, "maximum": 9},
                "ratio": {"type": "number"},
                "ok": {"type": "boolean"},
                "role": {"type": "string", "enum": ["a", "b"]},
                "all": {"type": "array", "items": {"type": "string", "enum": ["x", "y"]}, "maxItems": 1}}}"#,
        );
        let check = |content: &str, faults: &[&str]| {
            let content: JsonObject = serde_json::from_str(content).unwrap();
            let found =
                form.check(&content).map_or_else(|invalid| invalid.faults().to_vec(), |()| Vec::new());
            assert_eq!(found, faults, "{content:?}");
        };
        check(r#"{"name": "Al", "age": 9, "ratio": 0.5, "ok": false, "role": "a", "all": ["x"]}"#, &[]);
        check(r#"{"name": "Al", "age": 9.0}"#, &[]);
        check("{}", &["`name` is required", "`age` is required"]);
        check(
            r#"{"name": "A", "age": 0}"#,
            &["`name` must be at least 2 characters", "`age` must be an integer of at least 1"],
        );
        check(r#"{"name": 5, "age": 1.5}"#, &["`name` must be a string", "`age` must be an integer"]);
        check(
            r#"{"name": "Al", "age": 1, "ok": "yes", "role": "c", "all": ["x", "y"], "more": 1}"#,
            &[
                "`ok` must be true or false",
                "`role` must be one of a, b",
                "`all` must be at most 1 options",
                "the form has no field `more`",
            ],
        );
    }

    #[test]
    fn a_form_without_a_default_for_a_required_field_cannot_be_accepted_with_its_defaults() {
        let check = |schema: &str, expected: Result<Value, &str>| {
            let params = ElicitFormParams::new("m", form(schema));
            let accepted = ElicitResult::accept_defaults(&params);
            let content =
                accepted.map(|result| Json::from(result.content.unwrap()).decode::<Value>().unwrap());
            assert_eq!(content.map_err(|invalid| invalid.to_string()), expected.map_err(str::to_owned));
        };
        let given = r#"{"properties": {"n": {"type": "integer", "default": 2}}, "required": ["n"]}"#;
        check(given, Ok(json!({"n": 2})));
        let missing = "the answer does not fit the form: `n` is required";
        check(r#"{"properties": {"n": {"type": "integer"}}, "required": ["n"]}"#, Err(missing));
    }
}
