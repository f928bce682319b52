//! The catalog: what a server offers, behind a snapshot that is replaced as a whole.
//!
//! A request looks at one snapshot from beginning to end. Lists are rendered once per snapshot and revision, and sent as
//! bytes.

mod completions;
mod error;
mod list;
mod part;
mod prompts;
mod resources;
mod shelf;
mod tools;

use std::sync::Arc;

use arc_swap::ArcSwap;
use duplexer_core::server::{Context, ToolHeaders};
use duplexer_types::headers::ParamHeaders;

pub use error::CatalogError;
pub(crate) use list::{Listed, Pages};
pub(crate) use part::CatalogPart;
pub(crate) use prompts::PromptEntry;
pub(crate) use resources::{AnyEntry, ResourceEntry, TemplateEntry};
pub(crate) use shelf::{Item, Shelf};
pub(crate) use tools::ToolEntry;

/// What a server offers at this moment. Cheap to clone; all clones see the same.
#[derive(Clone)]
pub struct Catalog(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) page_size: usize,
}

/// Everything that is offered, at one moment.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) tools: Shelf<ToolEntry>,
    pub(crate) resources: Shelf<ResourceEntry>,
    pub(crate) templates: Shelf<TemplateEntry>,
    pub(crate) prompts: Shelf<PromptEntry>,
}

impl Catalog {
    /// The catalog of the server that handles a message.
    pub(crate) fn of<S>(cx: &Context<S>) -> Option<Self> {
        cx.server().server().kept::<Inner>().map(Self)
    }
}

impl ToolHeaders for Inner {
    fn param_headers(&self, name: &str) -> Option<Arc<ParamHeaders>> {
        self.snapshot.load().tools.get(name)?.headers.clone()
    }
}

impl std::fmt::Debug for Catalog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let snapshot = self.0.snapshot.load();
        f.debug_struct("Catalog").field("tools", &snapshot.tools.len()).finish_non_exhaustive()
    }
}
