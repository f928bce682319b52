//! Prompts: messages to begin a conversation with, from typed arguments.

pub(crate) mod entry;
mod output;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::kernel::context::{Context, States};
use crate::kernel::outcome::Outcome;
use crate::registry::StateSlot;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::icon::Icon;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::prompt as wire;
use duplexer_types::prompt::PromptArgument;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::catalog::completion::{
    Completer, CompletionOutput, CompletionRequest, Completions, bound, choices, completer,
};
use crate::catalog::function::Function;
use crate::catalog::text_args as words;
use crate::catalog::uri_template::Values;
use crate::schema;

pub use output::PromptOutput;

/// A prompt that is ready to be registered with a server whose state is `S`.
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::prompt::Prompt;
/// # use schemars::JsonSchema;
/// # use serde::Deserialize;
/// #[derive(Deserialize, JsonSchema)]
/// struct Review {
///     /// The code to look at.
///     code: String,
///     lines: Option<u32>,
/// }
///
/// let review = Prompt::new("review")
///     .description("Asks for a review.")
///     .handler(|Review { code, .. }| async move { format!("Review this:\n{code}") });
/// let server = Server::builder("reviewer").prompt(review).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a prompt is offered once it is registered"]
pub struct Prompt<S> {
    pub(crate) draft: PromptSpec,
    pub(crate) fill: Arc<dyn FillPrompt<S>>,
    pub(crate) completions: Completions<S>,
}

/// A prompt that still lacks its function.
#[must_use = "a prompt is complete once it has its function"]
#[derive(Debug)]
pub struct PromptBuilder {
    draft: PromptSpec,
}

#[derive(Clone, Debug)]
pub(crate) struct PromptSpec {
    pub(crate) prompt: wire::Prompt,
    pub(crate) fault: Option<String>,
}

/// A prompt as the catalog fills it.
pub(crate) trait FillPrompt<S>: Send + Sync {
    fn fill(
        &self,
        cx: Context<S>,
        arguments: &Values,
        description: Option<&str>,
    ) -> BoxFuture<'static, Result<Outcome, McpError>>;
}

impl Prompt<()> {
    /// Begins a prompt. Its name consists of letters, digits, `_`, `-` and `.`.
    #[expect(clippy::new_ret_no_self, reason = "a prompt is complete once it has its function")]
    pub fn new(name: impl Into<String>) -> PromptBuilder {
        PromptBuilder { draft: PromptSpec { prompt: wire::Prompt::new(name), fault: None } }
    }
}

impl PromptBuilder {
    /// What it says: an async function of its arguments, with a [`Context`] before them if it wants one.
    ///
    /// Clients send strings; they are read into whatever the members of the argument are.
    pub fn handler<S, A, H, Shape>(mut self, handler: H) -> Prompt<S>
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: PromptOutput,
        S: Send + Sync + 'static,
        Shape: 'static,
    {
        let completions = match schema::of_arguments::<A>() {
            Ok(made) => self.arguments(&made.value, schema::declared_order::<A>()),
            Err(reason) => {
                self.draft.fault = Some(reason);
                Vec::new()
            }
        };
        let fill = Fill::<H, A, Shape> { handler, types: PhantomData };
        Prompt { draft: self.draft, fill: Arc::new(fill), completions }
    }

    /// Lists the arguments. What has a few fixed values completes itself.
    fn arguments<S: Send + Sync + 'static>(&mut self, schema: &Value, order: &[&str]) -> Completions<S> {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Vec::new() };
        let required = schema.get("required").and_then(Value::as_array);
        let place = |name: &str| order.iter().position(|field| *field == name).unwrap_or(usize::MAX);
        let mut ordered: Vec<_> = properties.iter().collect();
        ordered.sort_by_key(|(name, _)| place(name));
        let mut arguments = Vec::new();
        let mut completions = Vec::new();
        for (name, about) in ordered {
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
            let mut argument = PromptArgument::new(name.as_str()).required(is_required);
            let said = |keyword: &str| about.get(keyword).and_then(Value::as_str).map(str::to_owned);
            (argument.title, argument.description) = (said("title"), said("description"));
            arguments.push(argument);
            if let Some(all) = fixed_values(about) {
                completions.push((name.clone(), choices(all)));
            }
        }
        self.draft.prompt.arguments = (!arguments.is_empty()).then_some(arguments);
        completions
    }
}

fn fixed_values(schema: &Value) -> Option<Vec<String>> {
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        return Some(vec!["true".to_owned(), "false".to_owned()]);
    }
    let all = schema.get("enum")?.as_array()?;
    all.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

macro_rules! settings {
    ($($owner:tt)*) => {
        $($owner)* {
            /// Its name, for people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.draft.prompt.title = Some(title.into());
                self
            }

            /// What it is for.
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.draft.prompt.description = Some(description.into());
                self
            }

            /// Pictures.
            pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
                self.draft.prompt.icons = Some(icons.into());
                self
            }

            /// One member of `_meta`.
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
                self.draft.prompt.meta.get_or_insert_with(JsonObject::new).insert(key, value.into());
                self
            }
        }
    };
}

settings!(impl PromptBuilder);
settings!(impl<S> Prompt<S>);

impl<S: Send + Sync + 'static> Prompt<S> {
    /// Suggests values for an argument: an async function of a [`CompletionRequest`].
    pub fn complete<H, Shape>(mut self, argument: impl Into<String>, suggest: H) -> Self
    where
        H: Function<S, CompletionRequest, Shape>,
        H::Output: CompletionOutput,
        Shape: 'static,
    {
        let argument = argument.into();
        let known = self.draft.prompt.arguments.iter().flatten().any(|known| known.name == argument);
        if !known {
            self.draft.fault.get_or_insert(format!("'{argument}' is completed but is no argument of it"));
        }
        self.completions.retain(|(name, _)| *name != argument);
        self.completions.push((argument, completer(suggest)));
        self
    }

    pub(crate) fn bind(self, slot: StateSlot<S>) -> Erased {
        let completions = bound(self.completions, slot);
        Erased { draft: self.draft, fill: Arc::new(Bound { fill: self.fill, slot }), completions }
    }
}

/// A prompt without the type of its state.
pub(crate) struct Erased {
    pub(crate) draft: PromptSpec,
    pub(crate) fill: Arc<dyn FillPrompt<States>>,
    pub(crate) completions: Vec<(String, Completer)>,
}

struct Fill<H, A, Shape> {
    handler: H,
    types: PhantomData<fn() -> (A, Shape)>,
}

impl<S, A, H, Shape> FillPrompt<S> for Fill<H, A, Shape>
where
    A: DeserializeOwned + Send + 'static,
    H: Function<S, A, Shape>,
    H::Output: PromptOutput,
    S: Send + Sync + 'static,
    Shape: 'static,
{
    fn fill(
        &self,
        cx: Context<S>,
        arguments: &Values,
        description: Option<&str>,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let arguments = match words::read(arguments) {
            Ok(arguments) => arguments,
            Err(fault) => {
                let error = McpError::new(ErrorCode::INVALID_PARAMS, format!("Invalid argument: {fault}"));
                return Box::pin(std::future::ready(Err(error)));
            }
        };
        let description = description.map(str::to_owned);
        let filling = self.handler.call(cx, arguments);
        Box::pin(async move { filling.await.into_prompt(description) })
    }
}

struct Bound<S> {
    fill: Arc<dyn FillPrompt<S>>,
    slot: StateSlot<S>,
}

impl<S: Send + Sync + 'static> FillPrompt<States> for Bound<S> {
    fn fill(
        &self,
        cx: Context,
        arguments: &Values,
        description: Option<&str>,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.slot.context(cx) {
            Ok(cx) => self.fill.fill(cx, arguments, description),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

impl<S> fmt::Debug for Prompt<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.draft.prompt.name).finish_non_exhaustive()
    }
}

/// What can be registered as a prompt: a [`Prompt`], or a function marked with `#[prompt]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt for a server whose state is `{S}`",
    label = "not a prompt",
    note = "a prompt is a function with `#[prompt]`, or made with `Prompt::new(\"name\").handler(..)`"
)]
pub trait IntoPrompt<S> {
    /// The prompt.
    fn into_prompt(self) -> Prompt<S>;
}

impl<S> IntoPrompt<S> for Prompt<S> {
    fn into_prompt(self) -> Self {
        self
    }
}
