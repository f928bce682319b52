//! Registration of tools, resources, prompts and extensions.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use duplexer_types::methods::Method;

use super::{BuildError, Extension, NotificationOptions, ServerBuilder};
use crate::catalog::prompt::IntoPrompt;
use crate::catalog::resource::{self, AsJson, IntoResource, Resource};
use crate::catalog::tool::{IntoTool, ToolMiddleware};
use crate::catalog::{self, CatalogDraft, CatalogItem};
use crate::features::subscriptions::{MemoryBus, Plan, SubscriptionLimits};
use crate::kernel::context::Context;
use duplexer_core::error::BoxError;

/// The variable of a directory's template.
#[derive(serde::Deserialize)]
struct Below {
    path: String,
}

/// Tools, resources and prompts.
///
/// Handlers receive the state that was set last: call `.state(..)` and `.lifespan(..)` before the registrations that
/// use it.
impl<S: Any + Send + Sync> ServerBuilder<S> {
    /// Registers a tool. A name that is taken or invalid fails the build.
    pub fn tool<Via>(mut self, tool: impl IntoTool<S, Via>) -> Self {
        let entry = tool.into_tool().into_entry(self.state_slot());
        self.catalog().tool(entry);
        self
    }

    /// Registers a resource, or a template for many.
    pub fn resource<Via>(mut self, resource: impl IntoResource<S, Via>) -> Self {
        let entry = resource.into_resource().into_entry(self.state_slot());
        self.catalog().resource(entry);
        self
    }

    /// Registers the files of a directory: its listing under `uri`, and each file under `uri/path`. Files outside of
    /// the directory cannot be read, not even through links, and neither can hidden files (`.name`).
    ///
    /// Only regular files are read, up to the [maximum size](Self::max_file_size).
    pub fn directory(self, uri: &str, path: impl Into<PathBuf>) -> Self {
        let base: Arc<PathBuf> = Arc::new(path.into());
        let listed = Arc::clone(&base);
        let listing = Resource::new(uri, move || {
            let path = Arc::clone(&listed);
            async move { resource::list_directory(path).await.map(AsJson) }
        })
        .mime_type("application/json");
        let files = format!("{}/{{+path}}", uri.trim_end_matches('/'));
        let files = Resource::template::<_, _, fn(Context<S>, Below)>(
            files,
            move |cx: Context<S>, Below { path }| {
                let base = Arc::clone(&base);
                let limit = cx.server().registry().max_file_size;
                async move { resource::read_below(base, path, limit).await }
            },
        );
        self.resource(listing).resource(files)
    }

    /// Sets the maximum size of a file that a resource reads, in bytes: 16 MiB by default. The client of a larger file
    /// gets an error that states the limit.
    ///
    /// One setting applies to all merged servers: that of the outer server, if it has one.
    pub fn max_file_size(mut self, bytes: u64) -> Self {
        self.deferred.max_file_size = Some(bytes);
        self
    }

    /// Registers a prompt.
    pub fn prompt<Via>(mut self, prompt: impl IntoPrompt<S, Via>) -> Self {
        let entry = prompt.into_prompt().into_entry(self.state_slot());
        self.catalog().prompt(entry);
        self
    }

    /// Adds an extension. An extension that registers a method or an item that is already registered fails the build.
    pub fn extend(self, extension: impl Extension<S>) -> Self {
        let builder = self.extension_in(extension.id().to_owned(), extension.settings(), extension.window());
        builder.without_replacing(|builder| extension.install(builder))
    }

    /// Allows the catalog to change while the server runs. Every list is served from the start, even an empty one, and
    /// subscribed clients are notified of changes. See [`Catalog::edit`](crate::Catalog::edit).
    ///
    /// Without a bus (`.subscriptions(..)`) the server gets a bus of this process.
    pub fn dynamic(mut self) -> Self {
        self.catalog().dynamic = true;
        self
    }

    /// Allows the resources of the catalog to change while the server runs, like [`Self::dynamic`], and nothing else of it.
    pub fn dynamic_resources(mut self) -> Self {
        self.catalog().dynamic_resources = true;
        self
    }

    /// Makes [`build`](Self::build) fail with this error. For extensions whose settings cannot be used.
    pub fn fail(mut self, error: impl Into<BoxError>) -> Self {
        self.deferred.faults.push(BuildError::Part(error.into()));
        self
    }

    /// Filters items per caller. Hidden items can be neither listed nor called, and lists are marked `cacheScope:
    /// private`.
    pub fn visible(
        mut self,
        visible: impl Fn(&Context, CatalogItem<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.catalog().scopes.own().visible = Some(Box::new(visible));
        self
    }

    /// Passes every call of a tool through this, after middleware and before the tool; what was given first is outermost.
    /// A function that asks its user runs once per round, and so does this.
    pub fn tool_middleware(mut self, middleware: impl ToolMiddleware) -> Self {
        self.catalog().scopes.own().tool_middleware.push(Arc::new(middleware));
        self
    }

    /// Sets the maximum number of items per page of a list. Without it every list is one page.
    pub fn page_size(mut self, size: usize) -> Self {
        self.catalog().page_size = Some(size);
        self
    }

    /// Derives the schemas of all tools in [`build`](Self::build), which fails if one of them cannot be used.
    ///
    /// Debug builds, and so tests, always do. Release builds otherwise derive a schema when it is first needed, so that a
    /// server with many tools starts sooner; a tool whose schema cannot be used then fails when it is called.
    pub fn check_schemas(mut self) -> Self {
        self.catalog().checks_schemas = true;
        self
    }

    fn catalog(&mut self) -> &mut CatalogDraft {
        self.deferred.catalog.get_or_insert_default()
    }

    /// Registers the handlers of the catalog, each unless its method already has one.
    pub(super) fn install(&mut self, draft: CatalogDraft) -> Result<Arc<catalog::Inner>, BuildError> {
        if self.deferred.tasks.is_none()
            && let Some(tool) = draft.snapshot.tools.items().find(|tool| tool.execution.task.is_some())
        {
            return Err(BuildError::NoTasks(tool.tool.name.clone()));
        }
        let installed = draft.install().map_err(|fault| BuildError::Part(fault.into()))?;
        for (method, entry) in installed.handlers {
            if self.deferred.merged > 0 && self.handlers.spec(method).is_some() {
                return Err(BuildError::Hidden(method.name()));
            }
            self.handlers.set_default(method, entry);
        }
        if installed.changes != NotificationOptions::default() {
            let plan = || Plan { bus: Arc::new(MemoryBus::new()), limits: SubscriptionLimits::default() };
            self.deferred.advertised.subscriptions.get_or_insert_with(plan);
            self.deferred.advertised.changes |= installed.changes;
        }
        let catalog = installed.catalog;
        if self.handlers.spec(Method::ToolsCall).is_some() && self.deferred.tool_headers.is_none() {
            let headers = Arc::clone(&catalog);
            self.deferred.tool_headers = Some(Arc::new(move |name| headers.param_headers(name)));
        }
        Ok(catalog)
    }
}
