//! Resources: a URI, or a template for many URIs, and a function that returns the contents.

mod contents;
pub(crate) mod entry;
mod error;
pub(crate) mod files;
mod read;
mod spec;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use super::completion::{CompletionOutput, CompletionRequest, Completions};
use super::erased::{ErasedHandler, Forwarded, HandlerFuture, Typed};
use super::function::{Constructor, Direct, Function, Impossible, NoArguments, Unmatched};
use crate::kernel::context::Context;
use crate::schema::declared_order;

pub use contents::{AsJson, ResourceOutput};
pub use error::ResourceError;
pub(crate) use error::unknown;
pub(crate) use files::{MAX_FILE_SIZE, list_directory, mime_type, read_below, read_bytes, read_file};
pub(crate) use read::ReadResource;
pub(crate) use spec::ResourceSpec;

/// A resource, or a template for many, that can be registered with a server whose state is `S`.
///
/// (The definition alone, as `resources/list` sends it, is [`duplexer_types::resource::ResourceDefinition`].)
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
/// let row = |Row { table, id }| async move { format!("{table} {id}") };
/// let server = Server::builder("files", "0")
///     .resource(Resource::text("config://app", "verbose = true"))
///     .resource(Resource::template("db://{table}/{id}", row).name("row"))
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a resource is offered once it is registered"]
pub struct Resource<S> {
    pub(crate) spec: ResourceSpec,
    read: Arc<dyn ErasedHandler<S, ReadResource>>,
    completions: Completions<S>,
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// Creates a resource with one URI from an async function that returns its contents, optionally of a
    /// [`Context`](crate::Context).
    ///
    /// An invalid URI fails [`build`](crate::ServerBuilder::build).
    pub fn new<H, Shape>(uri: impl Into<String>, handler: H) -> Self
    where
        H: Function<S, NoArguments, Shape>,
        H::Output: ResourceOutput,
        Shape: 'static,
    {
        Self::typed(ResourceSpec::new(uri.into()), handler)
    }

    /// Creates a template (RFC 6570) for many resources from an async function of its variables, optionally with a
    /// [`Context`](crate::Context) before them. The variables are the members of the function's argument.
    ///
    /// A value that would leave a directory (`..`, an absolute path, NUL) is rejected before the function runs; see
    /// [`allow_any_path`](Self::allow_any_path). An invalid template, or one that does not fit the function, fails
    /// [`build`](crate::ServerBuilder::build).
    pub fn template<V, H, Shape>(uri_template: impl Into<String>, handler: H) -> Self
    where
        V: DeserializeOwned + Send + 'static,
        H: Function<S, V, Shape>,
        H::Output: ResourceOutput,
        Shape: 'static,
    {
        Self::typed(ResourceSpec::template(uri_template.into(), declared_order::<V>()), handler)
    }

    /// Creates a resource of constant text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        let text: Arc<str> = text.into().into();
        let size = text.len() as u64;
        Self::new(uri, move || std::future::ready(String::from(&*text))).size(size)
    }

    /// Creates a resource of constant bytes.
    pub fn bytes(uri: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let bytes: Arc<[u8]> = bytes.into().into();
        let size = bytes.len() as u64;
        Self::new(uri, move || std::future::ready(bytes.to_vec())).size(size)
    }

    /// Creates a resource from a file, which every request reads anew. The media type follows from the file's name.
    ///
    /// Only regular files are read, up to the [maximum size](crate::ServerBuilder::max_file_size).
    pub fn file(uri: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path: Arc<PathBuf> = Arc::new(path.into());
        let mime_type = mime_type(&path).map(Into::into);
        let mut resource = Self::new::<_, fn(Context<S>)>(uri, move |cx: Context<S>| {
            let path = Arc::clone(&path);
            async move { read_file(&path, cx.server().registry().max_file_size).await }
        });
        resource.spec.mime_type = mime_type;
        resource
    }

    /// Creates a resource that another server reads. For proxies.
    #[doc(hidden)]
    pub fn forwarded(
        uri: impl Into<String>,
        handler: impl Fn(Context<S>) -> HandlerFuture + Send + Sync + 'static,
    ) -> Self {
        let spec = ResourceSpec::new(uri.into());
        Self { spec, read: Arc::new(Forwarded(handler)), completions: Completions::default() }
    }

    /// Creates a template whose resources another server reads. For proxies.
    #[doc(hidden)]
    pub fn forwarded_template(
        uri_template: impl Into<String>,
        handler: impl Fn(Context<S>) -> HandlerFuture + Send + Sync + 'static,
    ) -> Self {
        let mut spec = ResourceSpec::template(uri_template.into(), &[]);
        // The other server checks its paths.
        spec.any_path =
            spec.template.iter().flat_map(|template| template.names().map(str::to_owned)).collect();
        Self { spec, read: Arc::new(Forwarded(handler)), completions: Completions::default() }
    }

    fn typed<V, H, Shape>(spec: ResourceSpec, handler: H) -> Self
    where
        V: DeserializeOwned + Send + 'static,
        H: Function<S, V, Shape>,
        H::Output: ResourceOutput,
        Shape: 'static,
    {
        Self { spec, read: Arc::new(Typed::<H, V, Shape>::new(handler)), completions: Completions::default() }
    }

    /// Suggests values for a variable of a template: an async function of a [`CompletionRequest`]. A name that is not
    /// a variable fails the build.
    pub fn complete<H, Shape>(mut self, variable: impl Into<String>, suggest: H) -> Self
    where
        H: Function<S, CompletionRequest, Shape>,
        H::Output: CompletionOutput,
        Shape: 'static,
    {
        let variable = variable.into();
        if !self.spec.has_variable(&variable) {
            self.spec.fail(format!("'{variable}' is completed but is no variable of it"));
        }
        self.completions.add(variable, suggest);
        self
    }
}

impl<S> fmt::Debug for Resource<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resource").field("uri", &self.spec.uri).finish_non_exhaustive()
    }
}

/// Values that can be registered as a resource: a [`Resource`], or a function marked with `#[resource(..)]`.
///
/// A marked function becomes a function that returns a [`Resource`]; any such function can be registered. `Via` distinguishes
/// the two and is always inferred.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a resource for a server whose state is `{S}`",
    label = "not a resource",
    note = "a resource is a function with `#[resource(\"uri\")]`, or made with `Resource::new(\"uri\", function)` or `Resource::template(\"uri/{{variable}}\", function)`"
)]
pub trait IntoResource<S, Via = Direct> {
    /// Converts into the resource.
    fn into_resource(self) -> Resource<S>;
}

impl<S> IntoResource<S> for Resource<S> {
    fn into_resource(self) -> Self {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<S, F: FnOnce() -> Resource<S>> IntoResource<S, Constructor> for F {
    fn into_resource(self) -> Resource<S> {
        self()
    }
}

#[diagnostic::do_not_recommend]
impl<S, T: Impossible> IntoResource<S, Unmatched> for T {
    fn into_resource(self) -> Resource<S> {
        self.never()
    }
}
