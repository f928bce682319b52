//! `completion/complete`.

use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::completion::{CompleteParams, CompleteResult, Completion, CompletionReference};
use duplexer_types::error::ErrorCode;

use crate::catalog::Inner;
use crate::catalog::completion::{Completer, CompletionRequest};

/// Answers `completion/complete`. What nobody completes has no suggestions.
pub(crate) fn complete(catalog: &Inner, cx: &Context) -> BoxFuture<'static, Result<Outcome, McpError>> {
    match start(catalog, cx) {
        Ok(completing) => completing,
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

fn start(catalog: &Inner, cx: &Context) -> Result<BoxFuture<'static, Result<Outcome, McpError>>, McpError> {
    let params: CompleteParams = cx.params()?;
    let name = params.argument.name;
    let Some(suggest) = find(catalog, cx, &params.reference, &name)? else {
        let nothing = CompleteResult::new(Completion::truncated(Vec::new()));
        return Ok(Box::pin(std::future::ready(Ok(Outcome::of(nothing)))));
    };
    let resolved = params.context.and_then(|context| context.arguments).into_iter().flatten().collect();
    let completing = CompletionRequest { name: name.clone(), value: params.argument.value, resolved };
    let suggesting = suggest(cx.clone(), completing);
    Ok(Box::pin(async move {
        match suggesting.await {
            Ok(completion) => Ok(Outcome::of(CompleteResult::new(completion))),
            Err(refused @ McpError::Refused(_)) => Err(refused),
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
) -> Result<Option<Completer>, McpError> {
    let snapshot = catalog.snapshot.load();
    let refuse = |text: String| Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
    let completions = match reference {
        CompletionReference::Prompt(prompt) => {
            match snapshot.prompts.get(&prompt.name).filter(|prompt| catalog.shows(cx, &***prompt)) {
                Some(prompt) => &prompt.completions,
                None => return refuse(format!("Unknown prompt: {}", prompt.name)),
            }
        }
        CompletionReference::Resource(template) => {
            match snapshot.templates.get(&template.uri).filter(|template| catalog.shows(cx, &***template)) {
                Some(template) => &template.completions,
                // A URI may be named in place of its template; nothing of it is open.
                None => return Ok(None),
            }
        }
        _ => return Ok(None),
    };
    Ok(completions.iter().find(|(known, _)| known == name).map(|(_, suggest)| suggest.clone()))
}
