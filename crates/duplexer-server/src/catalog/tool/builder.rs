//! A tool on its way: what is said about it, then its function.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use duplexer_types::icon::Icon;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::tool::ToolAnnotations;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::output::ToolOutput;
use super::spec::{ArgumentSchema, ToolSpec};
use super::{RunTool, Tool, run};
use crate::catalog::function::{BlockingFunction, Function};

/// A tool that still lacks its function. `I` says where its input schema comes from.
#[must_use = "a tool is complete once it has its function"]
pub struct ToolBuilder<I = FromType> {
    draft: ToolSpec,
    input: PhantomData<I>,
}

/// The input schema follows from the type of the arguments.
#[derive(Debug)]
pub struct FromType;
/// The input schema was written by hand.
#[derive(Debug)]
pub struct HandWritten;

macro_rules! settings {
    ($($owner:tt)*) => {
        $($owner)* {
            /// Its name, for people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.draft.tool.title = Some(title.into());
                self
            }

            /// What it does, for the model.
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.draft.tool.description = Some(description.into());
                self
            }

            /// Hints about what it does.
            pub fn annotations(mut self, annotations: ToolAnnotations) -> Self {
                self.draft.tool.annotations = Some(annotations);
                self
            }

            /// It changes nothing: a hint.
            pub fn read_only(self) -> Self {
                self.annotate(|annotations| annotations.read_only_hint(true))
            }

            /// It may destroy something: a hint.
            pub fn destructive(self) -> Self {
                self.annotate(|annotations| annotations.destructive_hint(true))
            }

            /// Doing it twice does no more than doing it once: a hint.
            pub fn idempotent(self) -> Self {
                self.annotate(|annotations| annotations.idempotent_hint(true))
            }

            /// It deals with nothing outside this server: a hint.
            pub fn closed_world(self) -> Self {
                self.annotate(|annotations| annotations.open_world_hint(false))
            }

            fn annotate(mut self, set: impl FnOnce(ToolAnnotations) -> ToolAnnotations) -> Self {
                let annotations = self.draft.tool.annotations.take().unwrap_or_else(ToolAnnotations::new);
                self.draft.tool.annotations = Some(set(annotations));
                self
            }

            /// Pictures.
            pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
                self.draft.tool.icons = Some(icons.into());
                self
            }

            /// One member of `_meta`.
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
                self.draft.tool.meta.get_or_insert_with(JsonObject::new).insert(key, value.into());
                self
            }

            /// How long it may take. After that its future is dropped and the model is into_outcome.
            pub fn timeout(mut self, limit: Duration) -> Self {
                self.draft.limits.timeout = Some(limit);
                self
            }
        }
    };
}

settings!(impl<I> ToolBuilder<I>);
settings!(impl<S> Tool<S>);

impl ToolBuilder {
    pub(super) fn named(name: String) -> Self {
        Self { draft: ToolSpec::new(name), input: PhantomData }
    }

    /// Lists this input schema as it stands. Arguments are checked against it before the function runs.
    pub fn input_schema(mut self, schema: impl Into<Json>) -> ToolBuilder<HandWritten> {
        self.draft.tool.input_schema = schema.into();
        ToolBuilder { draft: self.draft, input: PhantomData }
    }

    /// What the tool does: an async function of its arguments, with a [`Context`](crate::Context) before them if it wants
    /// one.
    pub fn handler<S, A, H, Shape, Via>(mut self, handler: H) -> Tool<S>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        S: Send + Sync + 'static,
        Shape: 'static,
        Via: 'static,
    {
        let arguments = self.draft.arguments::<A>();
        self.finish(arguments, |arguments, output| run::Asynchronous::arc(handler, arguments, output))
    }

    /// What the tool does, where that takes a thread: a plain function of its arguments. It runs on a bounded pool and delays
    /// nobody.
    pub fn blocking<S, A, H, Shape, Via>(mut self, handler: H) -> Tool<S>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: BlockingFunction<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        S: Send + Sync + 'static,
        Shape: 'static,
        Via: 'static,
    {
        let arguments = self.draft.arguments::<A>();
        self.finish(arguments, |arguments, output| run::Blocking::arc(handler, arguments, output))
    }
}

impl ToolBuilder<HandWritten> {
    /// What the tool does. The arguments are read into any type; [`Json`] takes them as they came.
    pub fn handler<S, A, H, Shape, Via>(mut self, handler: H) -> Tool<S>
    where
        A: DeserializeOwned + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: ToolOutput<Via>,
        S: Send + Sync + 'static,
        Shape: 'static,
        Via: 'static,
    {
        let arguments = self.draft.hand_written();
        self.finish(arguments, |arguments, output| run::Asynchronous::arc(handler, arguments, output))
    }
}

impl<I> ToolBuilder<I> {
    /// Lists this output schema as it stands, for functions that make their [`CallToolResult`](crate::CallToolResult)
    /// themselves.
    pub fn output_schema(mut self, schema: impl Into<Json>) -> Self {
        self.draft.tool.output_schema = Some(schema.into());
        self
    }

    /// Looks at every result through the output schema, in release builds too. Debug builds always do.
    pub fn check_output(mut self) -> Self {
        self.draft.limits.checks_output = true;
        self
    }

    fn finish<S, O: ToolOutput<Via>, Via, R: RunTool<S> + 'static>(
        mut self,
        arguments: ArgumentSchema,
        run: impl FnOnce(ArgumentSchema, run::OutputContract<O, Via>) -> Arc<R>,
    ) -> Tool<S> {
        let declared = O::declared();
        let validator = self.draft.output(&declared);
        let run = run(arguments, run::OutputContract::new(declared, validator));
        Tool { draft: self.draft, run }
    }
}

impl<I> fmt::Debug for ToolBuilder<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder").field("name", &self.draft.tool.name).finish_non_exhaustive()
    }
}
