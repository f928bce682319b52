//! Changing what is offered while the server runs.
//!
//! A change swaps the snapshot; calls under way finish on the one they began with. Whoever has subscribed is told, once
//! for all changes that are made together.

use std::any::Any;
use std::borrow::Cow;
use std::sync::Arc;

use crate::features::subscriptions::Event;
use crate::kernel::context::Context;
use crate::registry::{Running, StateSlot};

use super::draft::entry;
use super::{AnyEntry, Catalog, CatalogError, Inner, Item, PromptEntry, Snapshot, ToolEntry};
use crate::catalog::prompt::IntoPrompt;
use crate::catalog::resource::IntoResource;
use crate::catalog::tool::{Bound, IntoTool};

/// Several changes at once: nobody sees a part of them.
///
/// What is added gets the state of the handler whose context the catalog was taken from.
#[derive(Clone)]
pub struct CatalogEdit<S> {
    snapshot: Snapshot,
    slot: StateSlot<S>,
    scope: usize,
    /// What names have before them that whoever edits does not know.
    prefix: String,
    changed: Changed,
}

/// Which lists are different now.
#[derive(Clone, Copy, Default)]
struct Changed {
    tools: bool,
    prompts: bool,
    resources: bool,
}

/// Something has no name among what is offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {kind} '{name}'")]
pub struct NotInCatalog {
    kind: &'static str,
    name: String,
}

macro_rules! changes {
    ($(
        $words:literal, $key:ident, $item_table:ident, $changed:ident, $remove:ident, $disable:ident, $enable:ident;
    )*) => {
        impl<S> CatalogEdit<S> {$(
            #[doc = concat!("Offers the ", $words, " no longer.")]
            pub fn $remove(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$item_table.remove(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $words, name: name.to_owned() }) }
            }

            #[doc = concat!("Hides the ", $words, " until it is enabled again.")]
            pub fn $disable(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$item_table.disable(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $words, name: name.to_owned() }) }
            }

            #[doc = concat!("Offers the ", $words, " again, in its old place.")]
            pub fn $enable(&mut self, name: &str) -> Result<(), NotInCatalog> {
                let found = self.snapshot.$item_table.enable(&self.$key(name));
                self.changed.$changed |= found;
                if found { Ok(()) } else { Err(NotInCatalog { kind: $words, name: name.to_owned() }) }
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
    fn tool(&self, tool: impl IntoTool<S>) -> Result<ToolEntry, CatalogError> {
        let tool = tool.into_tool();
        let run = Box::new(Bound { run: tool.run, slot: self.slot });
        let mut entry = entry(tool.draft, run)?;
        entry.merge(self.scope, &self.prefix)?;
        match self.snapshot.missing_view(&entry) {
            Some(fault) => Err(fault),
            None => Ok(entry),
        }
    }

    fn prompt(&self, prompt: impl IntoPrompt<S>) -> Result<PromptEntry, CatalogError> {
        let mut entry = PromptEntry::new(prompt.into_prompt().bind(self.slot))?;
        entry.merge(self.scope, &self.prefix)?;
        Ok(entry)
    }

    fn resource(&self, resource: impl IntoResource<S>) -> Result<AnyEntry, CatalogError> {
        let mut entry = AnyEntry::new(resource.into_resource().bind(self.slot))?;
        match &mut entry {
            AnyEntry::Single(entry) => entry.merge(self.scope, &self.prefix)?,
            AnyEntry::Template(entry) => entry.merge(self.scope, &self.prefix)?,
        }
        Ok(entry)
    }

    /// Offers one more tool.
    pub fn add_tool(&mut self, tool: impl IntoTool<S>) -> Result<(), CatalogError> {
        self.snapshot.tools.add(self.tool(tool)?)?;
        self.changed.tools = true;
        Ok(())
    }

    /// Puts a tool in the place of the one with its name, or offers it as one more.
    pub fn replace_tool(&mut self, tool: impl IntoTool<S>) -> Result<(), CatalogError> {
        self.snapshot.tools.replace(self.tool(tool)?)?;
        self.changed.tools = true;
        Ok(())
    }

    /// Offers one more prompt.
    pub fn add_prompt(&mut self, prompt: impl IntoPrompt<S>) -> Result<(), CatalogError> {
        self.snapshot.prompts.add(self.prompt(prompt)?)?;
        self.changed.prompts = true;
        Ok(())
    }

    /// Puts a prompt in the place of the one with its name, or offers it as one more.
    pub fn replace_prompt(&mut self, prompt: impl IntoPrompt<S>) -> Result<(), CatalogError> {
        self.snapshot.prompts.replace(self.prompt(prompt)?)?;
        self.changed.prompts = true;
        Ok(())
    }

    /// Offers one more resource, or template.
    pub fn add_resource(&mut self, resource: impl IntoResource<S>) -> Result<(), CatalogError> {
        match self.resource(resource)? {
            AnyEntry::Single(entry) => self.snapshot.resources.add(entry)?,
            AnyEntry::Template(entry) => self.snapshot.templates.add(entry)?,
        }
        self.changed.resources = true;
        Ok(())
    }

    /// Puts a resource, or a template, in the place of the one with its URI, or offers it as one more.
    pub fn replace_resource(&mut self, resource: impl IntoResource<S>) -> Result<(), CatalogError> {
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
    /// Changes what is offered, all at once, and tells whoever has subscribed. If `change` fails nothing has changed.
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
            // One after the other: a change begins with what the one before has made.
            let _turn = self.inner.changing.lock().await;
            let snapshot = Snapshot::clone(&self.inner.snapshot.load());
            let prefix = self.inner.scopes.prefix(self.scope).to_owned();
            let changed = Changed::default();
            let mut edit = CatalogEdit { snapshot, slot: self.slot, scope: self.scope, prefix, changed };
            let done = change(&mut edit)?;
            self.inner.snapshot.store(Arc::new(edit.snapshot));
            (done, edit.changed)
        };
        changed.tell(&self.running).await;
        Ok(done)
    }
}

impl Changed {
    async fn tell(self, running: &Running) {
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
    /// Returns the catalog of the server, to change it. Fails where nothing was registered.
    pub fn catalog(&self) -> Result<Catalog<S>, NotInCatalog> {
        Catalog::new(self.server(), self.state_slot())
    }
}

impl Running {
    /// Returns the catalog of the server, to change it; what is added gets the state `S`. Fails where nothing was
    /// registered, or no lifespan makes an `S`.
    pub fn catalog<S: Any + Send + Sync>(&self) -> Result<Catalog<S>, NotInCatalog> {
        Catalog::new(self, self.state_slot())
    }
}

impl<S: Any + Send + Sync> Catalog<S> {
    fn new(running: &Running, slot: Option<StateSlot<S>>) -> Result<Self, NotInCatalog> {
        let nothing = || NotInCatalog { kind: "catalog", name: running.server().server_info().name.clone() };
        let inner = running.registry().catalog.clone().and_then(|catalog| catalog.downcast::<Inner>().ok());
        let inner = inner.ok_or_else(nothing)?;
        let slot = slot.ok_or_else(nothing)?;
        let scope = inner.scopes.of(slot.id());
        Ok(Self { inner, slot, scope, running: running.clone() })
    }
}
