//! The settings of a tool.

use std::time::Duration;

use duplexer_types::json::Json;
use duplexer_types::tool::ToolAnnotations;

use super::Tool;
use crate::catalog::settings::shared_settings;
use crate::features::tasks::TaskPolicy;

impl<S> Tool<S> {
    shared_settings!("tool", spec.tool);

    /// Replaces the name.
    pub fn rename(mut self, name: impl Into<String>) -> Self {
        self.spec.tool.name = name.into();
        self
    }

    /// Sets all behaviour hints.
    pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
        self.spec.tool.annotations = Some(annotations);
        self
    }

    /// Hints that the tool does not modify its environment.
    pub fn read_only(self) -> Self {
        self.annotate(|annotations| annotations.read_only_hint(true))
    }

    /// Hints that the tool can perform destructive updates.
    pub fn destructive(self) -> Self {
        self.annotate(|annotations| annotations.destructive_hint(true))
    }

    /// Hints that repeated calls with the same arguments have no additional effect.
    pub fn idempotent(self) -> Self {
        self.annotate(|annotations| annotations.idempotent_hint(true))
    }

    /// Hints that the tool does not interact with anything outside this server.
    pub fn closed_world(self) -> Self {
        self.annotate(|annotations| annotations.open_world_hint(false))
    }

    fn annotate(mut self, set: impl FnOnce(ToolAnnotations) -> ToolAnnotations) -> Self {
        let annotations = self.spec.tool.annotations.take().unwrap_or_else(ToolAnnotations::new);
        self.spec.tool.annotations = Some(set(annotations));
        self
    }

    /// Sets the maximum duration of a call. A call that exceeds it is dropped and returns an error to the model.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.spec.execution.timeout = Some(limit);
        self
    }

    /// Lets calls run as tasks, which outlive their request. The server needs the extension
    /// [`Tasks`](crate::tasks::Tasks). A task without a [`timeout`](Self::timeout) has an hour; time in which the client is asked
    /// does not count.
    pub fn task(mut self, policy: TaskPolicy) -> Self {
        self.spec.execution.task = Some(policy);
        self
    }

    /// Sets the output schema, which is listed verbatim, in place of a derived one. For functions that build their
    /// own [`CallToolResult`](duplexer_types::tool::CallToolResult).
    pub fn output_schema(mut self, schema: impl Into<Json>) -> Self {
        self.spec.set_output_schema(schema.into());
        self
    }

    /// Validates every result against the output schema in release builds too. Debug builds always do.
    pub fn check_output(mut self) -> Self {
        self.spec.output.check = super::spec::Check::Always;
        self
    }
}
