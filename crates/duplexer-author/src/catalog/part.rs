//! What is collected while a server is described, and how it becomes handlers.

use std::any::Any;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, McpError};
use duplexer_core::server::{Context, Installer, Merged, Outcome, Part};
use duplexer_types::methods;

use super::{
    AnyEntry, CatalogError, Inner, Listed, PromptEntry, Scopes, Shelf, Snapshot, ToolEntry, completions,
    prompts, resources, scope, tools,
};
use crate::tool::Draft;
use crate::{apps, name};

/// Everything that was registered so far. The first fault is what the build fails with.
#[derive(Default)]
pub(crate) struct CatalogPart {
    pub(crate) snapshot: Snapshot,
    pub(crate) page_size: Option<usize>,
    pub(crate) dynamic: bool,
    pub(crate) scopes: Scopes,
    fault: Option<CatalogError>,
}

impl CatalogPart {
    pub(crate) fn note(&mut self, result: Result<(), CatalogError>) {
        if let Err(fault) = result {
            self.fault.get_or_insert(fault);
        }
    }

    pub(crate) fn tool(
        &mut self,
        draft: Draft,
        run: Box<dyn crate::tool::RunTool<duplexer_core::server::States>>,
    ) {
        let entry = entry(draft, run);
        let added = entry.and_then(|entry| self.snapshot.tools.add(entry));
        self.note(added);
    }

    pub(crate) fn resource(&mut self, resource: crate::resource::Erased) {
        let added = AnyEntry::new(resource).and_then(|entry| match entry {
            AnyEntry::Single(entry) => self.snapshot.resources.add(entry),
            AnyEntry::Template(entry) => self.snapshot.templates.add(entry),
        });
        self.note(added);
    }

    pub(crate) fn prompt(&mut self, prompt: crate::prompt::Erased) {
        let added = PromptEntry::new(prompt).and_then(|entry| self.snapshot.prompts.add(entry));
        self.note(added);
    }
}

impl CatalogPart {
    /// Takes over what another server offers.
    fn absorb(&mut self, other: Self, merged: &Merged<'_>) {
        let prefix = scope::prefix(merged);
        let moved = self.scopes.absorb(other.scopes, &prefix, merged);
        let (ours, theirs) = (&mut self.snapshot, other.snapshot);
        let absorbed = [
            other.fault.map_or(Ok(()), Err),
            ours.tools.absorb(theirs.tools, moved, &prefix),
            ours.prompts.absorb(theirs.prompts, moved, &prefix),
            ours.resources.absorb(theirs.resources, moved, &prefix),
            ours.templates.absorb(theirs.templates, moved, &prefix),
        ];
        for result in absorbed {
            self.note(result);
        }
        self.page_size = self.page_size.or(other.page_size);
        self.dynamic |= other.dynamic;
    }
}

/// A tool that may be offered.
pub(crate) fn entry(
    draft: Draft,
    run: Box<dyn crate::tool::RunTool<duplexer_core::server::States>>,
) -> Result<ToolEntry, CatalogError> {
    let Draft { mut tool, wrapped_output, headers, limits, ui, fault } = draft;
    if let Some(fault) = fault {
        return Err(fault);
    }
    check_name("tool", &tool.name)?;
    if let Some(ui) = &ui {
        apps::tell(&mut tool.meta, ui)
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

impl Part for CatalogPart {
    fn install(mut self: Box<Self>, into: &mut Installer<'_>) -> Result<(), BoxError> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        if let Some(fault) = self.snapshot.tools.items().find_map(|tool| self.snapshot.missing_view(tool)) {
            return Err(fault.into());
        }
        let offers = if self.dynamic { Offers::EVERYTHING } else { Offers::of(&self.snapshot) };
        if self.dynamic {
            into.subscriptions();
        }
        let page_size = self.page_size.unwrap_or(usize::MAX).max(1);
        self.scopes.settle();
        let catalog = Arc::new(Inner::new(self.snapshot, page_size, self.scopes));
        into.keep(Arc::clone(&catalog));
        offers.install(&catalog, into);
        Ok(())
    }

    fn join(self: Box<Self>, outer: Option<Box<dyn Part>>, merged: &Merged<'_>) -> Box<dyn Part> {
        let outer = outer.and_then(|outer| (outer as Box<dyn Any>).downcast::<Self>().ok());
        let mut outer = outer.unwrap_or_default();
        outer.absorb(*self, merged);
        outer
    }
}

impl Snapshot {
    /// What is wrong with the view of a tool: it is not there, or is none.
    pub(crate) fn missing_view(&self, entry: &ToolEntry) -> Option<CatalogError> {
        let view = entry.view.as_ref()?;
        let reason = match self.resources.get(view).map(|page| page.mime_type()) {
            Some(Some(apps::MIME_TYPE)) => return None,
            Some(other) => {
                let other = other.unwrap_or("unknown");
                format!("its view '{view}' is of the type '{other}', not '{}'", apps::MIME_TYPE)
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

    fn install(self, catalog: &Arc<Inner>, into: &mut Installer<'_>) {
        if self.tools {
            into.on(methods::ToolsList, lists(catalog, |all| &all.tools));
            into.on(methods::ToolsCall, answers(catalog, tools::call));
            into.tool_headers(Arc::clone(catalog) as _);
        }
        if self.resources {
            into.on(methods::ResourcesList, lists(catalog, |all| &all.resources));
            into.on(methods::ResourcesTemplatesList, lists(catalog, |all| &all.templates));
            into.on(methods::ResourcesRead, answers(catalog, resources::read));
        }
        if self.prompts {
            into.on(methods::PromptsList, lists(catalog, |all| &all.prompts));
            into.on(methods::PromptsGet, answers(catalog, prompts::get));
        }
        if self.completions {
            into.on(methods::CompletionComplete, answers(catalog, completions::complete));
        }
    }
}

type Answer = BoxFuture<'static, Result<Outcome, McpError>>;

fn answers(
    catalog: &Arc<Inner>,
    answer: fn(&Inner, &Context) -> Answer,
) -> impl Fn(Context) -> Answer + Send + Sync + 'static {
    let catalog = Arc::clone(catalog);
    move |cx| answer(&catalog, &cx)
}

/// A list is there at once.
fn lists<T: Listed>(
    catalog: &Arc<Inner>,
    shelf: fn(&Snapshot) -> &Shelf<T>,
) -> impl Fn(Context) -> Answer + Send + Sync + 'static {
    let catalog = Arc::clone(catalog);
    move |cx| {
        let snapshot = catalog.snapshot.load();
        Box::pin(std::future::ready(shelf(&snapshot).list(&cx, &catalog)))
    }
}
