//! What has been said about a tool before it is offered: its definition, and how it is run.

use std::sync::Arc;
use std::time::Duration;

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::tool as wire;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::output::OutputSchema;
use super::ui::ToolUi;
use crate::catalog::CatalogError;
use crate::schema;
use crate::schema::validate::SchemaValidator;

/// Whatever has been said about a tool so far.
#[derive(Clone, Debug)]
pub(crate) struct ToolSpec {
    pub(crate) tool: wire::Tool,
    /// The output schema for revisions whose structured content is always an object.
    pub(crate) wrapped_output: Option<Json>,
    pub(crate) headers: Option<Arc<ParamHeaders>>,
    pub(crate) limits: Limits,
    /// The view it brings, and who calls it.
    pub(crate) ui: Option<ToolUi>,
    pub(crate) fault: Option<CatalogError>,
}

/// How a tool is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) checks_output: bool,
}

impl ToolSpec {
    pub(super) fn new(name: String) -> Self {
        let limits = Limits { timeout: None, checks_output: cfg!(debug_assertions) };
        let tool = wire::Tool::new(name, Json::object());
        Self { tool, wrapped_output: None, headers: None, limits, ui: None, fault: None }
    }

    pub(super) fn fail(&mut self, reason: impl Into<String>) {
        let tool = self.tool.name.clone();
        self.fault.get_or_insert(CatalogError::Schema { tool, reason: reason.into() });
    }

    /// Takes the input schema of a type.
    pub(super) fn arguments<A: JsonSchema + DeserializeOwned>(&mut self) -> ArgumentSchema {
        match schema::of_arguments::<A>() {
            Ok(made) => {
                self.tool.input_schema = schema::render(&made.value, schema::declared_order::<A>());
                let always = made.demands_more;
                self.find_headers();
                ArgumentSchema { validator: Arc::new(SchemaValidator::new(made.value)), always }
            }
            Err(reason) => {
                self.fail(reason);
                ArgumentSchema { validator: Arc::new(SchemaValidator::new(true.into())), always: false }
            }
        }
    }

    /// Takes the input schema as it was written.
    pub(super) fn hand_written(&mut self) -> ArgumentSchema {
        let value: serde_json::Value = self.tool.input_schema.decode().unwrap_or_default();
        if !schema::is_object(&value) {
            self.fail("the root of an input schema says `\"type\": \"object\"`");
        }
        let validator = SchemaValidator::new(value);
        if let Err(reason) = validator.compile() {
            let reason = format!("the input schema cannot be used: {reason}");
            self.fail(reason);
        }
        self.find_headers();
        ArgumentSchema { validator: Arc::new(validator), always: true }
    }

    fn find_headers(&mut self) {
        match ParamHeaders::from_schema(&self.tool.input_schema) {
            Ok(headers) if headers.is_empty() => {}
            Ok(headers) => self.headers = Some(Arc::new(headers)),
            Err(invalid) => self.fail(invalid.to_string()),
        }
    }

    /// Takes what the handler's output says of itself; a schema written by hand goes before it.
    pub(super) fn output(&mut self, declared: &OutputSchema) -> Option<Arc<SchemaValidator>> {
        if let Some(written) = &self.tool.output_schema {
            let validator = SchemaValidator::new(written.decode().unwrap_or_default());
            if let Err(reason) = validator.compile() {
                let reason = format!("the output schema cannot be used: {reason}");
                self.fail(reason);
            }
            return self.limits.checks_output.then(|| Arc::new(validator));
        }
        let schema = declared.schema()?;
        self.tool.output_schema = Some(schema::render(schema, &[]));
        if !schema::is_object(schema) {
            self.wrapped_output = Some(schema::render(&schema::wrapped(schema), &[]));
        }
        self.limits.checks_output.then(|| Arc::new(SchemaValidator::new(schema.clone())))
    }
}

/// How arguments are looked at: after they could not be read, or always.
#[derive(Clone, Debug)]
pub(crate) struct ArgumentSchema {
    pub(crate) validator: Arc<SchemaValidator>,
    pub(crate) always: bool,
}
