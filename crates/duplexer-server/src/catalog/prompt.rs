//! Prompts: messages that begin a conversation, built from typed arguments.

pub(crate) mod entry;
mod output;

use std::fmt;
use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::prompt as wire;
use duplexer_types::prompt::PromptArgument;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::completion::{CompletionOutput, CompletionRequest, Completions};
use super::erased::{ErasedHandler, Forwarded, HandlerFuture, Operation, Typed, failed};
use super::function::{Constructor, Direct, Function, Impossible, Seal, Unmatched};
use super::settings::shared_settings;
use super::text_args;
use super::uri_template::Values;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::schema;

pub use output::PromptOutput;

/// A prompt that can be registered with a server whose state is `S`: its definition and its function.
///
/// (The definition alone, as `prompts/list` sends it, is [`duplexer_types::prompt::PromptDefinition`].)
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
/// let review = Prompt::new("review", |Review { code, .. }| async move { format!("Review this:\n{code}") })
///     .description("Asks for a review.");
/// let server = Server::builder("reviewer", "0").prompt(review).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a prompt is offered once it is registered"]
pub struct Prompt<S> {
    spec: PromptSpec,
    get: Arc<dyn ErasedHandler<S, GetPrompt>>,
    completions: Completions<S>,
}

/// The definition of a prompt, and the first fault found in it.
struct PromptSpec {
    prompt: wire::PromptDefinition,
    fault: Option<String>,
}

impl<S: Send + Sync + 'static> Prompt<S> {
    /// Creates a prompt from an async function of its arguments, optionally with a [`Context`] before them.
    ///
    /// The name consists of 1 to 128 letters, digits, `_`, `-` and `.`. Clients send arguments as strings; they are
    /// decoded into the members of the function's argument. An argument with a few fixed values is completed without
    /// further code. An invalid name or schema fails [`build`](crate::ServerBuilder::build).
    pub fn new<A, H, Shape>(name: impl Into<String>, handler: H) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        H: Function<S, A, Shape>,
        H::Output: PromptOutput,
        Shape: 'static,
    {
        let spec = PromptSpec { prompt: wire::PromptDefinition::new(name), fault: None };
        let get = Arc::new(Typed::<H, A, Shape>::new(handler));
        let mut prompt = Self { spec, get, completions: Completions::default() };
        match schema::of_arguments::<A>() {
            Ok(generated) => prompt.list_arguments(&generated.value, schema::declared_order::<A>()),
            Err(reason) => prompt.spec.fault = Some(reason),
        }
        prompt
    }

    /// Creates a prompt that another server fills. For proxies.
    #[doc(hidden)]
    pub fn forwarded(
        definition: wire::PromptDefinition,
        handler: impl Fn(Context<S>) -> HandlerFuture + Send + Sync + 'static,
    ) -> Self {
        let spec = PromptSpec { prompt: definition, fault: None };
        Self { spec, get: Arc::new(Forwarded(handler)), completions: Completions::default() }
    }

    /// Lists the arguments, and completes those with fixed values.
    fn list_arguments(&mut self, schema: &Value, order: &[&str]) {
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
        let required = schema.get("required").and_then(Value::as_array);
        let position = |name: &str| order.iter().position(|field| *field == name).unwrap_or(usize::MAX);
        let mut ordered: Vec<_> = properties.iter().collect();
        ordered.sort_by_key(|(name, _)| position(name));
        let mut arguments = Vec::new();
        for (name, property) in ordered {
            let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
            let mut argument = PromptArgument::new(name.as_str()).required(is_required);
            let text = |keyword: &str| property.get(keyword).and_then(Value::as_str).map(str::to_owned);
            (argument.title, argument.description) = (text("title"), text("description"));
            arguments.push(argument);
            if let Some(values) = fixed_values(property) {
                self.completions.add_choices(name.clone(), values);
            }
        }
        self.spec.prompt.arguments = (!arguments.is_empty()).then_some(arguments);
    }

    /// Suggests values for an argument: an async function of a [`CompletionRequest`]. A name that is not an argument
    /// fails the build.
    pub fn complete<H, Shape>(mut self, argument: impl Into<String>, suggest: H) -> Self
    where
        H: Function<S, CompletionRequest, Shape>,
        H::Output: CompletionOutput,
        Shape: 'static,
    {
        let argument = argument.into();
        let known = self.spec.prompt.arguments.iter().flatten().any(|known| known.name == argument);
        if !known {
            self.spec.fault.get_or_insert(format!("'{argument}' is completed but is no argument of it"));
        }
        self.completions.add(argument, suggest);
        self
    }
}

impl<S> Prompt<S> {
    shared_settings!("prompt", spec.prompt);
}

fn fixed_values(schema: &Value) -> Option<Vec<String>> {
    if schema.get("type").and_then(Value::as_str) == Some("boolean") {
        return Some(vec!["true".to_owned(), "false".to_owned()]);
    }
    let all = schema.get("enum")?.as_array()?;
    all.iter().map(|value| value.as_str().map(str::to_owned)).collect()
}

/// `prompts/get`.
pub(crate) struct GetPrompt;

impl Operation for GetPrompt {
    type Input<'a> = PromptInput<'a>;
    type Output = Outcome;
}

/// The input of one `prompts/get`.
#[derive(Clone, Copy)]
pub(crate) struct PromptInput<'a> {
    pub(crate) arguments: &'a Values,
    pub(crate) description: Option<&'a str>,
}

impl<S, A, H, Shape> ErasedHandler<S, GetPrompt> for Typed<H, A, Shape>
where
    A: DeserializeOwned + Send + 'static,
    H: Function<S, A, Shape>,
    H::Output: PromptOutput,
    S: Send + Sync + 'static,
    Shape: 'static,
{
    fn run(&self, cx: Context<S>, input: PromptInput<'_>) -> HandlerFuture {
        let arguments = match text_args::decode(input.arguments) {
            Ok(arguments) => arguments,
            Err(error) => {
                let text = format!("Invalid argument: {error}");
                return failed(McpError::new(ErrorCode::INVALID_PARAMS, text));
            }
        };
        let description = input.description.map(str::to_owned);
        let messages = self.handler.call(cx, arguments, Seal(()));
        Box::pin(async move { messages.await.into_messages(description, Seal(())) })
    }
}

impl<S> fmt::Debug for Prompt<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.spec.prompt.name).finish_non_exhaustive()
    }
}

/// Values that can be registered as a prompt: a [`Prompt`], or a function marked with `#[prompt]`.
///
/// A marked function becomes a function that returns a [`Prompt`]; any such function can be registered. `Via` distinguishes
/// the two and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a prompt for a server whose state is `{S}`",
    label = "not a prompt",
    note = "a prompt is a function with `#[prompt]`, or made with `Prompt::new(\"name\", function)`"
)]
pub trait IntoPrompt<S, Via = Direct> {
    /// Converts into the prompt.
    fn into_prompt(self) -> Prompt<S>;
}

impl<S> IntoPrompt<S> for Prompt<S> {
    fn into_prompt(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, F: FnOnce() -> Prompt<S>> IntoPrompt<S, Constructor> for F {
    fn into_prompt(self) -> Prompt<S> {
        self()
    }
}

#[diagnostic::do_not_recommend]
impl<S, T: Impossible> IntoPrompt<S, Unmatched> for T {
    fn into_prompt(self) -> Prompt<S> {
        self.never()
    }
}
