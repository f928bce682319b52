//! Suggestions for arguments of prompts and variables of templates.

pub(crate) mod complete;

use std::sync::Arc;

use crate::kernel::context::{Context, States};
use crate::registry::StateSlot;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::completion::Completion;
use serde::Deserialize;

use crate::catalog::function::Function;

/// What is being typed.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The argument or variable.
    pub name: String,
    /// What has been typed of it so far.
    pub value: String,
    /// Others that are resolved already.
    pub resolved: Vec<(String, String)>,
}

impl CompletionRequest {
    /// Another argument or variable, if it is resolved already.
    pub fn resolved(&self, name: &str) -> Option<&str> {
        self.resolved.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Those of `all` that begin with what has been typed, without regard to case.
    pub fn filter<T: Into<String>>(&self, all: impl IntoIterator<Item = T>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        let all = all.into_iter().map(Into::into);
        all.filter(|value| value.to_lowercase().starts_with(&typed)).collect()
    }
}

/// What a completing function may return: suggestions, best first; also as a `Result`. At most a hundred are sent.
pub trait CompletionOutput: Sized + 'static {
    /// The suggestions.
    fn into_completion(self) -> Result<Completion, McpError>;
}

impl CompletionOutput for Completion {
    fn into_completion(mut self) -> Result<Completion, McpError> {
        if self.values.len() > Self::MAX_VALUES {
            self.values.truncate(Self::MAX_VALUES);
            self.has_more = Some(true);
        }
        Ok(self)
    }
}

impl CompletionOutput for Vec<String> {
    fn into_completion(self) -> Result<Completion, McpError> {
        Ok(Completion::truncated(self))
    }
}

impl CompletionOutput for Vec<&'static str> {
    fn into_completion(self) -> Result<Completion, McpError> {
        Ok(Completion::truncated(self.into_iter().map(Into::into).collect()))
    }
}

impl<T: CompletionOutput, E: Into<McpError> + 'static> CompletionOutput for Result<T, E> {
    fn into_completion(self) -> Result<Completion, McpError> {
        self.map_err(Into::into)?.into_completion()
    }
}

type Suggest<S> = Arc<
    dyn Fn(Context<S>, CompletionRequest) -> BoxFuture<'static, Result<Completion, McpError>> + Send + Sync,
>;

/// Names and who suggests values for them.
pub(crate) type Completions<S> = Vec<(String, Suggest<S>)>;
/// The same without the type of the state.
pub(crate) type Completer = Suggest<States>;

pub(crate) fn completer<S, H, Shape>(suggest: H) -> Suggest<S>
where
    S: Send + Sync + 'static,
    H: Function<S, CompletionRequest, Shape>,
    H::Output: CompletionOutput,
    Shape: 'static,
{
    Arc::new(move |cx, completing| {
        let suggesting = suggest.call(cx, completing);
        Box::pin(async move { suggesting.await.into_completion() })
    })
}

/// Suggests one of a few fixed values.
pub(crate) fn choices<S: Send + Sync + 'static>(all: Vec<String>) -> Suggest<S> {
    completer(move |completing: CompletionRequest| std::future::ready(completing.filter(all.clone())))
}

pub(crate) fn bound<S: Send + Sync + 'static>(
    completions: Completions<S>,
    slot: StateSlot<S>,
) -> Vec<(String, Completer)> {
    let bind = |(name, suggest): (String, Suggest<S>)| -> (String, Completer) {
        let suggest: Completer = Arc::new(move |cx, completing| match slot.context(cx) {
            Ok(cx) => suggest(cx, completing),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        });
        (name, suggest)
    };
    completions.into_iter().map(bind).collect()
}
