//! Decodes what clients send and, if it does not fit, lists every violation of the schema.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Generated;
use super::validate::{self, SchemaValidator, Violation};

/// Maximum length of a text that is checked where it arrives, on a worker thread of the runtime.
///
/// A check takes up to 128 steps per byte and 32 768 besides, so this is at most half a million steps: a few milliseconds.
pub(crate) const MAX_INLINE: usize = 4 * 1024;

/// The schema of a value that clients send.
#[derive(Debug)]
pub(crate) struct ArgumentSchema {
    validator: SchemaValidator,
    /// The schema requires something that decoding does not check. Otherwise values are validated only if they cannot
    /// be decoded.
    validates_always: bool,
}

impl ArgumentSchema {
    /// A schema derived from the type that values are decoded into.
    pub(crate) fn derived(generated: Generated) -> Self {
        Self { validator: SchemaValidator::new(generated.value), validates_always: generated.demands_more }
    }

    /// A hand-written schema.
    pub(crate) fn custom(schema: Value) -> Self {
        Self { validator: SchemaValidator::new(schema), validates_always: true }
    }

    /// A schema that accepts every value.
    pub(crate) fn any() -> Self {
        Self { validator: SchemaValidator::new(true.into()), validates_always: false }
    }

    /// Derives the schema of a type. A type whose schema cannot be derived accepts every value that it can be decoded from.
    pub(crate) fn of<T: DeserializeOwned + JsonSchema>() -> Self {
        super::of_arguments::<T>().map_or_else(|_| Self::any(), Self::derived)
    }

    /// Returns whether a value that can be decoded is still to be validated.
    pub(crate) fn validates_always(&self) -> bool {
        self.validates_always
    }

    /// Checks that the schema is valid.
    pub(crate) fn compile(&self) -> Result<(), String> {
        self.validator.compile().map(drop).map_err(str::to_owned)
    }

    /// Returns the reason why violations cannot be listed, if the schema is ambiguous.
    pub(crate) fn ambiguity(&self) -> Option<String> {
        self.validator.ambiguity()
    }

    /// Decodes JSON text, or lists every violation of the schema. Returns `None` if the check may take long: then
    /// [`decode`](Self::decode) must run on a thread that may be held up.
    pub(crate) fn decode_inline<T: DeserializeOwned>(&self, text: &str) -> Option<Result<T, Vec<Violation>>> {
        if text.len() <= MAX_INLINE {
            return Some(self.decode(text));
        }
        if self.validates_always {
            return None;
        }
        serde_json::from_str(text).ok().map(Ok)
    }

    /// Decodes JSON text, or lists every violation of the schema.
    pub(crate) fn decode<T: DeserializeOwned>(&self, text: &str) -> Result<T, Vec<Violation>> {
        let decoded = match serde_json::from_str(text) {
            Ok(decoded) if !self.validates_always => return Ok(decoded),
            decoded => decoded,
        };
        let whole = |what| Err(vec![Violation { at: String::new(), what }]);
        let value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return whole(validate::unreadable(text, &error)),
        };
        let violations = self.validator.violations(&value);
        match decoded {
            Ok(decoded) if violations.is_empty() => Ok(decoded),
            // The type is stricter than its schema: only the decoder knows the reason.
            Err(error) if violations.is_empty() => whole(validate::reason(&error)),
            _ => Err(violations),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A number beyond all doubles is named, whether the type or only the schema reads it.
    #[test]
    fn a_number_that_is_out_of_range_is_named() {
        let schema = json!({ "type": "object", "properties": { "size": { "type": "number" } } });
        let text = r#"{"size": 1, "more": ["x", -1e400 ]}"#;
        let refused = |schema: &ArgumentSchema| schema.decode::<Value>(text).unwrap_err();
        let custom = ArgumentSchema::custom(schema.clone());
        let derived = ArgumentSchema { validates_always: false, ..ArgumentSchema::custom(schema) };
        for schema in [custom, derived] {
            let [Violation { at, what }] = &refused(&schema)[..] else { panic!() };
            assert_eq!((at.as_str(), what.as_str()), ("", "the number -1e400 is out of range"));
        }
        let raw = ArgumentSchema::custom(json!({ "type": "object" }));
        let violations = raw.decode::<duplexer_types::json::Json>(text).unwrap_err();
        assert_eq!(violations[0].what, "the number -1e400 is out of range");
    }

    /// Hardening, finding 1: only short texts are checked where they arrive, and long ones that need no check.
    #[test]
    fn long_texts_are_not_checked_inline() {
        #[derive(Debug, serde::Deserialize)]
        struct Text {
            #[expect(dead_code, reason = "only whether it is there matters")]
            text: String,
        }
        let long = format!(r#"{{"text":"{}"}}"#, "x".repeat(MAX_INLINE));
        let wrong = long.replace("text", "test");
        let schema = json!({ "type": "object", "required": ["text"] });
        let always = ArgumentSchema::custom(schema.clone());
        let sometimes = ArgumentSchema { validates_always: false, ..ArgumentSchema::custom(schema) };
        assert!(always.decode_inline::<Value>(r#"{"text":"x"}"#).unwrap().is_ok());
        assert!(always.decode_inline::<Value>("{}").unwrap().is_err());
        assert!(always.decode_inline::<Value>(&long).is_none());
        assert!(sometimes.decode_inline::<Value>(&long).unwrap().is_ok());
        assert!(sometimes.decode_inline::<Text>(&long).unwrap().is_ok());
        assert!(sometimes.decode_inline::<Text>(&wrong).is_none());
        assert!(sometimes.decode::<Text>(&wrong).is_err());
    }
}
