//! The catalog: tools, resources and prompts of a server, in a snapshot that is replaced as a whole.
//!
//! A request uses one snapshot from start to end. Lists are rendered once per snapshot and revision, and sent as
//! bytes.

mod audience;
pub mod completion;
mod content;
mod draft;
mod edit;
pub mod elicit;
mod erased;
mod error;
mod function;
mod item_table;
mod list;
mod name;
pub(crate) mod path;
pub mod prompt;
pub mod resource;
mod scope;
mod settings;
mod text_args;
mod threads;
pub mod tool;
mod uri_template;

use std::sync::Arc;

use arc_swap::ArcSwap;
use duplexer_types as wire;
use duplexer_types::headers::ParamHeaders;
use tokio::sync::Mutex;

use crate::kernel::context::Context;
use crate::registry::{RunningServer, StateSlot};

pub use audience::{HandlerError, ResultExt};
pub(crate) use draft::CatalogDraft;
pub use edit::{CatalogEdit, NotInCatalog};
pub use error::CatalogError;
pub(crate) use item_table::{Item, ItemTable};
pub(crate) use list::{Listed, Pages};
pub(crate) use prompt::entry::PromptEntry;
pub(crate) use resource::entry::{AnyEntry, ResourceEntry, TemplateEntry};
pub(crate) use scope::{Merged, Scopes};
pub(crate) use tool::entry::ToolEntry;

/// Handle to the catalog of a running server, through which it can be changed. Cheap to clone; all clones share the
/// catalog.
///
/// ```
/// # use duplexer_server::Context;
/// # use duplexer_server::resource::Resource;
/// # use duplexer_server::tool::ToolError;
/// async fn publish(cx: Context<()>) -> Result<(), ToolError> {
///     let page = Resource::text("page://news", "All is well.").name("news");
///     cx.catalog()?.edit(|edit| edit.add_resource(page)).await?;
///     Ok(())
/// }
/// ```
#[derive(Clone)]
pub struct Catalog<S> {
    inner: Arc<Inner>,
    slot: StateSlot<S>,
    /// Scope that names are resolved in.
    scope: usize,
    running: RunningServer,
}

pub(crate) struct Inner {
    pub(crate) snapshot: ArcSwap<Snapshot>,
    pub(crate) page_size: usize,
    pub(crate) scopes: Scopes,
    /// Serializes edits.
    editing: Mutex<()>,
}

pub(crate) type Visible = Box<dyn Fn(&Context, CatalogItem<'_>) -> bool + Send + Sync>;

/// An item of the catalog, as a [visibility filter](crate::ServerBuilder::visible) receives it.
///
/// ```
/// use duplexer::server::CatalogItem;
/// use duplexer::{Server, Tool};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// let server = Server::builder("house", "1.0.0")
///     .tool(Tool::new("open", || async {}))
///     .tool(Tool::new("purge", || async {}))
///     .visible(|cx, item| match item {
///         CatalogItem::Tool(tool) => tool.name != "purge" || cx.principal().is_some(),
///         _ => true,
///     })
///     .build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # assert_eq!(client.all_tools().await?.len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum CatalogItem<'a> {
    /// Definition of a tool.
    Tool(&'a wire::tool::ToolDefinition),
    /// Definition of a prompt.
    Prompt(&'a wire::prompt::PromptDefinition),
    /// URI of a resource.
    Resource(&'a str),
    /// URI template of a resource template.
    Template(&'a str),
}

impl Inner {
    pub(crate) fn new(snapshot: Snapshot, page_size: usize, scopes: Scopes) -> Self {
        Self { snapshot: ArcSwap::from_pointee(snapshot), page_size, scopes, editing: Mutex::new(()) }
    }

    /// Returns the header annotations of a tool.
    pub(crate) fn param_headers(&self, name: &str) -> Option<Arc<ParamHeaders>> {
        self.snapshot.load().tools.get(name)?.contract.input.schema().headers.clone()
    }

    /// Returns whether the caller can see an item, and therefore use it.
    pub(crate) fn is_visible(&self, cx: &Context, item: &impl Item) -> bool {
        self.scopes.show(cx, item)
    }
}

/// The items of a catalog at one moment.
#[derive(Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) tools: ItemTable<ToolEntry>,
    pub(crate) resources: ItemTable<ResourceEntry>,
    pub(crate) templates: ItemTable<TemplateEntry>,
    pub(crate) prompts: ItemTable<PromptEntry>,
}
