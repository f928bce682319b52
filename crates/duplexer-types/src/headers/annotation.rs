//! `x-mcp-header` annotations of an input schema, which are valid on properties only.
//!
//! The walk enters every subschema in order to reject misplaced annotations. It follows no `$ref` and ignores values
//! (`default`, `const`, `enum`, `examples`).

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::json::Json;

const ANNOTATION: &str = "x-mcp-header";

/// Keywords that hold one schema, or an array of schemas.
const SCHEMAS: [&str; 16] = [
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords that hold schemas by name, apart from `properties`.
const NAMED_SCHEMAS: [&str; 5] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties"];

/// Invalid annotation. It excludes the schema from mirroring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAnnotation {
    /// JSON pointer to the schema that carries the annotation.
    pub at: String,
    /// What is invalid about it.
    pub reason: Reason,
}

/// Reason why an annotation is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The annotation is not on a property that is reached by names alone.
    Misplaced,
    /// The value is not a string.
    NotAString,
    /// The value cannot be part of a header name.
    NotAToken,
    /// The type of the property cannot be mirrored in a header.
    WrongType,
    /// Another annotation has the same value, compared case-insensitively.
    Repeated,
    /// The schema is nested too deeply to be read.
    Unreadable,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Misplaced => {
                "only a property reached from the root through `properties` alone may carry it"
            }
            Self::NotAString => "its value must be a string",
            Self::NotAToken => {
                "its value must be a non-empty HTTP token (letters, digits and !#$%&'*+-.^_`|~)"
            }
            Self::WrongType => {
                "the `type` of its property must be exactly one of string, integer and boolean"
            }
            Self::Repeated => "another property has the same value (compared without case)",
            Self::Unreadable => "the schema nests too deeply to be read",
        })
    }
}

impl fmt::Display for InvalidAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = if self.at.is_empty() { "the root" } else { &self.at };
        write!(f, "invalid `{ANNOTATION}` at {at}: {}", self.reason)
    }
}

impl std::error::Error for InvalidAnnotation {}

/// Annotated property.
#[derive(Debug)]
pub(super) struct Annotated {
    pub(super) token: String,
    pub(super) path: Vec<String>,
    pub(super) kind: Kind,
}

/// Kind of value of an annotated property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
}

/// Returns all annotations of a schema, in the order of their property paths.
pub(super) fn collect(schema: &Json) -> Result<Vec<Annotated>, InvalidAnnotation> {
    // Most schemas have no annotation and need not be parsed.
    if !mentions_annotation(schema.as_str()) {
        return Ok(Vec::new());
    }
    // The parser rejects more than 127 levels, which bounds the recursion of the walk.
    let schema: Value =
        schema.decode().map_err(|_| InvalidAnnotation { at: String::new(), reason: Reason::Unreadable })?;
    let mut walk = Walk::default();
    walk.schema(&schema, Position::Root)?;
    Ok(walk.found)
}

/// Whether the schema can contain an annotation. A key with escapes would hide it from a plain search.
fn mentions_annotation(schema: &str) -> bool {
    schema.contains(ANNOTATION) || schema.contains('\\')
}

/// Position of a schema.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    /// Reached through `properties` alone.
    Property,
    Elsewhere,
}

#[derive(Default)]
struct Walk<'s> {
    /// Steps from the root; those of a [`Position::Property`] are `properties` and a name, alternately.
    pointer: Vec<Step<'s>>,
    tokens: HashSet<String>,
    found: Vec<Annotated>,
}

#[derive(Clone, Copy)]
enum Step<'s> {
    Member(&'s str),
    Item(usize),
}

impl<'s> Walk<'s> {
    fn schema(&mut self, schema: &'s Value, position: Position) -> Result<(), InvalidAnnotation> {
        let Value::Object(members) = schema else {
            return Ok(());
        };
        if let Some(annotation) = members.get(ANNOTATION) {
            self.annotation(annotation, members.get("type"), position)
                .map_err(|reason| self.invalid(reason))?;
        }
        for (keyword, value) in members {
            self.pointer.push(Step::Member(keyword));
            self.keyword(keyword, value, position)?;
            self.pointer.pop();
        }
        Ok(())
    }

    fn keyword(
        &mut self,
        keyword: &str,
        value: &'s Value,
        position: Position,
    ) -> Result<(), InvalidAnnotation> {
        match value {
            Value::Object(named) if keyword == "properties" => {
                let below =
                    if position == Position::Elsewhere { Position::Elsewhere } else { Position::Property };
                self.named(named, below)
            }
            Value::Object(named) if NAMED_SCHEMAS.contains(&keyword) => {
                self.named(named, Position::Elsewhere)
            }
            Value::Object(_) if SCHEMAS.contains(&keyword) => self.schema(value, Position::Elsewhere),
            Value::Array(items) if SCHEMAS.contains(&keyword) => {
                for (index, item) in items.iter().enumerate() {
                    self.pointer.push(Step::Item(index));
                    self.schema(item, Position::Elsewhere)?;
                    self.pointer.pop();
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn named(
        &mut self,
        schemas: &'s Map<String, Value>,
        position: Position,
    ) -> Result<(), InvalidAnnotation> {
        for (name, schema) in schemas {
            self.pointer.push(Step::Member(name));
            self.schema(schema, position)?;
            self.pointer.pop();
        }
        Ok(())
    }

    fn annotation(&mut self, value: &Value, kind: Option<&Value>, position: Position) -> Result<(), Reason> {
        if position != Position::Property {
            return Err(Reason::Misplaced);
        }
        let token = value.as_str().ok_or(Reason::NotAString)?;
        if token.is_empty() || !token.bytes().all(is_token_byte) {
            return Err(Reason::NotAToken);
        }
        let kind = match kind.and_then(Value::as_str) {
            Some("string" | "boolean") => Kind::Text,
            Some("integer") => Kind::Integer,
            _ => return Err(Reason::WrongType),
        };
        if !self.tokens.insert(token.to_ascii_lowercase()) {
            return Err(Reason::Repeated);
        }
        let names = self.pointer.iter().skip(1).step_by(2);
        let path = names.map(ToString::to_string).collect();
        self.found.push(Annotated { token: token.to_owned(), path, kind });
        Ok(())
    }

    fn invalid(&self, reason: Reason) -> InvalidAnnotation {
        let escaped =
            |step: &Step<'_>| format!("/{}", step.to_string().replace('~', "~0").replace('/', "~1"));
        InvalidAnnotation { at: self.pointer.iter().map(escaped).collect(), reason }
    }
}

impl fmt::Display for Step<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Member(name) => f.write_str(name),
            Self::Item(index) => index.fmt(f),
        }
    }
}

/// `tchar` of RFC 9110.
fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn verdict(schema: Value) -> Result<Vec<String>, (String, Reason)> {
        let found = collect(&Json::from(schema)).map_err(|invalid| (invalid.at, invalid.reason))?;
        Ok(found.into_iter().map(|one| format!("{}={}", one.token, one.path.join("."))).collect())
    }

    /// HDR-03, P-HDR-26.
    #[test]
    fn annotations_on_plain_properties_are_found_at_their_path() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "n": { "type": "integer", "x-mcp-header": "N!#$%&'*+-.^_`|~9" },
            "on": { "type": "boolean", "x-mcp-header": "On" },
            "x-mcp-header": { "type": "number" },
            "deep": { "properties": { "properties": { "type": "string", "x-mcp-header": "Inner" } } },
            "other": { "type": ["string", "null"], "default": { "x-mcp-header": 1 }, "enum": [{ "x-mcp-header": 1 }],
                       "const": { "x-mcp-header": 1 }, "examples": [{ "x-mcp-header": 1 }] },
        }});
        let expected = ["Inner=deep.properties", "N!#$%&'*+-.^_`|~9=n", "On=on", "Region=region"];
        assert_eq!(verdict(schema), Ok(expected.map(ToOwned::to_owned).to_vec()));
        for none in
            [json!(true), json!([]), json!({}), json!({ "$ref": "#/$defs/a" }), json!("\\x-mcp-header")]
        {
            assert_eq!(verdict(none), Ok(Vec::new()));
        }
    }

    /// HDR-03: each fault of an annotation has its own reason.
    #[test]
    fn each_fault_has_its_reason() {
        let check = |property: Value, reason: Reason| {
            let schema = json!({ "properties": { "a/b": property } });
            assert_eq!(verdict(schema.clone()), Err(("/properties/a~1b".to_owned(), reason)), "{schema}");
        };
        for value in [json!(null), json!(1), json!({}), json!([])] {
            check(json!({ "type": "string", "x-mcp-header": value }), Reason::NotAString);
        }
        for value in ["", "a b", "a:b", "é", "a\u{7}", "a\r\nb", "a/b", "(a)"] {
            check(json!({ "type": "string", "x-mcp-header": value }), Reason::NotAToken);
        }
        for kind in
            [json!("number"), json!("object"), json!("array"), json!("null"), json!(["string"]), json!(null)]
        {
            check(json!({ "type": kind, "x-mcp-header": "A" }), Reason::WrongType);
        }
        check(json!({ "$ref": "#/$defs/s", "x-mcp-header": "A" }), Reason::WrongType);
        let twice = json!({ "properties": {
            "a": { "type": "string", "x-mcp-header": "Region" },
            "b": { "properties": { "c": { "type": "string", "x-mcp-header": "rEGION" } } },
        }});
        assert_eq!(verdict(twice), Err(("/properties/b/properties/c".to_owned(), Reason::Repeated)));
    }

    /// HDR-03: the walk enters every subschema to find misplaced annotations.
    #[test]
    fn an_annotation_anywhere_else_is_misplaced() {
        let annotated = || json!({ "type": "string", "x-mcp-header": "A" });
        assert_eq!(verdict(annotated()), Err((String::new(), Reason::Misplaced)));
        for keyword in SCHEMAS {
            for (schema, at) in [
                (json!({ keyword: annotated() }), format!("/{keyword}")),
                (json!({ keyword: [true, annotated()] }), format!("/{keyword}/1")),
                (
                    json!({ keyword: { "properties": { "p": annotated() } } }),
                    format!("/{keyword}/properties/p"),
                ),
            ] {
                assert_eq!(verdict(schema), Err((at, Reason::Misplaced)));
            }
        }
        for keyword in NAMED_SCHEMAS {
            let schema = json!({ "properties": { "p": { keyword: { "q": annotated() } } } });
            assert_eq!(verdict(schema), Err((format!("/properties/p/{keyword}/q"), Reason::Misplaced)));
        }
    }

    #[test]
    fn an_escaped_annotation_is_found_too() {
        let schema =
            Json::parse(r#"{"properties":{"a":{"type":"string","\u0078-mcp-header":"A"}}}"#).unwrap();
        assert_eq!(collect(&schema).unwrap().len(), 1);
    }

    /// Robustness C15: large and deeply nested schemas are handled in bounded time and depth.
    #[test]
    fn large_and_deep_schemas_are_handled() {
        let levels = 100_000;
        let deep = format!(r#"{}{{"x-mcp-header":"A"}}{}"#, r#"{"not":"#.repeat(levels), "}".repeat(levels));
        assert_eq!(collect(&Json::parse(&deep).unwrap()).unwrap_err().reason, Reason::Unreadable);
        let property = |index: usize| {
            (format!("p{index}"), json!({ "type": "string", "x-mcp-header": format!("H{index}") }))
        };
        let wide = json!({ "properties": (0..20_000).map(property).collect::<Map<_, _>>() });
        assert_eq!(collect(&Json::from(wide)).unwrap().len(), 20_000);
    }

    #[test]
    fn the_text_names_position_and_reason() {
        let invalid = collect(&Json::from(json!({ "x-mcp-header": "A" }))).unwrap_err();
        assert_eq!(
            invalid.to_string(),
            "invalid `x-mcp-header` at the root: only a property reached from the root through `properties` alone may carry it",
        );
    }
}
