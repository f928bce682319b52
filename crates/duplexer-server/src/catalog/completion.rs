//! Completions: suggested values for arguments of prompts and variables of templates.

pub(crate) mod complete;

use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_types::completion::Completion;
use serde::Deserialize;

use super::erased::{BoundHandler, ErasedHandler, HandlerFuture, Operation, Typed, bind};
use super::function::{Function, Seal};
use crate::kernel::context::{Context, StateMap};
use crate::registry::StateSlot;

/// Request for suggestions, as a completion function receives it.
///
/// ```
/// use duplexer_server::completion::CompletionRequest;
///
/// /// Suggests the tables that begin with what the user has typed.
/// async fn tables(request: CompletionRequest) -> Vec<String> {
///     request.filter(["users", "orders"])
/// }
/// ```
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// Name of the argument or variable.
    pub name: String,
    /// Text that the user has typed so far.
    pub value: String,
    /// Other arguments or variables that have a value already (`context.arguments` of the protocol).
    pub resolved: Vec<(String, String)>,
}

impl CompletionRequest {
    /// Returns the value of another argument or variable, if it has one already.
    pub fn resolved(&self, name: &str) -> Option<&str> {
        self.resolved.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns the values that begin with the typed text, ignoring case.
    pub fn filter<T: Into<String>>(&self, all: impl IntoIterator<Item = T>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let all = all.into_iter().map(Into::into);
        all.filter(|value| value.to_lowercase().starts_with(&typed)).collect()
    }
}

/// Return types of a completion function: suggestions, best first, or a `Result` of them. At most 100 are sent.
///
/// The trait is sealed: it cannot be implemented outside this crate.
pub trait CompletionOutput: Sized + 'static {
    #[doc(hidden)]
    fn into_completion(self, seal: Seal) -> Result<Completion, McpError>;
}

impl CompletionOutput for Completion {
    fn into_completion(mut self, _: Seal) -> Result<Completion, McpError> {
        if self.values.len() > Self::MAX_VALUES {
            self.values.truncate(Self::MAX_VALUES);
            self.has_more = Some(true);
        }
        Ok(self)
    }
}

impl CompletionOutput for Vec<String> {
    fn into_completion(self, _: Seal) -> Result<Completion, McpError> {
        Ok(Completion::truncated(self))
    }
}

impl CompletionOutput for Vec<&'static str> {
    fn into_completion(self, _: Seal) -> Result<Completion, McpError> {
        Ok(Completion::truncated(self.into_iter().map(Into::into).collect()))
    }
}

impl<T: CompletionOutput, E: Into<McpError> + 'static> CompletionOutput for Result<T, E> {
    fn into_completion(self, seal: Seal) -> Result<Completion, McpError> {
        self.map_err(Into::into)?.into_completion(seal)
    }
}

/// `completion/complete`.
pub(crate) struct Complete;

impl Operation for Complete {
    type Input<'a> = CompletionRequest;
    type Output = Completion;
}

impl<S, H, Shape> ErasedHandler<S, Complete> for Typed<H, CompletionRequest, Shape>
where
    S: Send + Sync + 'static,
    H: Function<S, CompletionRequest, Shape>,
    H::Output: CompletionOutput,
    Shape: 'static,
{
    fn run(&self, cx: Context<S>, request: CompletionRequest) -> HandlerFuture<Completion> {
        let suggestions = self.handler.call(cx, request, Seal(()));
        Box::pin(async move { suggestions.await.into_completion(Seal(())) })
    }
}

/// Completion functions by the name of their argument or variable.
pub(crate) struct Completions<S>(Vec<(String, Arc<dyn ErasedHandler<S, Complete>>)>);

/// The same without the type of the state.
pub(crate) type BoundCompletions = Completions<StateMap>;

impl<S> Default for Completions<S> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<S: Send + Sync + 'static> Completions<S> {
    /// Sets the completion function of a name, in place of an earlier one.
    pub(super) fn add<H, Shape>(&mut self, name: String, suggest: H)
    where
        H: Function<S, CompletionRequest, Shape>,
        H::Output: CompletionOutput,
        Shape: 'static,
    {
        self.0.retain(|(known, _)| *known != name);
        self.0.push((name, Arc::new(Typed::<H, CompletionRequest, Shape>::new(suggest))));
    }

    /// Completes a name from fixed values.
    pub(super) fn add_choices(&mut self, name: String, all: Vec<String>) {
        self.add(name, move |request: CompletionRequest| std::future::ready(request.filter(all.clone())));
    }

    pub(super) fn bind(self, slot: StateSlot<S>) -> BoundCompletions {
        Completions(self.0.into_iter().map(|(name, suggest)| (name, bind(suggest, slot))).collect())
    }
}

impl BoundCompletions {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, name: &str) -> Option<BoundHandler<Complete>> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, suggest)| Arc::clone(suggest))
    }
}
