//! Collects what is registered while a server is built, and turns it into handlers.

use std::sync::Arc;

use duplexer_types::app::MIME_TYPE;
use duplexer_types::methods::Method;

use super::erased::HandlerFuture;
use super::{
    AnyEntry, CatalogError, Inner, ItemTable, Listed, Merged, PromptEntry, Scopes, Snapshot, ToolEntry,
    completion, name, prompt, resource, scope, tool,
};
use crate::kernel::context::Context;
use crate::kernel::handler::{Entry, RawEntry};
use crate::registry::NotificationOptions;

/// The items registered so far, and the first fault among them, which fails the build.
#[derive(Default)]
pub(crate) struct CatalogDraft {
    pub(crate) snapshot: Snapshot,
    pub(crate) page_size: Option<usize>,
    pub(crate) dynamic: bool,
    /// The resources can change while the server runs.
    pub(crate) dynamic_resources: bool,
    /// All schemas are derived when the server is built.
    pub(crate) checks_schemas: bool,
    pub(crate) scopes: Scopes,
    fault: Option<CatalogError>,
}

impl CatalogDraft {
    fn note(&mut self, result: Result<(), CatalogError>) {
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }

    pub(crate) fn tool(&mut self, entry: Result<ToolEntry, CatalogError>) {
        let added = entry.and_then(|entry| self.snapshot.tools.add(entry));
        self.note(added);
    }

    pub(crate) fn resource(&mut self, entry: Result<AnyEntry, CatalogError>) {
        let added = entry.and_then(|entry| match entry {
            AnyEntry::Single(entry) => self.snapshot.resources.add(entry),
            AnyEntry::Template(entry) => self.snapshot.templates.add(entry),
        });
        self.note(added);
    }

    pub(crate) fn prompt(&mut self, entry: Result<PromptEntry, CatalogError>) {
        let added = entry.and_then(|entry| self.snapshot.prompts.add(entry));
        self.note(added);
    }

    /// Takes over the items of another server.
    pub(crate) fn merge_from(&mut self, other: Self, merged: &Merged<'_>) {
        let prefix = scope::prefix(merged);
        let scope_offset = self.scopes.merge_from(other.scopes, &prefix, merged);
        let (ours, theirs) = (&mut self.snapshot, other.snapshot);
        let results = [
            other.fault.map_or(Ok(()), Err),
            ours.tools.merge_from(theirs.tools, scope_offset, &prefix),
            ours.prompts.merge_from(theirs.prompts, scope_offset, &prefix),
            ours.resources.merge_from(theirs.resources, scope_offset, &prefix),
            ours.templates.merge_from(theirs.templates, scope_offset, &prefix),
        ];
        for result in results {
            self.note(result);
        }
        self.page_size = self.page_size.or(other.page_size);
        self.dynamic |= other.dynamic;
        self.dynamic_resources |= other.dynamic_resources;
        self.checks_schemas |= other.checks_schemas;
    }
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
    /// The lists that can change while the server runs.
    pub(crate) changes: NotificationOptions,
}

impl CatalogDraft {
    /// Checks the registered items and creates the handlers that serve them.
    pub(crate) fn install(mut self) -> Result<Installed, CatalogError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        if let Some(fault) = self.snapshot.tools.items().find_map(|tool| self.snapshot.missing_view(tool)) {
            return Err(fault);
        }
        if self.checks_schemas {
            self.snapshot.tools.items().try_for_each(|tool| tool.check())?;
        }
        let mut kinds = if self.dynamic { ItemKinds::ALL } else { ItemKinds::of(&self.snapshot) };
        kinds.resources |= self.dynamic_resources;
        let resources_only = NotificationOptions {
            resources_changed: self.dynamic_resources,
            ..NotificationOptions::default()
        };
        let changes = if self.dynamic { NotificationOptions::all() } else { resources_only };
        let page_size = self.page_size.unwrap_or(usize::MAX).max(1);
        self.scopes.link_middleware();
        let catalog = Arc::new(Inner::new(self.snapshot, page_size, self.scopes));
        let handlers = kinds.handlers(&catalog);
        Ok(Installed { catalog, handlers, changes })
    }
}

impl Snapshot {
    /// Returns a fault if the view of a tool is not registered, or is not a view.
    pub(crate) fn missing_view(&self, entry: &ToolEntry) -> Option<CatalogError> {
        let view = entry.view.as_ref()?;
        let reason = match self.resources.get(view).map(|page| page.mime_type()) {
            Some(Some(MIME_TYPE)) => return None,
            Some(other) => {
                let other = other.unwrap_or("unknown");
                format!("its view '{view}' is of the type '{other}', not '{MIME_TYPE}'")
            }
            None => format!("its view '{view}' is not registered: add it with `Apps::view`"),
        };
        Some(CatalogError::Schema { tool: entry.tool.name.clone(), reason })
    }
}

/// Kinds of items that a server has. Each is a capability.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a capability of its own")]
struct ItemKinds {
    tools: bool,
    resources: bool,
    prompts: bool,
    completions: bool,
}

impl ItemKinds {
    const ALL: Self = Self { tools: true, resources: true, prompts: true, completions: true };

    fn of(snapshot: &Snapshot) -> Self {
        Self {
            tools: snapshot.tools.len() > 0,
            resources: snapshot.resources.len() + snapshot.templates.len() > 0,
            prompts: snapshot.prompts.len() > 0,
            completions: snapshot.prompts.items().any(|prompt| !prompt.completions.is_empty())
                || snapshot.templates.items().any(|template| !template.completions.is_empty()),
        }
    }

    fn handlers(self, catalog: &Arc<Inner>) -> Vec<(Method, Arc<dyn Entry>)> {
        let mut handlers = Vec::new();
        if self.tools {
            handlers.push((Method::ToolsList, list_handler(catalog, |all| &all.tools)));
            handlers.push((Method::ToolsCall, handler(catalog, tool::entry::call)));
        }
        if self.resources {
            handlers.push((Method::ResourcesList, list_handler(catalog, |all| &all.resources)));
            handlers.push((Method::ResourcesTemplatesList, list_handler(catalog, |all| &all.templates)));
            handlers.push((Method::ResourcesRead, handler(catalog, resource::entry::read)));
        }
        if self.prompts {
            handlers.push((Method::PromptsList, list_handler(catalog, |all| &all.prompts)));
            handlers.push((Method::PromptsGet, handler(catalog, prompt::entry::get)));
        }
        if self.completions {
            handlers.push((Method::CompletionComplete, handler(catalog, completion::complete::complete)));
        }
        handlers
    }
}

fn handler(catalog: &Arc<Inner>, handle: fn(&Inner, Context) -> HandlerFuture) -> Arc<dyn Entry> {
    let catalog = Arc::clone(catalog);
    Arc::new(RawEntry(move |cx: Context| handle(&catalog, cx)))
}

fn list_handler<T: Listed>(catalog: &Arc<Inner>, table: fn(&Snapshot) -> &ItemTable<T>) -> Arc<dyn Entry> {
    let catalog = Arc::clone(catalog);
    Arc::new(RawEntry(move |cx: Context| -> HandlerFuture {
        let snapshot = catalog.snapshot.load();
        Box::pin(std::future::ready(table(&snapshot).list(&cx, &catalog)))
    }))
}
