//! The input schema of a tool. A schema that follows from a type is derived on first need: a server with many tools would
//! otherwise spend most of its start on schemas.

use std::sync::{Arc, LazyLock};

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::schema;
use crate::schema::arguments::ArgumentSchema;

/// The input schema of a tool, and what follows from it.
#[derive(Debug)]
pub(crate) struct InputSchema {
    /// The schema that clients see.
    pub(crate) listed: Json,
    pub(crate) arguments: ArgumentSchema,
    pub(crate) headers: Option<Arc<ParamHeaders>>,
    /// Why the tool cannot be offered.
    pub(crate) fault: Option<String>,
}

/// An input schema that may not have been derived yet.
#[derive(Debug)]
pub(crate) enum InputSpec {
    Derived(LazyLock<InputSchema>),
    Custom(InputSchema),
}

impl InputSpec {
    /// Derives the schema from the type of the arguments.
    pub(super) fn derived<A: JsonSchema + DeserializeOwned>() -> Self {
        Self::Derived(LazyLock::new(derive::<A>))
    }

    /// Takes a hand-written schema.
    pub(super) fn custom(written: Json) -> Self {
        let value: serde_json::Value = written.decode().unwrap_or_default();
        let is_object = schema::is_object(&value);
        let arguments = ArgumentSchema::custom(value);
        let compiled = arguments.compile();
        let mut schema = InputSchema::new(written, arguments);
        if !is_object {
            schema.fail("the root of an input schema says `\"type\": \"object\"`");
        }
        if let Err(reason) = compiled {
            schema.fail(format!("the input schema cannot be used: {reason}"));
        }
        Self::Custom(schema.with_headers())
    }

    /// Takes a schema that another server checks.
    pub(super) fn forwarded(listed: Json) -> Self {
        let mut schema = InputSchema::new(listed, ArgumentSchema::any());
        if let Ok(headers) = ParamHeaders::from_schema(&schema.listed)
            && !headers.is_empty()
        {
            schema.headers = Some(Arc::new(headers));
        }
        Self::Custom(schema)
    }

    /// Returns the schema, which is derived now if it was not needed before.
    pub(crate) fn schema(&self) -> &InputSchema {
        match self {
            Self::Derived(schema) => schema,
            Self::Custom(schema) => schema,
        }
    }

    /// Returns why the tool cannot be offered, as far as that is known without deriving the schema.
    pub(super) fn known_fault(&self) -> Option<&str> {
        match self {
            Self::Derived(_) => None,
            Self::Custom(schema) => schema.fault.as_deref(),
        }
    }
}

fn derive<A: JsonSchema + DeserializeOwned>() -> InputSchema {
    InputSchema::of(schema::of_arguments::<A>())
}

impl InputSchema {
    /// Separate from [`derive`], which is compiled for each type.
    fn of(generated: Result<schema::Generated, String>) -> Self {
        let generated = match generated {
            Ok(generated) => generated,
            Err(reason) => {
                let mut schema = Self::new(Json::object(), ArgumentSchema::any());
                schema.fail(reason);
                return schema;
            }
        };
        let listed = generated.listed.clone();
        // Only schemas that refer to themselves are compiled here: the others cannot be ambiguous.
        let can_be_ambiguous = listed.as_str().contains("\"$ref\"");
        let arguments = ArgumentSchema::derived(generated);
        let ambiguity = if can_be_ambiguous { arguments.ambiguity() } else { None };
        let mut schema = Self::new(listed, arguments).with_headers();
        if let Some(reason) = ambiguity {
            schema.fail(reason);
        }
        schema
    }

    fn new(listed: Json, arguments: ArgumentSchema) -> Self {
        Self { listed, arguments, headers: None, fault: None }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        self.fault.get_or_insert(reason.into());
    }

    /// Reads the header annotations.
    fn with_headers(mut self) -> Self {
        match ParamHeaders::from_schema(&self.listed) {
            Ok(headers) if headers.is_empty() => {}
            Ok(headers) => self.headers = Some(Arc::new(headers)),
            Err(invalid) => self.fail(invalid.to_string()),
        }
        self
    }
}
