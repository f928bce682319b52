//! Decodes what clients send and, if it does not fit, lists every violation of the schema.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Generated;
use super::validate::{self, SchemaValidator, Violation};

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

    /// Decodes JSON text, or lists every violation of the schema.
    pub(crate) fn decode<T: DeserializeOwned>(&self, text: &str) -> Result<T, Vec<Violation>> {
        let decoded = match serde_json::from_str(text) {
            Ok(decoded) if !self.validates_always => return Ok(decoded),
            decoded => decoded,
        };
        let violations = self.validator.violations(&serde_json::from_str(text).unwrap_or_default());
        match decoded {
            Ok(decoded) if violations.is_empty() => Ok(decoded),
            // The type is stricter than its schema: only the decoder knows the reason.
            Err(error) if violations.is_empty() => {
                Err(vec![Violation { at: String::new(), what: validate::reason(&error) }])
            }
            _ => Err(violations),
        }
    }
}
