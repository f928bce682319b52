//! Looks at values through a schema and says what is wrong with them, in words that a model can act on.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::OnceLock;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// How many faults are listed, and how much of a wrong value is shown.
const LISTED: usize = 20;
const SHOWN: usize = 80;

/// A schema that can look at values. It is compiled when it is first needed, or when somebody wants to know whether it can
/// be.
pub(crate) struct SchemaValidator {
    schema: Value,
    compiled: OnceLock<Result<Validator, String>>,
}

impl SchemaValidator {
    pub(crate) fn new(schema: Value) -> Self {
        Self { schema, compiled: OnceLock::new() }
    }

    /// Why the schema cannot be used, if it cannot. Its dialect is the one it names, 2020-12 if it names none. References to
    /// other documents are never fetched.
    pub(crate) fn compile(&self) -> Result<&Validator, &str> {
        let compiled = self
            .compiled
            .get_or_init(|| jsonschema::options().build(&self.schema).map_err(|error| error.to_string()));
        compiled.as_ref().map_err(String::as_str)
    }

    /// Every fault of a value; none if the schema itself is of no use.
    pub(crate) fn faults(&self, value: &Value) -> Vec<Violation> {
        let Ok(validator) = self.compile() else { return Vec::new() };
        let mut faults = Vec::new();
        for error in validator.iter_errors(value) {
            describe(&error, &mut faults);
            if faults.len() > LISTED {
                break;
            }
        }
        faults
    }
}

impl std::fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SchemaValidator").field(&self.schema).finish()
    }
}

/// One thing that is wrong: where, and what was expected instead of what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// A JSON pointer.
    pub(crate) at: String,
    pub(crate) what: String,
}

/// All faults in one text.
pub(crate) fn report(headline: &str, faults: &[Violation]) -> String {
    let mut text = headline.to_owned();
    for Violation { at, what } in faults.iter().take(LISTED) {
        let at = if at.is_empty() { "(the whole)" } else { at };
        let _ = write!(text, "\n- {at}: {what}");
    }
    if faults.len() > LISTED {
        text.push_str("\n- and more");
    }
    text
}

fn describe(error: &ValidationError<'_>, faults: &mut Vec<Violation>) {
    let at = error.instance_path().to_string();
    let mut fault = |at: String, what: String| faults.push(Violation { at, what });
    let got = || shown(error.instance());
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().map_or_else(|| property.to_string(), str::to_owned);
            fault(format!("{at}/{}", escaped(&name)), "required, but missing".to_owned());
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            for name in unexpected {
                fault(format!("{at}/{}", escaped(name)), "there is no such member; leave it out".to_owned());
            }
        }
        kind => fault(at, format!("expected {}, got {}", expectation(kind), got())),
    }
}

fn expectation(kind: &Kind) -> String {
    match kind {
        Kind::Type { kind: TypeKind::Single(one) } => noun(&one.to_string()).into_owned(),
        Kind::Type { kind: TypeKind::Multiple(several) } => {
            let names: Vec<_> = several.iter().map(|one| noun(&one.to_string()).into_owned()).collect();
            names.join(" or ")
        }
        Kind::Enum { options } => choices(options.as_array().map(Vec::as_slice).unwrap_or_default()),
        Kind::Constant { expected_value } => shown(expected_value),
        Kind::Maximum { limit } => format!("at most {limit}"),
        Kind::Minimum { limit } => format!("at least {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("at least {limit} characters"),
        Kind::MaxLength { limit } => format!("at most {limit} characters"),
        Kind::MinItems { limit } => format!("at least {limit} items"),
        Kind::MaxItems { limit } => format!("at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("no more than {limit} items"),
        Kind::MinProperties { limit } => format!("at least {limit} members"),
        Kind::MaxProperties { limit } => format!("at most {limit} members"),
        Kind::Pattern { pattern } => format!("text that matches {pattern}"),
        Kind::Format { format } => format!("text of the form `{format}`"),
        Kind::UniqueItems => "items that differ from each other".to_owned(),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => alternatives(context),
        Kind::OneOfMultipleValid { .. } => "exactly one of the allowed forms".to_owned(),
        Kind::FalseSchema => "nothing here".to_owned(),
        _ => "something else".to_owned(),
    }
}

/// What each form would have wanted, where that can be said in a few words.
fn alternatives(context: &[Vec<ValidationError<'static>>]) -> String {
    let mut wanted: Vec<String> = Vec::new();
    for errors in context {
        match &**errors {
            [error] => match error.kind() {
                Kind::Required { property } => wanted.push(format!("an object with {property}")),
                kind => wanted.push(expectation(kind)),
            },
            _ => return "one of the allowed forms".to_owned(),
        }
    }
    wanted.dedup();
    wanted.join(" or ")
}

fn choices(options: &[Value]) -> String {
    let all: Vec<String> = options.iter().map(shown).collect();
    if let [one] = &*all { one.clone() } else { format!("one of {}", all.join(", ")) }
}

fn noun(name: &str) -> Cow<'_, str> {
    match name {
        "null" => "null".into(),
        "array" | "object" | "integer" => format!("an {name}").into(),
        _ => format!("a {name}").into(),
    }
}

/// A value as JSON, cut where it gets long.
fn shown(value: &Value) -> String {
    let mut text = value.to_string();
    if let Some((at, _)) = text.char_indices().nth(SHOWN) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What serde says, without the place in a text that nobody has seen.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(schema: Value, value: &Value) -> Vec<String> {
        let faults = SchemaValidator::new(schema).faults(value);
        faults.into_iter().map(|Violation { at, what }| format!("{at}: {what}")).collect()
    }

    /// TOOL-01, peers B6: every fault, with its place, what was expected and what was there.
    #[test]
    fn every_fault_is_listed_with_its_place() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": { "type": "integer" },
                "b": { "type": "string", "maxLength": 3 },
                "c": { "enum": ["x", "y"] },
                "d/e": { "items": { "type": "number", "minimum": 1 } },
            },
            "required": ["a", "z"],
            "additionalProperties": false,
        });
        let mut faults =
            told(schema, &json!({"a": "five", "b": "long", "c": "z", "d/e": [2, 0], "extra": 1}));
        faults.sort();
        assert_eq!(
            faults,
            [
                r#"/a: expected an integer, got "five""#,
                r#"/b: expected at most 3 characters, got "long""#,
                r#"/c: expected one of "x", "y", got "z""#,
                "/d~1e/1: expected at least 1, got 0",
                "/extra: there is no such member; leave it out",
                "/z: required, but missing",
            ]
        );
    }

    #[test]
    fn long_values_and_long_lists_are_cut() {
        let faults = told(json!({"items": {"type": "string"}}), &Value::from((0..100).collect::<Vec<i32>>()));
        assert_eq!(faults.len(), LISTED + 1);
        let long = "x".repeat(10_000);
        let faults = told(json!({"type": "integer"}), &json!(long));
        assert!(faults[0].len() < 200);
    }

    /// P-SCH-1, P-SCH-2: 2020-12 unless the schema says otherwise, and a clear error for what nobody here can read.
    #[test]
    fn the_dialect_is_what_the_schema_says() {
        // Two schemas that mean the same, each in its dialect: a text, then only numbers.
        let pair = |dialect: Option<&str>, first: &str, rest: &str| {
            let mut schema = json!({ first: [{ "type": "string" }], rest: { "type": "number" } });
            if let Some(dialect) = dialect {
                schema["$schema"] = json!(dialect);
            }
            schema
        };
        let draft_7 = "http://json-schema.org/draft-07/schema#";
        let newest = "https://json-schema.org/draft/2020-12/schema";
        for schema in [
            pair(None, "prefixItems", "items"),
            pair(Some(newest), "prefixItems", "items"),
            pair(Some(draft_7), "items", "additionalItems"),
        ] {
            let validator = SchemaValidator::new(schema);
            assert_eq!(validator.compile().err(), None);
            assert!(validator.faults(&json!(["a", 1, 2])).is_empty());
            assert_eq!(validator.faults(&json!([1, "b"])).len(), 2);
        }
        for unknown in ["urn:x", "https://example.com/schema"] {
            let validator = SchemaValidator::new(json!({ "$schema": unknown, "type": "object" }));
            let error = validator.compile().expect_err("nobody knows it");
            assert!(error.contains(unknown), "{error}");
        }
    }

    /// P-SCH-1: the keywords of 2020-12 are understood.
    #[test]
    fn the_newest_keywords_are_understood() {
        let schema = json!({
            "type": "object",
            "$defs": { "place": { "$anchor": "place", "type": "string", "minLength": 2 } },
            "allOf": [{ "properties": { "from": { "$ref": "#place" } } }],
            "properties": { "to": { "$ref": "#/$defs/place" } },
            "dependentRequired": { "to": ["from"] },
            "unevaluatedProperties": false,
        });
        assert_eq!(told(schema.clone(), &json!({"from": "ab", "to": "cd"})), [""; 0]);
        assert_eq!(told(schema.clone(), &json!({"to": "cd"})).len(), 1);
        assert_eq!(told(schema, &json!({"from": "ab", "x": 1})).len(), 1);
    }

    /// P-SCH-6: what a caller sends cannot make a schema's pattern or its reference to itself run for ever.
    #[test]
    fn values_are_judged_in_bounded_time() {
        assert_eq!(told(json!({"$ref": "#"}), &json!({})), [""; 0]);
        for pattern in ["^(a+)+$", "^(?=(a+)+$)(a+)+$"] {
            let faults = told(json!({ "pattern": pattern }), &json!("a".repeat(30_000) + "!"));
            assert_eq!(faults.len(), 1, "{pattern}");
        }
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let deep: Value = serde_json::from_str(&deep).unwrap();
        let nested = json!({"type": "array", "items": {"$ref": "#"}, "maxItems": 1});
        assert_eq!(told(nested, &deep), [""; 0]);
    }

    /// TOOL-05, P-SCH-5: a schema is never fetched.
    #[test]
    fn references_to_other_documents_are_refused() {
        let validator = SchemaValidator::new(json!({"$ref": "https://example.com/schema.json"}));
        assert!(validator.compile().is_err());
    }
}
