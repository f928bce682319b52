//! `prompts/list` and `prompts/get`.

use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::methods::Method;
use duplexer_types::prompt::{self as wire, GetPromptParams, ListPromptsResult};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::CacheScope;

use super::{GetPrompt, Prompt, PromptInput};
use crate::catalog::completion::BoundCompletions;
use crate::catalog::draft::check_name;
use crate::catalog::erased::{BoundHandler, HandlerFuture, bind, failed};
use crate::catalog::uri_template::Value;
use crate::catalog::{CatalogError, CatalogItem, Inner, Item, Listed};
use crate::kernel::context::Context;
use crate::registry::StateSlot;

/// A registered prompt.
pub(crate) struct PromptEntry {
    prompt: wire::PromptDefinition,
    scope: usize,
    get: BoundHandler<GetPrompt>,
    pub(crate) completions: BoundCompletions,
}

impl<S: Send + Sync + 'static> Prompt<S> {
    /// Checks the prompt and binds it to its state.
    pub(crate) fn into_entry(self, slot: StateSlot<S>) -> Result<PromptEntry, CatalogError> {
        let prompt = self.spec.prompt;
        if let Some(reason) = self.spec.fault {
            return Err(CatalogError::Prompt { prompt: prompt.name, reason });
        }
        check_name("prompt", &prompt.name)?;
        let completions = self.completions.bind(slot);
        Ok(PromptEntry { prompt, scope: 0, get: bind(self.get, slot), completions })
    }
}

impl PromptEntry {
    /// Returns the required arguments that are missing.
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

    fn is_visible(&self, prefix: usize, visible: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        if prefix == 0 {
            return visible(CatalogItem::Prompt(&self.prompt));
        }
        let mut prompt = self.prompt.clone();
        prompt.name.replace_range(..prefix, "");
        visible(CatalogItem::Prompt(&prompt))
    }

    fn merge(&mut self, scope_offset: usize, prefix: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        self.prompt.name.insert_str(0, prefix);
        check_name(Self::KIND, &self.prompt.name)
    }
}

impl Listed for PromptEntry {
    type Definition = wire::PromptDefinition;
    type Page = ListPromptsResult;
    const METHOD: Method = Method::PromptsList;

    fn definition(&self, _: ProtocolVersion) -> wire::PromptDefinition {
        self.prompt.clone()
    }

    fn page(prompts: Vec<wire::PromptDefinition>, next: Option<String>) -> ListPromptsResult {
        let mut page = ListPromptsResult::new(prompts);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

/// Handles `prompts/get`.
pub(crate) fn get(catalog: &Inner, cx: Context) -> HandlerFuture {
    start(catalog, cx).unwrap_or_else(failed)
}

fn start(catalog: &Inner, cx: Context) -> Result<HandlerFuture, McpError> {
    let params: GetPromptParams = cx.params()?;
    let refuse = |text: String| Err(McpError::new(ErrorCode::INVALID_PARAMS, text));
    let snapshot = catalog.snapshot.load();
    let visible = snapshot.prompts.get(&params.name).filter(|prompt| catalog.is_visible(&cx, &***prompt));
    let Some(prompt) = visible else {
        return refuse(format!("Unknown prompt: {}", params.name));
    };
    let given = params.arguments.into_iter().flatten();
    let given: Vec<_> = given.map(|(name, text)| (name, Value::One(text))).collect();
    let missing = prompt.missing(&given);
    if !missing.is_empty() {
        return refuse(format!("Missing required arguments: {}", missing.join(", ")));
    }
    let input = PromptInput { arguments: &given, description: prompt.prompt.description.as_deref() };
    Ok(prompt.get.run(cx, input))
}
