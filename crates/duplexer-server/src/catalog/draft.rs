//! What is collected while a server is described, and how it becomes handlers.

use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::methods::Method;

use super::tool::{RunTool, ToolSpec, ui};
use super::{
    AnyEntry, CatalogError, Inner, ItemTable, Listed, Merged, PromptEntry, Scopes, Snapshot, ToolEntry,
    completion, name, prompt, resource, scope, tool,
};
use crate::kernel::context::{Context, States};
use crate::kernel::handler::{Entry, RawEntry};
use crate::kernel::outcome::Outcome;

/// Everything that was registered so far. The first fault is what the build fails with.
#[derive(Default)]
pub(crate) struct CatalogDraft {
    pub(crate) snapshot: Snapshot,
    pub(crate) page_size: Option<usize>,
    pub(crate) dynamic: bool,
    pub(crate) scopes: Scopes,
    fault: Option<CatalogError>,
}

impl CatalogDraft {
    pub(crate) fn note(&mut self, result: Result<(), CatalogError>) {
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }

    pub(crate) fn tool(&mut self, draft: ToolSpec, run: Box<dyn RunTool<States>>) {
        let entry = entry(draft, run);
        let added = entry.and_then(|entry| self.snapshot.tools.add(entry));
        self.note(added);
    }

    pub(crate) fn resource(&mut self, resource: resource::Erased) {
        let added = AnyEntry::new(resource).and_then(|entry| match entry {
            AnyEntry::Single(entry) => self.snapshot.resources.add(entry),
            AnyEntry::Template(entry) => self.snapshot.templates.add(entry),
        });
        self.note(added);
    }

    pub(crate) fn prompt(&mut self, prompt: prompt::Erased) {
        let added = PromptEntry::new(prompt).and_then(|entry| self.snapshot.prompts.add(entry));
        self.note(added);
    }
}

impl CatalogDraft {
    /// Takes over what another server offers.
    pub(crate) fn merge_from(&mut self, other: Self, merged: &Merged<'_>) {
        let prefix = scope::prefix(merged);
        let scope_offset = self.scopes.merge_from(other.scopes, &prefix, merged);
        let (ours, theirs) = (&mut self.snapshot, other.snapshot);
        let merges = [
            other.fault.map_or(Ok(()), Err),
            ours.tools.merge_from(theirs.tools, scope_offset, &prefix),
            ours.prompts.merge_from(theirs.prompts, scope_offset, &prefix),
            ours.resources.merge_from(theirs.resources, scope_offset, &prefix),
            ours.templates.merge_from(theirs.templates, scope_offset, &prefix),
        ];
        for result in merges {
            self.note(result);
        }
        self.page_size = self.page_size.or(other.page_size);
        self.dynamic |= other.dynamic;
    }
}

/// A tool that may be offered.
pub(crate) fn entry(draft: ToolSpec, run: Box<dyn RunTool<States>>) -> Result<ToolEntry, CatalogError> {
    let ToolSpec { mut tool, wrapped_output, headers, limits, ui, fault } = draft;
    if let Some(fault) = fault {
        return Err(fault);
    }
    check_name("tool", &tool.name)?;
    if let Some(declared) = &ui {
        ui::tell(&mut tool.meta, declared)
            .map_err(|reason| CatalogError::Schema { tool: tool.name.clone(), reason })?;
    }
    let view = ui.and_then(|ui| ui.resource_uri);
    Ok(ToolEntry { tool, scope: 0, wrapped_output, headers, timeout: limits.timeout, view, run })
}

pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), CatalogError> {
    name::check(name).map_err(|reason| CatalogError::Name {
        kind,
        name: name.to_owned(),
        reason: reason.to_string(),
    })
}

/// A catalog that is ready to be served.
pub(crate) struct Installed {
    pub(crate) catalog: Arc<Inner>,
    pub(crate) handlers: Vec<(Method, Arc<dyn Entry>)>,
    /// Whether the catalog can change while the server runs.
    pub(crate) dynamic: bool,
}

impl CatalogDraft {
    /// Checks everything that was registered and makes the handlers that serve it.
    pub(crate) fn install(mut self) -> Result<Installed, CatalogError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(fault) = self.snapshot.tools.items().find_map(|tool| self.snapshot.missing_view(tool)) {
            return Err(fault);
        }
        let offers = if self.dynamic { Offers::EVERYTHING } else { Offers::of(&self.snapshot) };
        let page_size = self.page_size.unwrap_or(usize::MAX).max(1);
        self.scopes.link_middleware();
        let catalog = Arc::new(Inner::new(self.snapshot, page_size, self.scopes));
        let handlers = offers.handlers(&catalog);
        Ok(Installed { catalog, handlers, dynamic: self.dynamic })
    }
}

impl Snapshot {
    /// What is wrong with the view of a tool: it is not there, or is none.
    pub(crate) fn missing_view(&self, entry: &ToolEntry) -> Option<CatalogError> {
        let view = entry.view.as_ref()?;
        let reason = match self.resources.get(view).map(|page| page.mime_type()) {
            Some(Some(ui::MIME_TYPE)) => return None,
            Some(other) => {
                let other = other.unwrap_or("unknown");
                format!("its view '{view}' is of the type '{other}', not '{}'", ui::MIME_TYPE)
            }
            None => format!("its view '{view}' is not registered: add it with `Apps::view`"),
        };
        Some(CatalogError::Schema { tool: entry.tool.name.clone(), reason })
    }
}

/// Which kinds of things a server offers: each is a capability.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
struct Offers {
    tools: bool,
    resources: bool,
    prompts: bool,
    completions: bool,
}

impl Offers {
    const EVERYTHING: Self = Self { tools: true, resources: true, prompts: true, completions: true };

    fn of(snapshot: &Snapshot) -> Self {
        let completes = |all: &[_]| !all.is_empty();
        Self {
            tools: snapshot.tools.len() > 0,
            resources: snapshot.resources.len() + snapshot.templates.len() > 0,
            prompts: snapshot.prompts.len() > 0,
            completions: snapshot.prompts.items().any(|prompt| completes(&prompt.completions))
                || snapshot.templates.items().any(|template| completes(&template.completions)),
        }
    }

    fn handlers(self, catalog: &Arc<Inner>) -> Vec<(Method, Arc<dyn Entry>)> {
        let mut handlers = Vec::new();
        if self.tools {
            handlers.push((Method::ToolsList, lists(catalog, |all| &all.tools)));
            handlers.push((Method::ToolsCall, answers(catalog, tool::entry::call)));
        }
        if self.resources {
            handlers.push((Method::ResourcesList, lists(catalog, |all| &all.resources)));
            handlers.push((Method::ResourcesTemplatesList, lists(catalog, |all| &all.templates)));
            handlers.push((Method::ResourcesRead, answers(catalog, resource::entry::read)));
        }
        if self.prompts {
            handlers.push((Method::PromptsList, lists(catalog, |all| &all.prompts)));
            handlers.push((Method::PromptsGet, answers(catalog, prompt::entry::get)));
        }
        if self.completions {
            handlers.push((Method::CompletionComplete, answers(catalog, completion::complete::complete)));
        }
        handlers
    }
}

type Answer = BoxFuture<'static, Result<Outcome, McpError>>;

fn answers(catalog: &Arc<Inner>, answer: fn(&Inner, &Context) -> Answer) -> Arc<dyn Entry> {
    let catalog = Arc::clone(catalog);
    Arc::new(RawEntry(move |cx: Context| answer(&catalog, &cx)))
}

/// A list is there at once.
fn lists<T: Listed>(catalog: &Arc<Inner>, item_table: fn(&Snapshot) -> &ItemTable<T>) -> Arc<dyn Entry> {
    let catalog = Arc::clone(catalog);
    Arc::new(RawEntry(move |cx: Context| -> Answer {
        let snapshot = catalog.snapshot.load();
        Box::pin(std::future::ready(item_table(&snapshot).list(&cx, &catalog)))
    }))
}
