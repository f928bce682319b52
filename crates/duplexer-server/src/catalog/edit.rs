//! Edits of the catalog while the server runs.
//!
//! An edit swaps the snapshot; calls in flight finish on the snapshot they began with. Subscribers are notified once per
//! edit and list.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use crate::features::subscriptions::Event;
use crate::kernel::context::Context;
use crate::registry::{RunContext, RunningServer, StateSlot};

use super::{AnyEntry, Catalog, CatalogError, Inner, Item, PromptEntry, Snapshot, ToolEntry};
use crate::catalog::prompt::IntoPrompt;
use crate::catalog::resource::IntoResource;
use crate::catalog::tool::IntoTool;

/// Edit of a catalog, applied as a whole: no request sees a part of it.
///
/// Added items get the state of the handler whose context the catalog was taken from.
///
/// ```
/// use duplexer::{Context, Server, Tool, ToolError};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), duplexer::BoxError> {
/// async fn unlock(cx: Context) -> Result<(), ToolError> {
///     let catalog = cx.catalog()?;
///     // Clients see both changes at once.
///     catalog
///         .edit(|edit| {
///             edit.add_tool(Tool::new("users", || async { "ada" }))?;
///             edit.add_tool(Tool::new("rooms", || async { 3 }))
///         })
///         .await?;
///     Ok(())
/// }
///
/// let server = Server::builder("house", "1.0.0").dynamic().tool(Tool::new("unlock", unlock)).build()?;
/// # let client = duplexer::testing::TestClient::new(&server).await?;
/// # client.call_tool("unlock", ()).await?.into_result()?;
/// # assert_eq!(client.all_tools().await?.len(), 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct CatalogEdit<S> {
    snapshot: Snapshot,
    slot: StateSlot<S>,
    scope: usize,
    /// Prefix of the names in this scope, which the caller of the edit does not know.
    prefix: String,
    changed: Changed,
}

/// Lists that an edit has changed.
#[derive(Clone, Copy, Default)]
struct Changed {
    tools: bool,
    prompts: bool,
    resources: bool,
}

/// Error of an edit that names an item which is not in the catalog.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{name}'")]
pub struct NotInCatalog {
    kind: &'static str,
    name: String,
}

macro_rules! changes {
    ($(
        $kind:literal, $key:ident, $table:ident, $changed:ident, $remove:ident, $disable:ident, $enable:ident;
    )*) => {
        impl<S> CatalogEdit<S> {$(
            #[doc = concat!("Removes the ", $kind, ".")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = ""]
            #[doc = concat!("Fails if there is no such ", $kind, ".")]
            pub fn $remove(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$table.remove(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $kind, name: name.to_owned() }) }
            }

            #[doc = concat!("Disables the ", $kind, " until it is enabled again.")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = ""]
            #[doc = concat!("Fails if there is no such ", $kind, ".")]
            pub fn $disable(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$table.disable(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $kind, name: name.to_owned() }) }
            }

            #[doc = concat!("Enables the ", $kind, " again, at its old position.")]
            #[doc = ""]
            #[doc = "# Errors"]
            #[doc = ""]
            #[doc = concat!("Fails if there is no such ", $kind, ".")]
            pub fn $enable(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$table.enable(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $kind, name: name.to_owned() }) }
            }
        )*}
    };
}

changes! {
    "tool",              named, tools,     tools,     remove_tool,     disable_tool,     enable_tool;
    "prompt",            named, prompts,   prompts,   remove_prompt,   disable_prompt,   enable_prompt;
    "resource",          as_is, resources, resources, remove_resource, disable_resource, enable_resource;
    "resource template", as_is, templates, resources, remove_template, disable_template, enable_template;
}

impl<S> CatalogEdit<S> {
    fn named<'n>(&self, name: &'n str) -> Cow<'n, str> {
        if self.prefix.is_empty() {
            Cow::Borrowed(name)
        } else {
            Cow::Owned(format!("{}{name}", self.prefix))
        }
    }

    #[expect(clippy::unused_self, reason = "the counterpart of `named`")]
    fn as_is<'n>(&self, uri: &'n str) -> Cow<'n, str> {
        Cow::Borrowed(uri)
    }
}

impl<S: Any + Send + Sync> CatalogEdit<S> {
    fn tool<Via>(&self, tool: impl IntoTool<S, Via>) -> Result<ToolEntry, CatalogError> {
        let mut entry = tool.into_tool().into_entry(self.slot)?;
        entry.check()?;
        entry.merge(self.scope, &self.prefix)?;
        match self.snapshot.missing_view(&entry) {
            Some(fault) => Err(fault),
            None => Ok(entry),
        }
    }

    fn prompt<Via>(&self, prompt: impl IntoPrompt<S, Via>) -> Result<PromptEntry, CatalogError> {
        let mut entry = prompt.into_prompt().into_entry(self.slot)?;
        entry.merge(self.scope, &self.prefix)?;
        Ok(entry)
    }

    fn resource<Via>(&self, resource: impl IntoResource<S, Via>) -> Result<AnyEntry, CatalogError> {
        let mut entry = resource.into_resource().into_entry(self.slot)?;
        match &mut entry {
            AnyEntry::Single(entry) => entry.merge(self.scope, &self.prefix)?,
            AnyEntry::Template(entry) => entry.merge(self.scope, &self.prefix)?,
        }
        Ok(entry)
    }

    /// Adds a tool.
    ///
    /// # Errors
    ///
    /// Fails if the tool is invalid or its name exists.
    pub fn add_tool<Via>(&mut self, tool: impl IntoTool<S, Via>) -> Result<(), CatalogError> {
        self.snapshot.tools.add(self.tool(tool)?)?;
        self.changed.tools = true;
        Ok(())
    }

    /// Replaces the tool of the same name, or adds the tool.
    ///
    /// # Errors
    ///
    /// Fails if the tool is invalid.
    pub fn replace_tool<Via>(&mut self, tool: impl IntoTool<S, Via>) -> Result<(), CatalogError> {
        self.snapshot.tools.replace(self.tool(tool)?)?;
        self.changed.tools = true;
        Ok(())
    }

    /// Adds a prompt.
    ///
    /// # Errors
    ///
    /// Fails if the prompt is invalid or its name exists.
    pub fn add_prompt<Via>(&mut self, prompt: impl IntoPrompt<S, Via>) -> Result<(), CatalogError> {
        self.snapshot.prompts.add(self.prompt(prompt)?)?;
        self.changed.prompts = true;
        Ok(())
    }

    /// Replaces the prompt of the same name, or adds the prompt.
    ///
    /// # Errors
    ///
    /// Fails if the prompt is invalid.
    pub fn replace_prompt<Via>(&mut self, prompt: impl IntoPrompt<S, Via>) -> Result<(), CatalogError> {
        self.snapshot.prompts.replace(self.prompt(prompt)?)?;
        self.changed.prompts = true;
        Ok(())
    }

    /// Adds a resource or a template.
    ///
    /// # Errors
    ///
    /// Fails if it is invalid or its URI exists.
    pub fn add_resource<Via>(&mut self, resource: impl IntoResource<S, Via>) -> Result<(), CatalogError> {
        match self.resource(resource)? {
            AnyEntry::Single(entry) => self.snapshot.resources.add(entry)?,
            AnyEntry::Template(entry) => self.snapshot.templates.add(entry)?,
        }
        self.changed.resources = true;
        Ok(())
    }

    /// Replaces the resource or template of the same URI, or adds it.
    ///
    /// # Errors
    ///
    /// Fails if it is invalid.
    pub fn replace_resource<Via>(&mut self, resource: impl IntoResource<S, Via>) -> Result<(), CatalogError> {
        match self.resource(resource)? {
            AnyEntry::Single(entry) => self.snapshot.resources.replace(entry)?,
            AnyEntry::Template(entry) => self.snapshot.templates.replace(entry)?,
        }
        self.changed.resources = true;
        Ok(())
    }
}

impl<S> std::fmt::Debug for CatalogEdit<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CatalogEdit").finish_non_exhaustive()
    }
}

impl<S> std::fmt::Debug for Catalog<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let snapshot = self.inner.snapshot.load();
        f.debug_struct("Catalog").field("tools", &snapshot.tools.len()).finish_non_exhaustive()
    }
}

impl<S> Catalog<S> {
    /// Edits the catalog and notifies subscribers.
    ///
    /// # Errors
    ///
    /// Returns the error of `change`; the catalog is unchanged then.
    ///
    /// ```
    /// # use duplexer_server::Context;
    /// # use duplexer_server::tool::ToolError;
    /// async fn lock(cx: Context<()>) -> Result<(), ToolError> {
    ///     cx.catalog()?.edit(|edit| edit.disable_tool("open")).await?;
    ///     Ok(())
    /// }
    /// ```
    pub async fn edit<T, E>(&self, change: impl FnOnce(&mut CatalogEdit<S>) -> Result<T, E>) -> Result<T, E> {
        let (done, changed) = {
            // Edits run one after the other: each begins with the snapshot of the previous one.
            let _turn = self.inner.editing.lock().await;
            let snapshot = Snapshot::clone(&self.inner.snapshot.load());
            let prefix = self.inner.scopes.prefix(self.scope).to_owned();
            let changed = Changed::default();
            let mut edit = CatalogEdit { snapshot, slot: self.slot, scope: self.scope, prefix, changed };
            let done = change(&mut edit)?;
            self.inner.snapshot.store(Arc::new(edit.snapshot));
            (done, edit.changed)
        };
        changed.publish(&self.running).await;
        Ok(done)
    }
}

impl Changed {
    async fn publish(self, running: &RunningServer) {
        let events = [
            (self.tools, Event::ToolsChanged),
            (self.prompts, Event::PromptsChanged),
            (self.resources, Event::ResourcesChanged),
        ];
        for (_, event) in events.into_iter().filter(|(changed, _)| *changed) {
            running.publish(event).await;
        }
    }
}

impl<S: Any + Send + Sync> Context<S> {
    /// Returns the catalog of the server, to edit it. Added items get the state of this handler.
    ///
    /// # Errors
    ///
    /// Fails if the server has no catalog: nothing was registered.
    pub fn catalog(&self) -> Result<Catalog<S>, NotInCatalog> {
        Catalog::new(self.server(), self.state_slot())
    }
}

impl<S> Context<S> {
    /// Returns whether the caller can read the resource with exactly this URI: it is in the catalog, and no
    /// [filter](crate::ServerBuilder::visible) hides it.
    pub fn sees_resource(&self, uri: &str) -> bool {
        let Some(inner) = inner(self.server()) else { return false };
        let snapshot = inner.snapshot.load();
        let found = snapshot.resources.get(uri);
        found.is_some_and(|resource| !inner.scopes.hide() || inner.is_visible(&self.untyped(), &**resource))
    }
}

impl<S: Any + Send + Sync> RunContext<S> {
    /// Returns the catalog of the server, to edit it. Added items get the state of this work.
    ///
    /// # Errors
    ///
    /// Fails if the server has no catalog: nothing was registered.
    pub fn catalog(&self) -> Result<Catalog<S>, NotInCatalog> {
        Catalog::new(self.server(), Some(self.state_slot()))
    }
}

impl RunningServer {
    /// Returns the catalog of the server, to edit it. Added items get the state `S`.
    ///
    /// # Errors
    ///
    /// Fails if nothing was registered, or if no lifespan of the server creates an `S`.
    pub fn catalog<S: Any + Send + Sync>(&self) -> Result<Catalog<S>, NotInCatalog> {
        Catalog::new(self, self.state_slot())
    }
}

impl<S: Any + Send + Sync> Catalog<S> {
    fn new(running: &RunningServer, slot: Option<StateSlot<S>>) -> Result<Self, NotInCatalog> {
        let nothing = || NotInCatalog { kind: "catalog", name: running.server().server_info().name.clone() };
        let inner = inner(running).ok_or_else(nothing)?;
        let slot = slot.ok_or_else(nothing)?;
        let scope = inner.scopes.of(slot.id());
        Ok(Self { inner, slot, scope, running: running.clone() })
    }
}

fn inner(running: &RunningServer) -> Option<Arc<Inner>> {
    running.registry().catalog.clone().and_then(|catalog| catalog.downcast::<Inner>().ok())
}
