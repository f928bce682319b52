//! A tool before it is registered: its definition and how it runs.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use duplexer_types::json::Json;
use duplexer_types::tool as wire;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::Tool;
use super::entry::ToolEntry;
use super::input::InputSpec;
use super::output::OutputSchema;
use super::ui::ToolUi;
use crate::catalog::CatalogError;
use crate::catalog::draft::check_name;
use crate::catalog::erased::bind;
use crate::features::tasks::{Need, TaskPolicy};
use crate::registry::StateSlot;
use crate::schema::validate::SchemaValidator;

/// The definition of a tool and its settings.
#[derive(Debug)]
pub(crate) struct ToolSpec {
    /// The definition without its schemas.
    pub(crate) tool: wire::ToolDefinition,
    input: InputSpec,
    pub(super) output: OutputSpec,
    pub(super) execution: Execution,
    /// The declaration about views (MCP Apps).
    pub(super) ui: Option<ToolUi>,
}

/// How calls of a tool are run.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    pub(crate) timeout: Option<Duration>,
    /// How calls become tasks, if they can.
    pub(crate) task: Option<TaskPolicy>,
    /// Whether the function blocks a thread.
    pub(crate) blocking: bool,
}

#[derive(Debug)]
pub(super) struct OutputSpec {
    /// What the return type declares.
    schema: OutputSchema,
    /// A hand-written schema, which replaces the derived one.
    custom: Option<Json>,
    pub(super) check: Check,
}

/// Whether the output of a tool is checked against its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    Always,
    /// The schema is only compiled, so that one that cannot be used is found.
    OnlySchema,
    /// Another server is responsible for output and schema.
    Never,
}

/// What a call of a tool is checked against.
#[derive(Debug)]
pub(crate) struct ToolContract {
    pub(crate) input: InputSpec,
    pub(crate) output: OutputContract,
}

/// What a result of a tool is checked against, and how it is shaped.
#[derive(Debug)]
pub(crate) struct OutputContract {
    pub(crate) schema: OutputSchema,
    pub(crate) validator: Option<SchemaValidator>,
    custom: Option<Json>,
    listed: OnceLock<ListedOutput>,
}

/// The output schema that clients see.
#[derive(Debug)]
pub(crate) struct ListedOutput {
    pub(crate) schema: Option<Json>,
    /// The schema for revisions whose structured content is always an object, if that is another one.
    pub(crate) wrapped: Option<Json>,
}

impl ToolSpec {
    /// Derives the input schema from the type of the arguments.
    pub(super) fn derived<A: JsonSchema + DeserializeOwned>(name: String) -> Self {
        Self::new(name, InputSpec::derived::<A>())
    }

    /// Takes a hand-written input schema.
    pub(super) fn custom(name: String, written: Json) -> Self {
        Self::new(name, InputSpec::custom(written))
    }

    fn new(name: String, input: InputSpec) -> Self {
        let output = OutputSpec {
            schema: OutputSchema::unspecified(),
            custom: None,
            check: if cfg!(debug_assertions) { Check::Always } else { Check::OnlySchema },
        };
        let tool = wire::ToolDefinition::new(name, Json::object());
        Self { tool, input, output, execution: Execution::default(), ui: None }
    }

    /// Takes the definition of a tool that another server runs and checks.
    pub(super) fn forwarded(mut tool: wire::ToolDefinition) -> Self {
        let custom = tool.output_schema.take();
        let input = InputSpec::forwarded(std::mem::replace(&mut tool.input_schema, Json::object()));
        let schema = OutputSchema::unspecified();
        let output = OutputSpec { schema, custom, check: Check::Never };
        Self { tool, input, output, execution: Execution::default(), ui: None }
    }

    /// Takes the output schema that the return type declares.
    pub(super) fn returning(mut self, declared: OutputSchema) -> Self {
        self.output.schema = declared;
        self
    }

    /// Replaces the output schema by a hand-written one.
    pub(super) fn set_output_schema(&mut self, schema: Json) {
        self.output.custom = Some(schema);
    }

    /// Returns the definition with its schemas.
    pub(super) fn definition(&self) -> wire::ToolDefinition {
        let mut tool = self.tool.clone();
        tool.input_schema = self.input.schema().listed.clone();
        tool.output_schema = ListedOutput::of(&self.output.schema, self.output.custom.as_ref()).schema;
        tool
    }
}

impl OutputSpec {
    fn contract(self, tool: &str) -> Result<OutputContract, CatalogError> {
        let Self { schema, custom, check } = self;
        let is_checked = check == Check::Always;
        let validator = match &custom {
            _ if check == Check::Never => None,
            Some(written) => {
                let validator = SchemaValidator::new(written.decode().unwrap_or_default());
                if let Err(reason) = validator.compile() {
                    let reason = format!("the output schema cannot be used: {reason}");
                    return Err(CatalogError::Schema { tool: tool.to_owned(), reason });
                }
                is_checked.then_some(validator)
            }
            None if is_checked => {
                schema.structured().map(|schema| SchemaValidator::new(schema.value.clone()))
            }
            None => None,
        };
        Ok(OutputContract { schema, validator, custom, listed: OnceLock::new() })
    }
}

impl OutputContract {
    /// Returns the schema that clients see, which is derived now if it was not needed before.
    pub(crate) fn listed(&self) -> &ListedOutput {
        self.listed.get_or_init(|| ListedOutput::of(&self.schema, self.custom.as_ref()))
    }
}

impl ListedOutput {
    fn of(declared: &OutputSchema, custom: Option<&Json>) -> Self {
        if let Some(custom) = custom {
            return Self { schema: Some(custom.clone()), wrapped: None };
        }
        let Some(derived) = declared.structured() else { return Self { schema: None, wrapped: None } };
        Self { schema: Some(derived.listed.clone()), wrapped: derived.wrapped.clone() }
    }
}

impl<S: Send + Sync + 'static> Tool<S> {
    /// Checks the tool and binds it to its state. Debug builds derive its schemas for that.
    pub(crate) fn into_entry(self, slot: StateSlot<S>) -> Result<ToolEntry, CatalogError> {
        let ToolSpec { mut tool, input, output, execution, ui } = self.spec;
        if let Some(reason) = input.known_fault() {
            return Err(CatalogError::Schema { tool: tool.name, reason: reason.to_owned() });
        }
        let output = output.contract(&tool.name)?;
        check_name("tool", &tool.name)?;
        if let Some(declared) = &ui {
            declared
                .declare(&mut tool.meta)
                .map_err(|reason| CatalogError::Schema { tool: tool.name.clone(), reason })?;
        }
        if let Some(policy) = &execution.task {
            let support = match policy.need {
                Need::Optional => wire::TaskSupport::Optional,
                Need::Required => wire::TaskSupport::Required,
            };
            tool.execution = Some(wire::ToolExecution::new().task_support(support));
        }
        let entry = ToolEntry {
            tool,
            scope: 0,
            contract: Arc::new(ToolContract { input, output }),
            listed: OnceLock::new(),
            execution,
            view: ui.and_then(|ui| ui.resource_uri),
            run: bind(self.run, slot),
        };
        if cfg!(debug_assertions) {
            entry.check()?;
        }
        Ok(entry)
    }
}
