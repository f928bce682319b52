//! Validation of tool results against the output schemas of the tools (feature `schema`).
//!
//! Schemas are taken from the session's `tools/list` results and compiled when they are first needed, once per listing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use duplexer_schema::Schema;
use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use duplexer_types::tool::{CallToolResult, ListToolsResult};
use serde_json::Value;

use super::{Client, ClientBuilder};
use duplexer_core::dispatch::lock;
use duplexer_core::error::BoxError;

/// Maximum number of tools and bytes of schemas that a session remembers. Beyond it all are forgotten.
const MAX_TOOLS: usize = 10_000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Which results of tools are validated against the output schema of the tool (feature `schema`).
///
/// ```
/// use duplexer_client::{Client, OutputValidation};
///
/// let strict = Client::builder("my-agent", "1.0").output_validation(OutputValidation::Always);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputValidation {
    /// None.
    Off,
    /// Results of tools that the session has listed.
    #[default]
    Listed,
    /// All results. A tool that is unknown is looked up with `tools/list` when it has been called.
    Always,
}

impl ClientBuilder {
    /// Sets which results of tools are validated. Default: [`OutputValidation::Listed`].
    ///
    /// A result that does not match fails with [`ClientError::Validation`](super::ClientError::Validation). Failures of
    /// tools (`isError`) are not validated. A [`Self::result_validator`] replaces this validation.
    pub fn output_validation(mut self, validation: OutputValidation) -> Self {
        self.output_validation = validation;
        self
    }
}

/// Output schemas of a session's tools.
pub(super) struct OutputSchemas {
    validation: OutputValidation,
    tools: Mutex<Tools>,
}

#[derive(Default)]
struct Tools {
    by_name: HashMap<String, OutputSchema>,
    bytes: usize,
}

#[derive(Clone)]
enum OutputSchema {
    /// The tool has none.
    Absent,
    Listed(Json),
    Compiled(Json, Arc<Schema>),
    /// It cannot be compiled; that was logged.
    Unusable(Json),
}

impl OutputSchema {
    fn text(&self) -> Option<&Json> {
        match self {
            Self::Absent => None,
            Self::Listed(text) | Self::Compiled(text, _) | Self::Unusable(text) => Some(text),
        }
    }
}

impl OutputSchemas {
    /// Creates the validator of one session.
    pub(super) fn of(validation: OutputValidation) -> Option<Self> {
        (validation != OutputValidation::Off).then(|| Self { validation, tools: Mutex::default() })
    }

    /// Returns whether the result of a request is validated, or is a list of tools. `tool` is the tool that the request
    /// calls. A tool without an output schema is to cost no more than this look-up.
    pub(super) fn concern(&self, method: Method, tool: Option<&str>) -> bool {
        let Some(tool) = tool else { return method == Method::ToolsList };
        match lock(&self.tools).by_name.get(tool) {
            None => self.validation == OutputValidation::Always,
            Some(OutputSchema::Absent | OutputSchema::Unusable(_)) => false,
            Some(OutputSchema::Listed(_) | OutputSchema::Compiled(..)) => true,
        }
    }

    /// Validates the result of a call of a tool, or remembers the schemas of a list of tools.
    pub(super) async fn validate(
        &self,
        client: &Client,
        tool: Option<&str>,
        result: &str,
    ) -> Result<(), BoxError> {
        if let Some(tool) = tool {
            return self.check(client, tool, result).await;
        }
        if let Ok(page) = serde_json::from_str(result) {
            self.remember(page);
        }
        Ok(())
    }

    /// Remembers the schemas of a page of tools. A schema that has not changed stays compiled.
    fn remember(&self, page: ListToolsResult) {
        let mut tools = lock(&self.tools);
        for tool in page.tools {
            let listed = tool.output_schema;
            if tools.by_name.get(&tool.name).is_some_and(|known| known.text() == listed.as_ref()) {
                continue;
            }
            let size = tool.name.len() + listed.as_ref().map_or(0, |schema| schema.as_str().len());
            if tools.by_name.len() >= MAX_TOOLS || tools.bytes + size > MAX_BYTES {
                *tools = Tools::default();
            }
            tools.bytes += size;
            tools.by_name.insert(tool.name, listed.map_or(OutputSchema::Absent, OutputSchema::Listed));
        }
    }

    /// Returns the compiled schema of a tool, if it has one.
    async fn schema(&self, tool: &str, client: &Client) -> Option<Arc<Schema>> {
        let mut known = lock(&self.tools).by_name.get(tool).cloned();
        if known.is_none() && self.validation == OutputValidation::Always {
            // The pages reach `remember` as results of their own.
            if let Err(error) = Box::pin(client.all_tools()).await {
                tracing::warn!(%error, tool, "the output schema of a tool could not be requested");
            }
            known = lock(&self.tools).by_name.get(tool).cloned();
        }
        match known? {
            OutputSchema::Compiled(_, schema) => Some(schema),
            OutputSchema::Listed(text) => self.compile(tool, text),
            OutputSchema::Absent | OutputSchema::Unusable(_) => None,
        }
    }

    fn compile(&self, tool: &str, text: Json) -> Option<Arc<Schema>> {
        let compiled =
            text.decode::<Value>().map_err(BoxError::from).and_then(|schema| Ok(Schema::compile(&schema)?));
        let (entry, schema) = match compiled {
            Ok(schema) => {
                let schema = Arc::new(schema);
                (OutputSchema::Compiled(text, Arc::clone(&schema)), Some(schema))
            }
            Err(error) => {
                tracing::warn!(%error, tool, "results of a tool are not validated: its output schema is unusable");
                (OutputSchema::Unusable(text), None)
            }
        };
        lock(&self.tools).by_name.insert(tool.to_owned(), entry);
        schema
    }

    async fn check(&self, client: &Client, name: &str, result: &str) -> Result<(), BoxError> {
        let Some(schema) = self.schema(name, client).await else { return Ok(()) };
        let result: CallToolResult = serde_json::from_str(result)?;
        if result.is_error == Some(true) {
            return Ok(());
        }
        let Some(content) = result.structured_content else {
            return Err(
                format!("the tool `{name}` has an output schema and returned no structured content").into()
            );
        };
        let report = schema.check(&content.decode()?);
        if report.is_empty() {
            return Ok(());
        }
        Err(format!("the result of the tool `{name}` does not match its output schema:\n{report}").into())
    }
}
