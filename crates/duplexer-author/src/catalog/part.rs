//! What is collected while a server is described, and how it becomes handlers.

use std::sync::Arc;

use arc_swap::ArcSwap;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::{BoxError, McpError};
use duplexer_core::server::{Context, Installer, Outcome, Part};
use duplexer_types::methods;

use super::{CatalogError, Inner, Snapshot, ToolEntry, tools};
use crate::name;
use crate::tool::Draft;

/// Everything that was registered so far. The first fault is what the build fails with.
#[derive(Default)]
pub(crate) struct CatalogPart {
    pub(crate) snapshot: Snapshot,
    pub(crate) page_size: Option<usize>,
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
}

/// A tool that may be offered.
pub(crate) fn entry(
    draft: Draft,
    run: Box<dyn crate::tool::RunTool<duplexer_core::server::States>>,
) -> Result<ToolEntry, CatalogError> {
    let Draft { tool, wrapped_output, headers, limits, fault } = draft;
    if let Some(fault) = fault {
        return Err(fault);
    }
    check_name("tool", &tool.name)?;
    Ok(ToolEntry { tool, wrapped_output, headers, timeout: limits.timeout, run })
}

pub(crate) fn check_name(kind: &'static str, name: &str) -> Result<(), CatalogError> {
    name::check(name).map_err(|reason| CatalogError::Name {
        kind,
        name: name.to_owned(),
        reason: reason.to_string(),
    })
}

impl Part for CatalogPart {
    fn install(self: Box<Self>, into: &mut Installer<'_>) -> Result<(), BoxError> {
        if let Some(fault) = self.fault {
            return Err(fault.into());
        }
        let has_tools = self.snapshot.tools.len() > 0;
        let page_size = self.page_size.unwrap_or(usize::MAX).max(1);
        let catalog = Arc::new(Inner { snapshot: ArcSwap::from_pointee(self.snapshot), page_size });
        into.keep(Arc::clone(&catalog));
        if has_tools {
            into.on(
                methods::ToolsList,
                lists(&catalog, |catalog, cx| catalog.snapshot.load().tools.list(cx, catalog.page_size)),
            );
            let called = Arc::clone(&catalog);
            into.on(methods::ToolsCall, move |cx: Context| tools::call(&called, &cx));
            into.tool_headers(catalog);
        }
        Ok(())
    }
}

/// A handler that answers at once.
fn lists(
    catalog: &Arc<Inner>,
    list: impl Fn(&Inner, &Context) -> Result<Outcome, McpError> + Send + Sync + 'static,
) -> impl Fn(Context) -> BoxFuture<'static, Result<Outcome, McpError>> + Send + Sync + 'static {
    let catalog = Arc::clone(catalog);
    move |cx| Box::pin(std::future::ready(list(&catalog, &cx)))
}
