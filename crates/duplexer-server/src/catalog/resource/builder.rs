//! A resource on its way: what is said about it, then where its contents come from.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use duplexer_types::annotations::Annotations;
use duplexer_types::icon::Icon;
use duplexer_types::json::{Json, JsonObject};
use serde::de::DeserializeOwned;

use super::Resource;
use super::contents::{ResourceMeta, ResourceOutput};
use super::read::{Read, ReadResource};
use crate::catalog::completion::Completions;
use crate::catalog::function::{Function, NoArguments};
use crate::catalog::uri_template::UriTemplate;
use crate::schema::declared_order;

/// A resource that still lacks its function. `K` says whether it is one or a template for many.
#[must_use = "a resource is complete once it has its function"]
pub struct ResourceBuilder<K> {
    pub(super) draft: ResourceSpec,
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
pub(crate) struct ResourceSpec {
    pub(crate) uri: String,
    pub(crate) template: Option<UriTemplate>,
    pub(crate) name: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) mime_type: Option<String>,
    pub(crate) size: Option<u64>,
    pub(crate) icons: Option<Vec<Icon>>,
    pub(crate) annotations: Option<Annotations>,
    pub(crate) meta: Option<JsonObject>,
    /// Variables that may hold any text.
    pub(crate) allow_any_path: Vec<String>,
    pub(crate) fault: Option<String>,
}

impl ResourceSpec {
    pub(super) fn as_about(&self) -> ResourceMeta<'_> {
        ResourceMeta { mime_type: self.mime_type.as_deref(), meta: self.meta.as_ref() }
    }
}

macro_rules! settings {
    ($($owner:tt)*) => {
        $($owner)* {
            /// Its name, for programs. Without one it is the URI.
            pub fn name(mut self, name: impl Into<String>) -> Self {
                self.draft.name = Some(name.into());
                self
            }

            /// Its name, for people.
            pub fn title(mut self, title: impl Into<String>) -> Self {
                self.draft.title = Some(title.into());
                self
            }

            /// What it is.
            pub fn description(mut self, description: impl Into<String>) -> Self {
                self.draft.description = Some(description.into());
                self
            }

            /// What kind of contents it has.
            pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
                self.draft.mime_type = Some(mime_type.into());
                self
            }

            /// Pictures.
            pub fn icons(mut self, icons: impl Into<Vec<Icon>>) -> Self {
                self.draft.icons = Some(icons.into());
                self
            }

            /// Hints.
            pub fn annotations(mut self, annotations: Annotations) -> Self {
                self.draft.annotations = Some(annotations);
                self
            }

            /// One member of `_meta`, of the resource and of its contents.
            pub fn meta(mut self, key: impl Into<String>, value: impl Into<Json>) -> Self {
                self.draft.meta.get_or_insert_with(JsonObject::new).insert(key, value.into());
                self
            }
        }
    };
}

settings!(impl<K> ResourceBuilder<K>);
settings!(impl<S> Resource<S>);

impl<K> ResourceBuilder<K> {
    pub(super) fn start(uri: String) -> Self {
        Self { draft: ResourceSpec { uri, ..ResourceSpec::default() }, kind: PhantomData }
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

    /// Where its contents come from: an async function, with a [`Context`](crate::Context) if it wants one.
    pub fn handler<S, H, Shape>(self, handler: H) -> Resource<S>
    where
        H: Function<S, NoArguments, Shape>,
        H::Output: ResourceOutput,
        S: Send + Sync + 'static,
        Shape: 'static,
    {
        self.finish(Arc::new(Read::<H, NoArguments, Shape>::new(handler)))
    }
}

impl ResourceBuilder<Template> {
    /// Lets a variable hold any text, for functions that do not take it as a path.
    pub fn allow_any_path(mut self, variable: impl Into<String>) -> Self {
        self.draft.allow_any_path.push(variable.into());
        self
    }

    /// Where the contents come from: an async function of the variables, with a [`Context`](crate::Context) before them if it wants one.
    pub fn handler<S, V, H, Shape>(mut self, handler: H) -> Resource<S>
    where
        V: DeserializeOwned + Send + 'static,
        H: Function<S, V, Shape>,
        H::Output: ResourceOutput,
        S: Send + Sync + 'static,
        Shape: 'static,
    {
        self.check_variables(declared_order::<V>());
        self.finish(Arc::new(Read::<H, V, Shape>::new(handler)))
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

impl<K> fmt::Debug for ResourceBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceBuilder").field("uri", &self.draft.uri).finish_non_exhaustive()
    }
}
