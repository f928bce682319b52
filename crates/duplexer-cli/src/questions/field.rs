//! One field of a form: its prompt, and the parsing of an answer. Knows no terminal.

use duplexer::Json;
use duplexer::types::elicitation::{Choice, NumberKind, NumberSchema, PrimitiveSchema, StringSchema};
use serde_json::{Value, json};

/// A field of a form.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a PrimitiveSchema,
    pub(super) required: bool,
}

impl Field<'_> {
    /// Returns the question and its limits: `How many people?` and `(whole number, 1 to 12) [2]`.
    pub(super) fn label(&self) -> (String, String) {
        let (title, description) = self.words();
        let label = title.or(description).unwrap_or(self.name).trim_end_matches(':').to_owned();
        let kind = format!("({})", self.kind());
        let limits = match self.default() {
            Some(default) => format!("{kind} [{}]", shown(&default)),
            None if self.required => kind,
            None => format!("{kind} [nothing]"),
        };
        (label, limits)
    }

    /// Returns the description, unless it is the question itself.
    pub(super) fn explanation(&self) -> Option<String> {
        let (title, description) = self.words();
        title.and(description).map(str::to_owned)
    }

    /// Returns the choices, one per line.
    pub(super) fn choices(&self) -> Vec<String> {
        let line = |(index, choice): (usize, &Choice)| match &choice.title {
            Some(title) if *title != choice.value => format!("{}) {} ({title})", index + 1, choice.value),
            _ => format!("{}) {}", index + 1, choice.value),
        };
        self.all_choices().iter().enumerate().map(line).collect()
    }

    fn all_choices(&self) -> &[Choice] {
        match self.schema {
            PrimitiveSchema::Enum(schema) => &schema.choices,
            PrimitiveSchema::MultiSelect(schema) => &schema.choices,
            _ => &[],
        }
    }

    fn words(&self) -> (Option<&str>, Option<&str>) {
        let (title, description) = match self.schema {
            PrimitiveSchema::String(schema) => (&schema.title, &schema.description),
            PrimitiveSchema::Number(schema) => (&schema.title, &schema.description),
            PrimitiveSchema::Boolean(schema) => (&schema.title, &schema.description),
            PrimitiveSchema::Enum(schema) => (&schema.title, &schema.description),
            PrimitiveSchema::MultiSelect(schema) => (&schema.title, &schema.description),
            _ => return (None, None),
        };
        (title.as_deref(), description.as_deref())
    }

    fn kind(&self) -> String {
        match self.schema {
            PrimitiveSchema::String(schema) => match &schema.format {
                Some(format) => format.as_str().to_owned(),
                None => "text".to_owned(),
            },
            PrimitiveSchema::Number(schema) => {
                let kind = if is_whole(schema) { "whole number" } else { "number" };
                match (schema.minimum, schema.maximum) {
                    (Some(least), Some(most)) => format!("{kind}, {least} to {most}"),
                    (Some(least), None) => format!("{kind}, at least {least}"),
                    (None, Some(most)) => format!("{kind}, at most {most}"),
                    (None, None) => kind.to_owned(),
                }
            }
            PrimitiveSchema::Boolean(_) => "y/n".to_owned(),
            PrimitiveSchema::Enum(_) => "one of these".to_owned(),
            PrimitiveSchema::MultiSelect(_) => "any of these, with commas".to_owned(),
            _ => "JSON".to_owned(),
        }
    }

    fn default(&self) -> Option<Value> {
        match self.schema {
            PrimitiveSchema::String(schema) => schema.default_value.clone().map(Value::from),
            PrimitiveSchema::Number(schema) => schema.default_value.map(|default| number(default, schema)),
            PrimitiveSchema::Boolean(schema) => schema.default_value.map(Value::from),
            PrimitiveSchema::Enum(schema) => schema.default_value.clone().map(Value::from),
            PrimitiveSchema::MultiSelect(schema) => schema.default_value.clone().map(Value::from),
            _ => None,
        }
    }

    /// Parses an answer. `None` if the field is omitted; an error if the text is invalid.
    pub(super) fn read(&self, typed: &str) -> Result<Option<Json>, String> {
        if typed.is_empty() {
            return match self.default() {
                Some(default) => Ok(Some(default.into())),
                None if self.required => Err("an answer is needed here".to_owned()),
                None => Ok(None),
            };
        }
        let value = match self.schema {
            PrimitiveSchema::String(schema) => text(typed, schema)?,
            PrimitiveSchema::Number(schema) => read_number(typed, schema)?,
            PrimitiveSchema::Boolean(_) => match typed.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err("y or n".to_owned()),
            },
            PrimitiveSchema::Enum(_) => json!(self.chosen(typed)?),
            PrimitiveSchema::MultiSelect(schema) => {
                let parts = typed.split(',').map(str::trim).filter(|part| !part.is_empty());
                let chosen: Vec<&str> = parts.map(|part| self.chosen(part)).collect::<Result<_, _>>()?;
                within(chosen.len(), schema.min_items, schema.max_items, "choices")?;
                json!(chosen)
            }
            _ => return Json::parse(typed).map(Some).map_err(|error| format!("not JSON: {error}")),
        };
        Ok(Some(value.into()))
    }

    /// Finds a choice by its value, its title or its number.
    fn chosen(&self, typed: &str) -> Result<&str, String> {
        let choices = self.all_choices();
        let named = |choice: &&Choice| {
            choice.value.eq_ignore_ascii_case(typed)
                || choice.title.as_ref().is_some_and(|title| title.eq_ignore_ascii_case(typed))
        };
        let numbered = || choices.get(typed.parse::<usize>().ok()?.checked_sub(1)?);
        let chosen = choices.iter().find(named).or_else(numbered);
        chosen
            .map(|choice| choice.value.as_str())
            .ok_or_else(|| format!("`{typed}` is not among the choices"))
    }
}

fn is_whole(schema: &NumberSchema) -> bool {
    schema.kind == NumberKind::Integer
}

/// Formats a value as a user would type it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "y".to_owned(),
        Value::Bool(false) => "n".to_owned(),
        Value::Array(all) => all.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

fn text(typed: &str, schema: &StringSchema) -> Result<Value, String> {
    within(typed.chars().count(), schema.min_length, schema.max_length, "characters")?;
    Ok(json!(typed))
}

fn within(count: usize, least: Option<u64>, most: Option<u64>, of: &str) -> Result<(), String> {
    let count = count as u64;
    match (least, most) {
        (Some(least), _) if count < least => Err(format!("at least {least} {of}")),
        (_, Some(most)) if count > most => Err(format!("at most {most} {of}")),
        _ => Ok(()),
    }
}

fn read_number(typed: &str, schema: &NumberSchema) -> Result<Value, String> {
    let wrong = || format!("`{typed}` is not a {}", if is_whole(schema) { "whole number" } else { "number" });
    let value: Value = serde_json::from_str(typed).map_err(|_| wrong())?;
    let number = value.as_f64().ok_or_else(wrong)?;
    if is_whole(schema) && number.fract() != 0.0 {
        return Err(wrong());
    }
    match (schema.minimum, schema.maximum) {
        (Some(least), _) if number < least => Err(format!("at least {least}")),
        (_, Some(most)) if number > most => Err(format!("at most {most}")),
        _ => Ok(value),
    }
}

/// Formats a default: 5, not 5.0, for a whole number.
fn number(value: f64, schema: &NumberSchema) -> Value {
    if is_whole(schema) && value.fract() == 0.0 {
        serde_json::from_str(&value.to_string()).unwrap_or_else(|_| json!(value))
    } else {
        json!(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> PrimitiveSchema {
        Json::parse(text).unwrap().decode().unwrap()
    }

    #[test]
    fn a_field_is_asked_for_with_all_that_is_known_of_it() {
        let check = |text: &str, required: bool, label: &str| {
            let schema = schema(text);
            let (question, limits) = Field { name: "n", schema: &schema, required }.label();
            assert_eq!(format!("{question} {limits}"), label, "{text}");
        };
        check(r#"{"type":"string"}"#, true, "n (text)");
        check(
            r#"{"type":"string","title":"Name","description":"yours","format":"email"}"#,
            true,
            "Name (email)",
        );
        check(r#"{"type":"string","description":"Your name:"}"#, true, "Your name (text)");
        check(r#"{"type":"string"}"#, false, "n (text) [nothing]");
        check(
            r#"{"type":"integer","minimum":1,"maximum":12,"default":2}"#,
            true,
            "n (whole number, 1 to 12) [2]",
        );
        check(r#"{"type":"number","minimum":0.5}"#, true, "n (number, at least 0.5)");
        check(r#"{"type":"boolean","default":false}"#, false, "n (y/n) [n]");
        check(r#"{"type":"string","enum":["a","b"],"default":"b"}"#, true, "n (one of these) [b]");
    }

    #[test]
    fn a_description_is_the_question_or_explains_it() {
        let check = |text: &str, expected: Option<&str>| {
            let schema = schema(text);
            let field = Field { name: "n", schema: &schema, required: true };
            assert_eq!(field.explanation().as_deref(), expected, "{text}");
        };
        check(r#"{"type":"string","title":"Name","description":"yours"}"#, Some("yours"));
        check(r#"{"type":"string","description":"Name?"}"#, None);
        check(r#"{"type":"string","title":"Name"}"#, None);
    }

    #[test]
    fn choices_are_numbered() {
        let schema =
            schema(r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"g"}]}"#);
        assert_eq!(Field { name: "n", schema: &schema, required: true }.choices(), ["1) r (Red)", "2) g"]);
    }

    #[test]
    fn an_answer_fits_its_field_or_is_rejected_with_a_reason() {
        let check = |text: &str, typed: &str, expected: Result<&str, &str>| {
            let schema = schema(text);
            let read = Field { name: "n", schema: &schema, required: true }.read(typed);
            let read = read.map(|value| value.unwrap().as_str().to_owned());
            assert_eq!(read, expected.map(str::to_owned).map_err(str::to_owned), "{text} {typed:?}");
        };
        check(r#"{"type":"string"}"#, "a b", Ok(r#""a b""#));
        check(r#"{"type":"string"}"#, "", Err("an answer is needed here"));
        check(r#"{"type":"string","default":"x"}"#, "", Ok(r#""x""#));
        check(r#"{"type":"string","minLength":3}"#, "ab", Err("at least 3 characters"));
        check(r#"{"type":"string","maxLength":1}"#, "ab", Err("at most 1 characters"));
        check(r#"{"type":"integer"}"#, "4", Ok("4"));
        check(r#"{"type":"integer"}"#, "4.5", Err("`4.5` is not a whole number"));
        check(r#"{"type":"integer"}"#, "four", Err("`four` is not a whole number"));
        check(r#"{"type":"integer","maximum":3}"#, "4", Err("at most 3"));
        check(r#"{"type":"integer","default":3}"#, "", Ok("3"));
        check(r#"{"type":"number","minimum":0}"#, "-0.5", Err("at least 0"));
        check(r#"{"type":"boolean"}"#, "Yes", Ok("true"));
        check(r#"{"type":"boolean"}"#, "maybe", Err("y or n"));
        let one = r#"{"type":"string","oneOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"}]}"#;
        check(one, "green", Ok(r#""g""#));
        check(one, "1", Ok(r#""r""#));
        check(one, "3", Err("`3` is not among the choices"));
        let any = r#"{"type":"array","items":{"type":"string","enum":["a","b"]},"minItems":1,"maxItems":1}"#;
        check(any, "b", Ok(r#"["b"]"#));
        check(any, "a, b", Err("at most 1 choices"));
        check(any, ",", Err("at least 1 choices"));
        check(r#"{"type":"unheard-of"}"#, "[1]", Ok("[1]"));
    }

    #[test]
    fn what_is_not_needed_can_be_left_out() {
        let read = Field { name: "n", schema: &schema(r#"{"type":"integer"}"#), required: false }.read("");
        assert_eq!(read, Ok(None));
    }
}
