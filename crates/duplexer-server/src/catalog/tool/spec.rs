//! A tool before it is registered: its definition and how it runs.

use std::sync::Arc;
use std::time::Duration;

use duplexer_types::headers::ParamHeaders;
use duplexer_types::json::Json;
use duplexer_types::tool as wire;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Tool;
use super::entry::ToolEntry;
use super::output::OutputSchema;
use super::ui::{self, ToolUi};
use crate::catalog::CatalogError;
use crate::catalog::draft::check_name;
use crate::catalog::erased::bind;
use crate::registry::StateSlot;
use crate::schema;
use crate::schema::arguments::ArgumentSchema;
use crate::schema::validate::SchemaValidator;

/// The definition of a tool, its settings, and the first fault found in them.
#[derive(Debug)]
pub(crate) struct ToolSpec {
    pub(crate) tool: wire::ToolDefinition,
    arguments: ArgumentSchema,
    pub(super) output: OutputSpec,
    headers: Option<Arc<ParamHeaders>>,
    pub(super) timeout: Option<Duration>,
    /// The declaration about views (MCP Apps).
    pub(super) ui: Option<ToolUi>,
    fault: Option<CatalogError>,
}

#[derive(Debug)]
pub(super) struct OutputSpec {
    /// What the return type declares.
    schema: OutputSchema,
    /// A hand-written schema replaces the derived one.
    is_custom: bool,
    /// The schema for revisions whose structured content is always an object.
    wrapped: Option<Json>,
    pub(super) is_checked: bool,
}

/// What a call of a tool is checked against.
#[derive(Debug)]
pub(crate) struct ToolContract {
    pub(crate) arguments: ArgumentSchema,
    pub(crate) output: OutputContract,
}

/// What a result of a tool is checked against, and how it is shaped.
#[derive(Debug)]
pub(crate) struct OutputContract {
    pub(crate) schema: OutputSchema,
    /// The schema for revisions whose structured content is always an object.
    pub(crate) wrapped: Option<Json>,
    pub(crate) validator: Option<SchemaValidator>,
}

impl ToolSpec {
    /// Derives the input schema from the type of the arguments.
    pub(super) fn derived<A: JsonSchema + DeserializeOwned>(name: String) -> Self {
        match schema::of_arguments::<A>() {
            Ok(generated) => {
                let listed = generated.listed.clone();
                // Only schemas that refer to themselves are compiled here: the others cannot be ambiguous.
                let can_be_ambiguous = listed.as_str().contains("\"$ref\"");
                let arguments = ArgumentSchema::derived(generated);
                let ambiguity = if can_be_ambiguous { arguments.ambiguity() } else { None };
                let mut spec = Self::new(name, listed, arguments).with_headers();
                if let Some(reason) = ambiguity {
                    spec.fail(reason);
                }
                spec
            }
            Err(reason) => {
                let mut spec = Self::new(name, Json::object(), ArgumentSchema::any());
                spec.fail(reason);
                spec
            }
        }
    }

    /// Takes a hand-written input schema.
    pub(super) fn custom(name: String, written: Json) -> Self {
        let value: serde_json::Value = written.decode().unwrap_or_default();
        let is_object = schema::is_object(&value);
        let arguments = ArgumentSchema::custom(value);
        let compiled = arguments.compile();
        let mut spec = Self::new(name, written, arguments);
        if !is_object {
            spec.fail("the root of an input schema says `\"type\": \"object\"`");
        }
        if let Err(reason) = compiled {
            spec.fail(format!("the input schema cannot be used: {reason}"));
        }
        spec.with_headers()
    }

    fn new(name: String, input_schema: Json, arguments: ArgumentSchema) -> Self {
        let output = OutputSpec {
            schema: OutputSchema::unspecified(),
            is_custom: false,
            wrapped: None,
            is_checked: cfg!(debug_assertions),
        };
        let tool = wire::ToolDefinition::new(name, input_schema);
        Self { tool, arguments, output, headers: None, timeout: None, ui: None, fault: None }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        let tool = self.tool.name.clone();
        self.fault.get_or_insert(CatalogError::Schema { tool, reason: reason.into() });
    }

    /// Reads the header annotations of the input schema.
    fn with_headers(mut self) -> Self {
        match ParamHeaders::from_schema(&self.tool.input_schema) {
            Ok(headers) if headers.is_empty() => {}
            Ok(headers) => self.headers = Some(Arc::new(headers)),
            Err(invalid) => self.fail(invalid.to_string()),
        }
        self
    }

    /// Takes the output schema that the return type declares.
    pub(super) fn returning(mut self, declared: OutputSchema) -> Self {
        if let Some(schema) = declared.structured() {
            self.tool.output_schema = Some(schema.listed.clone());
            self.output.wrapped.clone_from(&schema.wrapped);
        }
        self.output.schema = declared;
        self
    }

    /// Replaces the output schema by a hand-written one.
    pub(super) fn set_output_schema(&mut self, schema: Json) {
        self.tool.output_schema = Some(schema);
        self.output.wrapped = None;
        self.output.is_custom = true;
    }

    fn output_contract(&self) -> Result<OutputContract, CatalogError> {
        let OutputSpec { schema, is_custom, wrapped, is_checked } = &self.output;
        let validator = match &self.tool.output_schema {
            Some(written) if *is_custom => {
                let validator = SchemaValidator::new(written.decode().unwrap_or_default());
                if let Err(reason) = validator.compile() {
                    let reason = format!("the output schema cannot be used: {reason}");
                    return Err(CatalogError::Schema { tool: self.tool.name.clone(), reason });
                }
                Some(validator)
            }
            _ => schema.structured().map(|schema| SchemaValidator::new(schema.value.clone())),
        };
        let validator = validator.filter(|_| *is_checked);
        Ok(OutputContract { schema: schema.clone(), wrapped: wrapped.clone(), validator })
    }
}

impl<S: Send + Sync + 'static> Tool<S> {
    /// Checks the tool and binds it to its state.
    pub(crate) fn into_entry(self, slot: StateSlot<S>) -> Result<ToolEntry, CatalogError> {
        if let Some(fault) = self.spec.fault {
            return Err(fault);
        }
        let output = self.spec.output_contract()?;
        let ToolSpec { mut tool, arguments, headers, timeout, ui, .. } = self.spec;
        check_name("tool", &tool.name)?;
        if let Some(declared) = &ui {
            ui::declare(&mut tool.meta, declared)
                .map_err(|reason| CatalogError::Schema { tool: tool.name.clone(), reason })?;
        }
        Ok(ToolEntry {
            tool,
            scope: 0,
            contract: Arc::new(ToolContract { arguments, output }),
            headers,
            timeout,
            view: ui.and_then(|ui| ui.resource_uri),
            run: bind(self.run, slot),
        })
    }
}
