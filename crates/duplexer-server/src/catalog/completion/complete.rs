//! `completion/complete`.

use duplexer_core::error::McpError;
use duplexer_types::completion::{CompleteParams, CompleteResult, Completion, CompletionReference};
use duplexer_types::error::ErrorCode;

use super::{Complete, CompletionRequest};
use crate::catalog::Inner;
use crate::catalog::erased::{BoundHandler, HandlerFuture, failed};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;

/// Handles `completion/complete`. An argument without a completion function has no suggestions.
pub(crate) fn complete(catalog: &Inner, cx: Context) -> HandlerFuture {
    start(catalog, cx).unwrap_or_else(failed)
}

fn start(catalog: &Inner, cx: Context) -> Result<HandlerFuture, McpError> {
    let params: CompleteParams = cx.params()?;
    let name = params.argument.name;
    let Some(suggest) = find(catalog, &cx, &params.reference, &name)? else {
        let nothing = CompleteResult::new(Completion::truncated(Vec::new()));
        return Ok(Box::pin(std::future::ready(Ok(Outcome::of(nothing)))));
    };
    let resolved = params.context.and_then(|context| context.arguments).into_iter().flatten().collect();
    let request = CompletionRequest { name: name.clone(), value: params.argument.value, resolved };
    let suggestions = suggest.run(cx, request);
    Ok(Box::pin(async move {
        match suggestions.await {
            Ok(completion) => Ok(Outcome::of(CompleteResult::new(completion))),
            Err(refused @ McpError::Rpc(_)) => Err(refused),
            Err(error) => {
                tracing::error!(%error, ?name, "an argument could not be completed");
                let text = format!("Error completing argument {name}");
                Err(McpError::new(ErrorCode::INTERNAL_ERROR, text))
            }
        }
    }))
}

fn find(
    catalog: &Inner,
    cx: &Context,
    reference: &CompletionReference,
    name: &str,
) -> Result<Option<BoundHandler<Complete>>, McpError> {
    let snapshot = catalog.snapshot.load();
    match reference {
        CompletionReference::Prompt(prompt) => {
            let visible =
                snapshot.prompts.get(&prompt.name).filter(|prompt| catalog.is_visible(cx, &***prompt));
            let Some(entry) = visible else {
                let text = format!("Unknown prompt: {}", prompt.name);
                return Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
            };
            Ok(entry.completions.get(name))
        }
        // A URI can be named in place of its template; it has no open variables and therefore no suggestions.
        CompletionReference::Resource(template) => {
            let visible = snapshot.templates.get(&template.uri).filter(|one| catalog.is_visible(cx, &***one));
            Ok(visible.and_then(|template| template.completions.get(name)))
        }
        _ => Ok(None),
    }
}
