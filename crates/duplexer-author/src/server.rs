//! What the builder of a server learns from this crate.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use duplexer_core::server::{Context, ServerBuilder};

use crate::catalog::{CatalogPart, Offered};
use crate::extension::Extension;
use crate::intercept::Interceptor;
use crate::prompt::IntoPrompt;
use crate::resource::{self, AsJson, IntoResource, Resource};
use crate::tool::{Bound, IntoTool};

/// The variable of a directory's template.
#[derive(serde::Deserialize)]
struct Below {
    path: String,
}

/// Registers tools, resources and prompts while a server is described.
///
/// Handlers get the state that was given last: `.state(..)` and `.lifespan(..)` go before what uses them.
pub trait ServerExt<S>: Sized {
    /// Offers a tool. A name that is taken or cannot be used fails the build.
    #[must_use]
    fn tool(self, tool: impl IntoTool<S>) -> Self;

    /// Offers a resource, or a template for many.
    #[must_use]
    fn resource(self, resource: impl IntoResource<S>) -> Self;

    /// Offers the files of a directory: its listing under `uri`, and each file under `uri/path`. Nothing outside of it can be
    /// read, whatever links it holds, and nothing hidden (`.name`).
    #[must_use]
    fn directory(self, uri: &str, path: impl Into<PathBuf>) -> Self;

    /// Offers a prompt.
    #[must_use]
    fn prompt(self, prompt: impl IntoPrompt<S>) -> Self;

    /// Speaks an extension. One that brings a method, or anything else, that is there already fails the build.
    #[must_use]
    fn extend(self, extension: impl Extension<S>) -> Self;

    /// What is offered may change while the server runs: every list is served from the start, however short, and clients
    /// who subscribe are told of changes. See [`Catalog::edit`](crate::Catalog::edit).
    ///
    /// Without a bus of its own (`.subscriptions(..)`) the server gets one of this process.
    #[must_use]
    fn dynamic(self) -> Self;

    /// Decides what a caller may see. What is not seen cannot be used either, and lists are not for others to keep.
    #[must_use]
    fn visible(self, visible: impl Fn(&Context, Offered<'_>) -> bool + Send + Sync + 'static) -> Self;

    /// Passes every call of a tool through this, after middleware and before the tool; what was given first is outermost.
    /// A function that asks its user runs once per round, and so does this.
    #[must_use]
    fn intercept(self, interceptor: impl Interceptor) -> Self;

    /// Lists at most this many things at once. Without it every list is one page.
    #[must_use]
    fn page_size(self, size: usize) -> Self;
}

impl<S: Any + Send + Sync> ServerExt<S> for ServerBuilder<S> {
    fn tool(mut self, tool: impl IntoTool<S>) -> Self {
        let tool = tool.into_tool();
        let run = Box::new(Bound { run: tool.run, slot: self.state_slot() });
        self.part::<CatalogPart>().tool(tool.draft, run);
        self
    }

    fn resource(mut self, resource: impl IntoResource<S>) -> Self {
        let resource = resource.into_resource().bind(self.state_slot());
        self.part::<CatalogPart>().resource(resource);
        self
    }

    fn directory(self, uri: &str, path: impl Into<PathBuf>) -> Self {
        let base: Arc<PathBuf> = Arc::new(path.into());
        let listed = Arc::clone(&base);
        let listing = Resource::new(uri).mime_type("application/json").handler(move || {
            let path = Arc::clone(&listed);
            async move { resource::list_directory(&path).await.map(AsJson) }
        });
        let files = format!("{}/{{+path}}", uri.trim_end_matches('/'));
        let files = Resource::template(files).handler(move |Below { path }| {
            let base = Arc::clone(&base);
            async move { resource::read_below(&base, &path).await }
        });
        self.resource(listing).resource(files)
    }

    fn prompt(mut self, prompt: impl IntoPrompt<S>) -> Self {
        let prompt = prompt.into_prompt().bind(self.state_slot());
        self.part::<CatalogPart>().prompt(prompt);
        self
    }

    fn extend(self, extension: impl Extension<S>) -> Self {
        let builder = self.extension(extension.id().to_owned(), extension.settings());
        builder.without_replacing(|builder| extension.install(builder))
    }

    fn dynamic(mut self) -> Self {
        self.part::<CatalogPart>().dynamic = true;
        self
    }

    fn visible(mut self, visible: impl Fn(&Context, Offered<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.part::<CatalogPart>().scopes.own().visible = Some(Box::new(visible));
        self
    }

    fn intercept(mut self, interceptor: impl Interceptor) -> Self {
        self.part::<CatalogPart>().scopes.own().interceptors.push(Arc::new(interceptor));
        self
    }

    fn page_size(mut self, size: usize) -> Self {
        self.part::<CatalogPart>().page_size = Some(size);
        self
    }
}
