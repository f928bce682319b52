//! Resources: a URI, or a template for many, and where their contents come from.

mod contents;
mod error;
mod files;

use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_core::server::{Context, Outcome, StateSlot, States};
use duplexer_types::annotations::Annotations;
use duplexer_types::icon::Icon;
use duplexer_types::json::{Json, Members};
use serde::de::DeserializeOwned;

use crate::completion::{Completer, Completing, CompletionOutput, Completions, bound, completer};
use crate::function::{Function, NoArguments};
use crate::schema::declared_order;
use crate::uri_template::{UriTemplate, Values};
use crate::words;

pub use contents::{About, AsJson, ResourceOutput};
pub use error::ResourceError;
pub(crate) use error::unknown;
pub(crate) use files::{list_directory, read_below};

/// A resource, or a template for many, that is ready to be registered with a server whose state is `S`.
///
/// ```
/// # use duplexer_author::{Resource, Server, ServerExt};
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
pub struct Resource<S> {
    pub(crate) draft: Draft,
    pub(crate) read: Arc<dyn ReadResource<S>>,
    pub(crate) completions: Completions<S>,
}

/// A resource that still lacks its function. `K` says whether it is one or a template for many.
#[must_use = "a resource is complete once it has its function"]
pub struct ResourceBuilder<K> {
    draft: Draft,
    kind: PhantomData<K>,
}

/// One resource.
#[derive(Debug)]
pub struct Single;
/// A template for many.
#[derive(Debug)]
pub struct Template;

/// Whatever has been said about a resource so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) uri: String,
    pub(crate) template: Option<UriTemplate>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) icons: Option<Vec<Icon>>,
    pub(crate) annotations: Option<Annotations>,
    pub(crate) meta: Option<Members>,
    /// Variables that may hold any text.
    pub(crate) unguarded: Vec<String>,
    pub(crate) fault: Option<String>,
}

impl Draft {
    fn as_about(&self) -> About<'_> {
        About { mime_type: self.mime_type.as_deref(), meta: self.meta.as_ref() }
    }
}

/// A read as the catalog sees it.
pub(crate) trait ReadResource<S>: Send + Sync {
    fn read(
        &self,
        cx: Context<S>,
        about: &Arc<Draft>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>>;
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
        builder.draft.mime_type = files::mime_type(&path).map(Into::into);
        builder.handler(move || {
            let path = Arc::clone(&path);
            async move { files::read_file(&path).await }
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

macro_rules! settings {
    ($($owner:tt)*) => {
        $($owner)* {
            /// Its name, for programs. Without one it is the URI.
            #[must_use]
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.draft.name = Some(name.into());
                self
            }

            /// Its name, for people.
            #[must_use]
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.draft.title = Some(title.into());
                self
            }

            /// What it is.
            #[must_use]
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.draft.description = Some(description.into());
                self
            }

            /// What kind of contents it has.
            #[must_use]
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.draft.mime_type = Some(mime_type.into());
                self
            }

            /// Pictures.
            #[must_use]
            pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
                self.draft.icons = Some(icons.into());
                self
            }

            /// Hints.
            #[must_use]
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.draft.annotations = Some(annotations);
                self
            }

            /// One member of `_meta`, of the resource and of its contents.
            #[must_use]
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
                self.draft.meta.get_or_insert_with(Members::new).insert(key, value.into());
                self
            }
        }
    };
}

settings!(impl<K> ResourceBuilder<K>);
settings!(impl<S> Resource<S>);

impl<K> ResourceBuilder<K> {
    fn start(uri: String) -> Self {
        Self { draft: Draft { uri, ..Draft::default() }, kind: PhantomData }
    }

    fn finish<S>(self, read: Arc<dyn ReadResource<S>>) -> Resource<S> {
        Resource { draft: self.draft, read, completions: Completions::default() }
    }
}

impl ResourceBuilder<Single> {
    /// Its size in bytes.
    pub fn size(mut self, size: u64) -> Self {
        self.draft.size = Some(size);
        self
    }

    /// Where its contents come from: an async function, with a [`Context`] if it wants one.
    pub fn handler<S, H, Shape>(self, handler: H) -> Resource<S>
    where
        H: Function<S, NoArguments, Shape>,
        H::Output: ResourceOutput,
        S: Send + Sync + 'static,
        Shape: 'static,
    {
        self.finish(Arc::new(Read::<H, NoArguments, Shape> { handler, types: PhantomData }))
    }
}

impl ResourceBuilder<Template> {
    /// Lets a variable hold any text, for functions that do not take it as a path.
    pub fn unguarded(mut self, variable: impl Into<String>) -> Self {
        self.draft.unguarded.push(variable.into());
        self
    }

    /// Where the contents come from: an async function of the variables, with a [`Context`] before them if it wants one.
    pub fn handler<S, V, H, Shape>(mut self, handler: H) -> Resource<S>
    where
        V: DeserializeOwned + Send + 'static,
        H: Function<S, V, Shape>,
        H::Output: ResourceOutput,
        S: Send + Sync + 'static,
        Shape: 'static,
    {
        self.check_variables(declared_order::<V>());
        self.finish(Arc::new(Read::<H, V, Shape> { handler, types: PhantomData }))
    }

    /// Every variable has a member, and every member a variable.
    fn check_variables(&mut self, members: &[&str]) {
        let Some(template) = &self.draft.template else { return };
        if members.is_empty() {
            return;
        }
        let stray = members.iter().find(|member| !template.names().any(|name| name == **member));
        let unused = template.names().find(|name| !members.contains(name));
        let fault = match (stray, unused) {
            (Some(member), _) => {
                format!("its function wants '{member}', which is no variable of the template")
            }
            (_, Some(name)) => format!("its function does not take the variable '{name}'"),
            _ => return,
        };
        self.draft.fault.get_or_insert(fault);
    }
}

/// An async function of the variables.
struct Read<H, V, Shape> {
    handler: H,
    types: PhantomData<fn() -> (V, Shape)>,
}

impl<S, V, H, Shape> ReadResource<S> for Read<H, V, Shape>
where
    V: DeserializeOwned + Send + 'static,
    H: Function<S, V, Shape>,
    H::Output: ResourceOutput,
    S: Send + Sync + 'static,
    Shape: 'static,
{
    fn read(
        &self,
        cx: Context<S>,
        about: &Arc<Draft>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        let (about, uri, version) = (Arc::clone(about), uri.to_owned(), cx.protocol_version());
        let variables = match words::read(values) {
            Ok(variables) => variables,
            Err(fault) => {
                tracing::debug!(%uri, %fault, "a variable of a URI does not fit");
                return Box::pin(std::future::ready(Err(unknown(&uri, version))));
            }
        };
        let reading = self.handler.call(cx, variables);
        Box::pin(async move {
            let read = reading.await.into_contents(&uri, about.as_about());
            read.map_err(|error| error.into_mcp(&uri, version))
        })
    }
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// Suggests values for a variable of a template: an async function of a [`Completing`].
    #[must_use]
    pub fn complete<H, Shape>(mut self, variable: impl Into<String>, suggest: H) -> Self
    where
        H: Function<S, Completing, Shape>,
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

impl<K> fmt::Debug for ResourceBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceBuilder").field("uri", &self.draft.uri).finish_non_exhaustive()
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

/// A resource and where its state is.
struct Bound<S> {
    read: Arc<dyn ReadResource<S>>,
    slot: StateSlot<S>,
}

impl<S: Send + Sync + 'static> ReadResource<States> for Bound<S> {
    fn read(
        &self,
        cx: Context,
        about: &Arc<Draft>,
        uri: &str,
        values: &Values,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        match self.slot.context(cx) {
            Ok(cx) => self.read.read(cx, about, uri, values),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}

/// A resource without the type of its state.
pub(crate) struct Erased {
    pub(crate) draft: Draft,
    pub(crate) read: Arc<dyn ReadResource<States>>,
    pub(crate) completions: Vec<(String, Completer)>,
}

impl<S: Send + Sync + 'static> Resource<S> {
    pub(crate) fn bind(self, slot: StateSlot<S>) -> Erased {
        let completions = bound(self.completions, slot);
        Erased { draft: self.draft, read: Arc::new(Bound { read: self.read, slot }), completions }
    }
}
