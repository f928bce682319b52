//! `prompts/list` and `prompts/get`.

use std::sync::Arc;

use crate::kernel::context::{Context, States};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use duplexer_types::prompt::{GetPromptParams, ListPromptsResult, Prompt};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::CacheScope;

use crate::catalog::completion::Completer;
use crate::catalog::draft::check_name;
use crate::catalog::prompt::{Erased, FillPrompt};
use crate::catalog::uri_template::Value;
use crate::catalog::{CatalogError, CatalogItem, Inner, Item, Listed};

/// A prompt on its item_table.
pub(crate) struct PromptEntry {
    prompt: Prompt,
    scope: usize,
    fill: Arc<dyn FillPrompt<States>>,
    pub(crate) completions: Vec<(String, Completer)>,
}

impl PromptEntry {
    pub(crate) fn new(prompt: Erased) -> Result<Self, CatalogError> {
        let Erased { draft, fill, completions } = prompt;
        if let Some(reason) = draft.fault {
            return Err(CatalogError::Prompt { prompt: draft.prompt.name, reason });
        }
        check_name("prompt", &draft.prompt.name)?;
        Ok(Self { prompt: draft.prompt, scope: 0, fill, completions })
    }

    /// Required arguments that are not there.
    fn missing(&self, given: &[(String, Value)]) -> Vec<&str> {
        let arguments = self.prompt.arguments.iter().flatten();
        let required = arguments.filter(|argument| argument.required == Some(true));
        let absent = required.filter(|argument| !given.iter().any(|(name, _)| *name == argument.name));
        absent.map(|argument| argument.name.as_str()).collect()
    }
}

impl Item for PromptEntry {
    const KIND: &'static str = "prompt";

    fn key(&self) -> &str {
        &self.prompt.name
    }

    fn scope(&self) -> usize {
        self.scope
    }

    fn offered(&self, prefix: usize, decide: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        if prefix == 0 {
            return decide(CatalogItem::Prompt(&self.prompt));
        }
        let mut prompt = self.prompt.clone();
        prompt.name.replace_range(..prefix, "");
        decide(CatalogItem::Prompt(&prompt))
    }

    fn merge(&mut self, scope_offset: usize, prefix: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        self.prompt.name.insert_str(0, prefix);
        check_name(Self::KIND, &self.prompt.name)
    }
}

impl Listed for PromptEntry {
    type Definition = Prompt;
    type Page = ListPromptsResult;
    const METHOD: Method = Method::PromptsList;

    fn definition(&self, _: ProtocolVersion) -> Prompt {
        self.prompt.clone()
    }

    fn page(prompts: Vec<Prompt>, next: Option<String>) -> ListPromptsResult {
        let mut page = ListPromptsResult::new(prompts);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

/// Answers `prompts/get`.
pub(crate) fn get(catalog: &Inner, cx: &Context) -> BoxFuture<'static, Result<Outcome, McpError>> {
    match start(catalog, cx) {
        Ok(filling) => filling,
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

fn start(catalog: &Inner, cx: &Context) -> Result<BoxFuture<'static, Result<Outcome, McpError>>, McpError> {
    let params: GetPromptParams = cx.params()?;
    let refuse = |text: String| Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
    let snapshot = catalog.snapshot.load();
    let Some(prompt) = snapshot.prompts.get(&params.name).filter(|prompt| catalog.shows(cx, &***prompt))
    else {
        return refuse(format!("Unknown prompt: {}", params.name));
    };
    let given = params.arguments.into_iter().flatten();
    let given: Vec<_> = given.map(|(name, word)| (name, Value::One(word))).collect();
    let missing = prompt.missing(&given);
    if !missing.is_empty() {
        return refuse(format!("Missing required arguments: {}", missing.join(", ")));
    }
    Ok(prompt.fill.fill(cx.clone(), &given, prompt.prompt.description.as_deref()))
}
