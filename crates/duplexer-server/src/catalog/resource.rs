//! Resources: a URI, or a template for many, and where their contents come from.

mod builder;
mod contents;
pub(crate) mod entry;
mod error;
mod files;
mod read;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::kernel::context::States;
use crate::registry::StateSlot;

use crate::catalog::completion::{
    Completer, CompletionOutput, CompletionRequest, Completions, bound, completer,
};
use crate::catalog::function::Function;
use crate::catalog::uri_template::UriTemplate;

pub(crate) use builder::ResourceSpec;
pub use builder::{ResourceBuilder, Single, Template};
pub use contents::{AsJson, ResourceMeta, ResourceOutput};
pub use error::ResourceError;
pub(crate) use error::unknown;
pub(crate) use files::{list_directory, mime_type, read_below, read_file};
pub(crate) use read::ReadResource;

/// A resource, or a template for many, that is ready to be registered with a server whose state is `S`.
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::resource::Resource;
/// # use serde::Deserialize;
/// #[derive(Deserialize)]
/// struct Row {
///     table: String,
///     id: u64,
/// }
///
/// let server = Server::builder("files")
///     .resource(Resource::text("config://app", "verbose = true"))
///     .resource(
///         Resource::template("db://{table}/{id}")
///             .name("row")
///             .handler(|Row { table, id }| async move { format!("{table} {id}") }),
///     )
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a resource is offered once it is registered"]
pub struct Resource<S> {
    pub(crate) draft: ResourceSpec,
    pub(crate) read: Arc<dyn ReadResource<S>>,
    pub(crate) completions: Completions<S>,
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// A text that never changes.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        let size = text.len() as u64;
        let builder = ResourceBuilder::<Single>::start(uri.into()).size(size);
        builder.handler(move || std::future::ready(String::from(&*text)))
    }

    /// Bytes that never change.
    pub fn bytes(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        let size = bytes.len() as u64;
        let builder = ResourceBuilder::<Single>::start(uri.into()).size(size);
        builder.handler(move || std::future::ready(bytes.to_vec()))
    }

    /// A file, read whenever it is asked for. Its media type follows from its name.
    pub fn file(uri: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path: Arc<PathBuf> = Arc::new(path.into());
        let mut builder = ResourceBuilder::<Single>::start(uri.into());
        builder.draft.mime_type = mime_type(&path).map(Into::into);
        builder.handler(move || {
            let path = Arc::clone(&path);
            async move { read_file(&path).await }
        })
    }
}

impl Resource<()> {
    /// Begins a resource with one URI.
    #[expect(clippy::new_ret_no_self, reason = "a resource is complete once it has its function")]
    pub fn new(uri: impl Into<String>) -> ResourceBuilder<Single> {
        ResourceBuilder::start(uri.into())
    }

    /// Begins a template (RFC 6570) for many resources. Its variables are the members of the function's argument.
    ///
    /// A value that would leave a directory (`..`, an absolute path, NUL) is refused before the function runs.
    pub fn template(uri_template: impl Into<String>) -> ResourceBuilder<Template> {
        let mut builder = ResourceBuilder::<Template>::start(uri_template.into());
        match UriTemplate::parse(&builder.draft.uri) {
            Ok(template) => builder.draft.template = Some(template),
            Err(error) => builder.draft.fault = Some(error.to_string()),
        }
        builder
    }
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// Suggests values for a variable of a template: an async function of a [`CompletionRequest`].
    pub fn complete<H, Shape>(mut self, variable: impl Into<String>, suggest: H) -> Self
    where
        H: Function<S, CompletionRequest, Shape>,
        H::Output: CompletionOutput,
        Shape: 'static,
    {
        let variable = variable.into();
        let known = self
            .draft
            .template
            .as_ref()
            .is_some_and(|template| template.names().any(|name| name == variable));
        if !known {
            self.draft.fault.get_or_insert(format!("'{variable}' is completed but is no variable of it"));
        }
        self.completions.push((variable, completer(suggest)));
        self
    }
}

impl<S> fmt::Debug for Resource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.draft.uri).finish_non_exhaustive()
    }
}

/// What can be registered as a resource: a [`Resource`], or a function marked with `#[resource(..)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource for a server whose state is `{S}`",
    label = "not a resource",
    note = "a resource is a function with `#[resource(\"uri\")]`, or made with `Resource::new(\"uri\")` or `Resource::template(\"uri/{{variable}}\")`"
)]
pub trait IntoResource<S> {
    /// The resource.
    fn into_resource(self) -> Resource<S>;
}

impl<S> IntoResource<S> for Resource<S> {
    fn into_resource(self) -> Self {
        self
    }
}

/// A resource without the type of its state.
pub(crate) struct Erased {
    pub(crate) draft: ResourceSpec,
    pub(crate) read: Arc<dyn ReadResource<States>>,
    pub(crate) completions: Vec<(String, Completer)>,
}

impl<S: Send + Sync + 'static> Resource<S> {
    pub(crate) fn bind(self, slot: StateSlot<S>) -> Erased {
        let completions = bound(self.completions, slot);
        Erased { draft: self.draft, read: Arc::new(read::Bound { read: self.read, slot }), completions }
    }
}
