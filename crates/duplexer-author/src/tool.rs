//! Tools: a name, what the model is told, and a function.
//!
//! Types end here: a registered tool is a definition and something that can be run with JSON.

mod error;
mod output;
mod run;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::server::StateSlot;
use duplexer_types::headers::ParamHeaders;
use duplexer_types::icon::Icon;
use duplexer_types::json::{Json, Members};
use duplexer_types::tool as wire;
use duplexer_types::tool::ToolAnnotations;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::catalog::CatalogError;
use crate::function::{BlockingFunction, Function};
use crate::schema;
use crate::validate::Checker;

pub use error::ToolError;
pub use output::{Declared, Returned, Settle, ToolOutput};
pub(crate) use run::{RunTool, told};

/// A tool that is ready to be registered with a server whose state is `S`.
///
/// ```
/// # use duplexer_author::{Server, ServerExt, Tool};
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::new("add")
///     .description("Adds two numbers.")
///     .handler(|Add { a, b }| async move { a + b });
/// let server = Server::builder("calculator").tool(add).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a tool is offered once it is registered"]
pub struct Tool<S> {
    pub(crate) draft: Draft,
    pub(crate) run: Arc<dyn RunTool<S>>,
}

impl Tool<()> {
    /// Begins a tool. Its name consists of letters, digits, `_`, `-` and `.`.
    #[expect(clippy::new_ret_no_self, reason = "a tool is complete once it has its function")]
    pub fn new(name: impl Into<String>) -> ToolBuilder {
        ToolBuilder { draft: Draft::new(name.into()), input: PhantomData }
    }
}

/// A tool that still lacks its function. `I` says where its input schema comes from.
#[must_use = "a tool is complete once it has its function"]
pub struct ToolBuilder<I = FromType> {
    draft: Draft,
    input: PhantomData<I>,
}

/// The input schema follows from the type of the arguments.
#[derive(Debug)]
pub struct FromType;
/// The input schema was written by hand.
#[derive(Debug)]
pub struct HandWritten;

/// Whatever has been said about a tool so far.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) tool: wire::Tool,
    /// The output schema for revisions whose structured content is always an object.
    pub(crate) wrapped_output: Option<Json>,
    pub(crate) headers: Option<Arc<ParamHeaders>>,
    pub(crate) limits: Limits,
    /// The view it brings.
    pub(crate) view: Option<String>,
    pub(crate) fault: Option<CatalogError>,
}

/// How a tool is run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) timeout: Option<Duration>,
    pub(crate) checks_output: bool,
}

impl Draft {
    fn new(name: String) -> Self {
        let limits = Limits { timeout: None, checks_output: cfg!(debug_assertions) };
        let tool = wire::Tool::new(name, Json::object());
        Self { tool, wrapped_output: None, headers: None, limits, view: None, fault: None }
    }

    fn fail(&mut self, reason: impl Into<String>) {
        let tool = self.tool.name.clone();
        self.fault.get_or_insert(CatalogError::Schema { tool, reason: reason.into() });
    }

    /// Takes the input schema of a type.
    fn arguments<A: JsonSchema + DeserializeOwned>(&mut self) -> Checked {
        match schema::of_arguments::<A>() {
            Ok(made) => {
                self.tool.input_schema = schema::render(&made.value, schema::declared_order::<A>());
                let always = made.demands_more;
                self.find_headers();
                Checked { checker: Arc::new(Checker::new(made.value)), always }
            }
            Err(reason) => {
                self.fail(reason);
                Checked { checker: Arc::new(Checker::new(true.into())), always: false }
            }
        }
    }

    /// Takes the input schema as it was written.
    fn hand_written(&mut self) -> Checked {
        let value: serde_json::Value = self.tool.input_schema.decode().unwrap_or_default();
        if !schema::is_object(&value) {
            self.fail("the root of an input schema says `\"type\": \"object\"`");
        }
        let checker = Checker::new(value);
        if let Err(reason) = checker.compile() {
            let reason = format!("the input schema cannot be used: {reason}");
            self.fail(reason);
        }
        self.find_headers();
        Checked { checker: Arc::new(checker), always: true }
    }

    fn find_headers(&mut self) {
        match ParamHeaders::from_schema(&self.tool.input_schema) {
            Ok(headers) if headers.is_empty() => {}
            Ok(headers) => self.headers = Some(Arc::new(headers)),
            Err(invalid) => self.fail(invalid.to_string()),
        }
    }

    /// Takes what the handler's output says of itself; a schema written by hand goes before it.
    fn output(&mut self, declared: &Declared) -> Option<Arc<Checker>> {
        if let Some(written) = &self.tool.output_schema {
            let checker = Checker::new(written.decode().unwrap_or_default());
            if let Err(reason) = checker.compile() {
                let reason = format!("the output schema cannot be used: {reason}");
                self.fail(reason);
            }
            return self.limits.checks_output.then(|| Arc::new(checker));
        }
        let schema = declared.schema()?;
        self.tool.output_schema = Some(schema::render(schema, &[]));
        if !schema::is_object(schema) {
            self.wrapped_output = Some(schema::render(&schema::wrapped(schema), &[]));
        }
        self.limits.checks_output.then(|| Arc::new(Checker::new(schema.clone())))
    }
}

/// How arguments are looked at: after they could not be read, or always.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) checker: Arc<Checker>,
    pub(crate) always: bool,
}

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
                self.draft.tool.meta.get_or_insert_with(Members::new).insert(key, value.into());
                self
            }

            /// How long it may take. After that its future is dropped and the model is told.
            pub fn timeout(mut self, limit: Duration) -> Self {
                self.draft.limits.timeout = Some(limit);
                self
            }

            /// Looks at every result through the output schema, in release builds too. Debug builds always do.
            pub fn check_output(mut self) -> Self {
                self.draft.limits.checks_output = true;
                self
            }
        }
    };
}

settings!(impl<I> ToolBuilder<I>);
settings!(impl<S> Tool<S>);

impl ToolBuilder {
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
    /// Lists this output schema as it stands, for functions that make their [`CallToolResult`](wire::CallToolResult)
    /// themselves.
    pub fn output_schema(mut self, schema: impl Into<Json>) -> Self {
        self.draft.tool.output_schema = Some(schema.into());
        self
    }

    fn finish<S, O: ToolOutput<Via>, Via, R: RunTool<S> + 'static>(
        mut self,
        arguments: Checked,
        run: impl FnOnce(Checked, run::Expected<O, Via>) -> Arc<R>,
    ) -> Tool<S> {
        let declared = O::declared();
        let checker = self.draft.output(&declared);
        let run = run(arguments, run::Expected::new(declared, checker));
        Tool { draft: self.draft, run }
    }
}

impl<S> Tool<S> {
    /// The same tool under another name.
    pub fn rename(mut self, name: impl Into<String>) -> Self {
        self.draft.tool.name = name.into();
        self
    }

    /// How it is listed.
    pub fn definition(&self) -> &wire::Tool {
        &self.draft.tool
    }
}

impl<S> fmt::Debug for Tool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.draft.tool.name).finish_non_exhaustive()
    }
}

impl<I> fmt::Debug for ToolBuilder<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolBuilder").field("name", &self.draft.tool.name).finish_non_exhaustive()
    }
}

/// What can be registered as a tool: a [`Tool`], or a function marked with `#[tool]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool for a server whose state is `{S}`",
    label = "not a tool",
    note = "a tool is a function with `#[tool]`, such as\n    #[tool]\n    async fn add(a: i64, b: i64) -> i64 {{ a + b }}\nor `Tool::new(\"add\").handler(|args: Add| async move {{ .. }})`",
    note = "if it takes a `Context<T>`, then `T` must be the state given with `.state(..)` or `.lifespan(..)` before `.tool(..)`"
)]
pub trait IntoTool<S> {
    /// The tool.
    fn into_tool(self) -> Tool<S>;
}

impl<S> IntoTool<S> for Tool<S> {
    fn into_tool(self) -> Self {
        self
    }
}

/// A tool and where its state is.
pub(crate) struct Bound<S> {
    pub(crate) run: Arc<dyn RunTool<S>>,
    pub(crate) slot: StateSlot<S>,
}
