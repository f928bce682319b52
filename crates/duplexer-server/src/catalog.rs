//! The catalog: what a server offers, behind a snapshot that is replaced as a whole.
//!
//! A request looks at one snapshot from beginning to end. Lists are rendered once per snapshot and revision, and sent as
//! bytes.

pub mod completion;
mod content;
mod draft;
mod edit;
pub mod elicit;
mod error;
mod function;
mod item_table;
mod list;
mod name;
mod path;
pub mod prompt;
pub mod resource;
mod scope;
mod text_args;
pub mod tool;
mod uri_template;

use std::sync::Arc;

use crate::kernel::context::Context;
use crate::registry::{Running, StateSlot};
use arc_swap::ArcSwap;
use duplexer_types as wire;
use duplexer_types::headers::ParamHeaders;
use tokio::sync::Mutex;

pub(crate) use draft::CatalogDraft;
pub use edit::{CatalogEdit, NotInCatalog};
pub use error::CatalogError;
pub(crate) use item_table::{Item, ItemTable};
pub(crate) use list::{Listed, Pages};
pub(crate) use prompt::entry::PromptEntry;
pub(crate) use resource::entry::{AnyEntry, ResourceEntry, TemplateEntry};
pub(crate) use scope::{Merged, Scopes};
pub(crate) use tool::entry::ToolEntry;

/// What a running server offers, and the way to change it. Cheap to clone; all clones see the same.
#[derive(Clone)]
pub struct Catalog<S> {
    inner: Arc<Inner>,
    slot: StateSlot<S>,
    /// Whose names count.
    scope: usize,
    running: Running,
}

pub(crate) struct Inner {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) page_size: usize,
    pub(crate) scopes: Scopes,
    changing: Mutex<()>,
}

pub(crate) type Visible = Box<dyn Fn(&Context, CatalogItem<'_>) -> bool + Send + Sync>;

/// Something that is offered, for those who decide whether a caller may see it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CatalogItem<'a> {
    /// A tool.
    Tool(&'a wire::tool::Tool),
    /// A prompt.
    Prompt(&'a wire::prompt::Prompt),
    /// A resource, by its URI.
    Resource(&'a str),
    /// A template, by itself.
    Template(&'a str),
}

impl Inner {
    pub(crate) fn new(snapshot: Snapshot, page_size: usize, scopes: Scopes) -> Self {
        Self { snapshot: ArcSwap::from_pointee(snapshot), page_size, scopes, changing: Mutex::new(()) }
    }

    /// Returns the header annotations of a tool.
    pub(crate) fn param_headers(&self, name: &str) -> Option<Arc<ParamHeaders>> {
        self.snapshot.load().tools.get(name)?.headers.clone()
    }

    /// Whether the caller may see something, and therefore use it.
    pub(crate) fn shows(&self, cx: &Context, item: &impl Item) -> bool {
        self.scopes.show(cx, item)
    }
}

/// Everything that is offered, at one moment.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) tools: ItemTable<ToolEntry>,
    pub(crate) resources: ItemTable<ResourceEntry>,
    pub(crate) templates: ItemTable<TemplateEntry>,
    pub(crate) prompts: ItemTable<PromptEntry>,
}
