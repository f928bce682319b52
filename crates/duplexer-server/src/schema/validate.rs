//! Validates values against a schema and describes violations in words that a model can act on.

use std::fmt::Write as _;
use std::sync::OnceLock;

use duplexer_schema::{CheckLimits, Schema};
use serde_json::Value;

/// Maximum number of violations in a report.
const LISTED: usize = 20;

/// A schema, compiled on first use.
pub(crate) struct SchemaValidator {
    schema: Value,
    compiled: OnceLock<Result<Schema, String>>,
}

impl SchemaValidator {
    pub(crate) fn new(schema: Value) -> Self {
        Self { schema, compiled: OnceLock::new() }
    }

    /// Compiles the schema. Its dialect is the one it names, or 2020-12. References to other documents are never
    /// fetched; such a schema does not compile.
    pub(crate) fn compile(&self) -> Result<&Schema, &str> {
        let compiled = self.compiled.get_or_init(|| {
            let limits = CheckLimits::default().violations(LISTED + 1);
            Schema::builder().limits(limits).compile(&self.schema).map_err(|error| error.to_string())
        });
        compiled.as_ref().map_err(String::as_str)
    }

    /// Returns why violations of the schema could not be attributed to a form: it refers to itself through alternatives
    /// that have no tag and overlap.
    pub(crate) fn ambiguity(&self) -> Option<String> {
        let schema = self.compile().ok()?;
        schema.ambiguity().map(|found| found.to_string())
    }

    /// Returns every violation of a value; none if the schema does not compile. The number of steps is bounded by the
    /// size of the value.
    pub(crate) fn violations(&self, value: &Value) -> Vec<Violation> {
        let Ok(schema) = self.compile() else { return Vec::new() };
        let report = schema.check(value);
        let found = report.violations().iter();
        found.map(|one| Violation { at: one.pointer().to_owned(), what: one.message() }).collect()
    }
}

impl std::fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SchemaValidator").field(&self.schema).finish()
    }
}

/// One violation: its location, what was expected and what was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Violation {
    /// A JSON pointer.
    pub(crate) at: String,
    pub(crate) what: String,
}

/// Formats violations as one text.
pub(crate) fn report(headline: &str, violations: &[Violation]) -> String {
    let mut text = headline.to_owned();
    for Violation { at, what } in violations.iter().take(LISTED) {
        let at = if at.is_empty() { "(the whole)" } else { at };
        let _ = write!(text, "\n- {at}: {what}");
    }
    if violations.len() > LISTED {
        text.push_str("\n- and more");
    }
    text
}

/// Returns the text of a serde error without its position: the client did not write the text that was parsed.
pub(crate) fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// Describes why a text cannot be read as a value: frames can contain numbers that no double can hold.
pub(crate) fn unreadable(text: &str, error: &serde_json::Error) -> String {
    const SHOWN: usize = 40;
    let line_start: usize =
        text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (line_start + error.column()).min(text.len());
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'e' | b'E' | b'+' | b'-' | b'.');
    let bytes = text.as_bytes();
    // The error lies within the number, or at the byte that follows it.
    let before = bytes[..at].iter().rposition(is_part).map_or(0, |last| last + 1);
    let start = bytes[..before].iter().rposition(|byte| !is_part(byte)).map_or(0, |other| other + 1);
    let number: String =
        bytes[start..].iter().take_while(|byte| is_part(byte)).map(|byte| char::from(*byte)).collect();
    match number.parse::<f64>() {
        Ok(value) if value.is_infinite() && number.len() > SHOWN => {
            format!("the number {}... is out of range", &number[..SHOWN])
        }
        Ok(value) if value.is_infinite() => format!("the number {number} is out of range"),
        _ => reason(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn violations(schema: Value, value: &Value) -> Vec<String> {
        let violations = SchemaValidator::new(schema).violations(value);
        violations.into_iter().map(|Violation { at, what }| format!("{at}: {what}")).collect()
    }

    /// TOOL-01, peers B6: every violation, with its location, what was expected and what was found.
    #[test]
    fn every_violation_is_listed_with_its_location() {
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
        let mut found =
            violations(schema, &json!({"a": "five", "b": "long", "c": "z", "d/e": [2, 0], "extra": 1}));
        found.sort();
        assert_eq!(
            found,
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
        let found =
            violations(json!({"items": {"type": "string"}}), &Value::from((0..100).collect::<Vec<i32>>()));
        assert_eq!(found.len(), LISTED + 1);
        let long = "x".repeat(10_000);
        let found = violations(json!({"type": "integer"}), &json!(long));
        assert!(found[0].len() < 200);
    }

    /// P-SCH-1, P-SCH-2: 2020-12 unless the schema says otherwise, and a clear error for an unknown dialect.
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
            assert!(validator.violations(&json!(["a", 1, 2])).is_empty());
            assert_eq!(validator.violations(&json!([1, "b"])).len(), 2);
        }
        for unknown in ["urn:x", "https://example.com/schema"] {
            let validator = SchemaValidator::new(json!({ "$schema": unknown, "type": "object" }));
            let error = validator.compile().expect_err("the dialect is unknown");
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
        assert_eq!(violations(schema.clone(), &json!({"from": "ab", "to": "cd"})), [""; 0]);
        assert_eq!(violations(schema.clone(), &json!({"to": "cd"})).len(), 1);
        assert_eq!(violations(schema, &json!({"from": "ab", "x": 1})).len(), 1);
    }

    /// P-SCH-6: what a caller sends cannot make a schema's pattern or its reference to itself run indefinitely.
    #[test]
    fn values_are_judged_in_bounded_time() {
        assert_eq!(violations(json!({"$ref": "#"}), &json!({})), [""; 0]);
        let found = violations(json!({ "pattern": "^(a+)+$" }), &json!("a".repeat(30_000) + "!"));
        assert_eq!(found.len(), 1);
        let look_ahead = SchemaValidator::new(json!({ "pattern": "^(?=(a+)+$)(a+)+$" }));
        assert!(look_ahead.compile().is_err(), "a pattern without a bound on its steps does not compile");
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        let deep: Value = serde_json::from_str(&deep).unwrap();
        let nested = json!({"type": "array", "items": {"$ref": "#"}, "maxItems": 1});
        assert_eq!(violations(nested, &deep), [""; 0]);
    }

    /// TOOL-05, P-SCH-5: a schema is never fetched.
    #[test]
    fn references_to_other_documents_are_refused() {
        let validator = SchemaValidator::new(json!({"$ref": "https://example.com/schema.json"}));
        assert!(validator.compile().is_err());
    }
}
