//! `resources/list`, `resources/templates/list` and `resources/read`.

use std::borrow::Cow;
use std::sync::Arc;

use crate::kernel::context::{Context, States};
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::McpError;
use duplexer_types::methods::Method;
use duplexer_types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource, ResourceTemplate,
};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{CacheScope, result_type};
use serde::Deserialize;

use crate::catalog::completion::Completer;
use crate::catalog::path;
use crate::catalog::resource::{Erased, ReadResource, ResourceSpec, unknown};
use crate::catalog::uri_template::{UriTemplate, Values};
use crate::catalog::{CatalogError, CatalogItem, Inner, Item, Listed};

/// A resource with one URI.
pub(crate) struct ResourceEntry {
    about: Arc<ResourceSpec>,
    scope: usize,
    read: Arc<dyn ReadResource<States>>,
}

/// A template for many.
pub(crate) struct TemplateEntry {
    about: Arc<ResourceSpec>,
    scope: usize,
    template: UriTemplate,
    read: Arc<dyn ReadResource<States>>,
    pub(crate) completions: Vec<(String, Completer)>,
}

impl ResourceEntry {
    pub(crate) fn mime_type(&self) -> Option<&str> {
        self.about.mime_type.as_deref()
    }
}

/// Either of them, if it may be offered.
pub(crate) enum AnyEntry {
    Single(ResourceEntry),
    Template(TemplateEntry),
}

impl AnyEntry {
    pub(crate) fn new(resource: Erased) -> Result<Self, CatalogError> {
        let Erased { mut draft, read, completions } = resource;
        let fail =
            |reason: &str| CatalogError::Resource { uri: draft.uri.clone(), reason: reason.to_owned() };
        if let Some(fault) = &draft.fault {
            return Err(fail(fault));
        }
        if !has_scheme(&draft.uri) {
            return Err(fail("a URI begins with a scheme, such as 'config:'"));
        }
        let template = draft.template.take();
        let about = Arc::new(draft);
        Ok(match template {
            None => Self::Single(ResourceEntry { about, scope: 0, read }),
            Some(template) => Self::Template(TemplateEntry { about, scope: 0, template, read, completions }),
        })
    }
}

/// A letter, then letters, digits, `+`, `-` and `.` up to a colon.
fn has_scheme(uri: &str) -> bool {
    let scheme = uri.split(':').next().unwrap_or_default();
    let inner = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    scheme.len() < uri.len()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(inner)
}

impl Item for ResourceEntry {
    const KIND: &'static str = "resource";

    fn key(&self) -> &str {
        &self.about.uri
    }

    fn scope(&self) -> usize {
        self.scope
    }

    fn offered(&self, _: usize, decide: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        decide(CatalogItem::Resource(&self.about.uri))
    }

    /// A URI says for itself whose it is.
    fn merge(&mut self, scope_offset: usize, _: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        Ok(())
    }
}

impl Item for TemplateEntry {
    const KIND: &'static str = "resource template";

    fn key(&self) -> &str {
        self.template.as_str()
    }

    fn scope(&self) -> usize {
        self.scope
    }

    fn offered(&self, _: usize, decide: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        decide(CatalogItem::Template(self.template.as_str()))
    }

    /// As with resources.
    fn merge(&mut self, scope_offset: usize, _: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        Ok(())
    }
}

impl Listed for ResourceEntry {
    type Definition = Resource;
    type Page = ListResourcesResult;
    const METHOD: Method = Method::ResourcesList;

    fn definition(&self, _: ProtocolVersion) -> Resource {
        let about = &*self.about;
        let mut resource = Resource::new(&*about.uri, about.name.as_ref().unwrap_or(&about.uri).as_str());
        resource.title.clone_from(&about.title);
        resource.description.clone_from(&about.description);
        resource.mime_type.clone_from(&about.mime_type);
        resource.size = about.size;
        resource.icons.clone_from(&about.icons);
        resource.annotations.clone_from(&about.annotations);
        resource.meta.clone_from(&about.meta);
        resource
    }

    fn page(resources: Vec<Resource>, next: Option<String>) -> ListResourcesResult {
        let mut page = ListResourcesResult::new(resources);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

impl Listed for TemplateEntry {
    type Definition = ResourceTemplate;
    type Page = ListResourceTemplatesResult;
    const METHOD: Method = Method::ResourcesTemplatesList;

    fn definition(&self, _: ProtocolVersion) -> ResourceTemplate {
        let about = &*self.about;
        let mut template =
            ResourceTemplate::new(&*about.uri, about.name.as_ref().unwrap_or(&about.uri).as_str());
        template.title.clone_from(&about.title);
        template.description.clone_from(&about.description);
        template.mime_type.clone_from(&about.mime_type);
        template.icons.clone_from(&about.icons);
        template.annotations.clone_from(&about.annotations);
        template.meta.clone_from(&about.meta);
        template
    }

    fn page(templates: Vec<ResourceTemplate>, next: Option<String>) -> ListResourceTemplatesResult {
        let mut page = ListResourceTemplatesResult::new(templates);
        page.next_cursor = next;
        page
    }

    fn private(page: Self::Page) -> Self::Page {
        page.cache_scope(CacheScope::Private)
    }
}

impl TemplateEntry {
    /// Whether no value would leave the place it starts from.
    fn is_safe(&self, values: &Values) -> bool {
        values
            .iter()
            .filter(|(name, _)| !self.about.allow_any_path.contains(name))
            .all(|(_, value)| value.parts().iter().all(|part| path::escape(part).is_none()))
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

/// Answers `resources/read`: an exact URI first, then templates in the order of their registration.
pub(crate) fn read(catalog: &Inner, cx: &Context) -> BoxFuture<'static, Result<Outcome, McpError>> {
    match start(catalog, cx) {
        // What one caller may read is not for others to keep.
        Ok(reading) if catalog.scopes.hide() => Box::pin(async move { reading.await.map(private) }),
        Ok(reading) => reading,
        Err(error) => Box::pin(std::future::ready(Err(error))),
    }
}

fn private(mut outcome: Outcome) -> Outcome {
    if let Some(result) = outcome.downcast_mut::<ReadResourceResult>() {
        result.cache_scope = Some(CacheScope::Private);
    }
    outcome
}

fn start(catalog: &Inner, cx: &Context) -> Result<BoxFuture<'static, Result<Outcome, McpError>>, McpError> {
    let Params { uri } = cx.message().decode().map_err(|error| McpError::InvalidParams(error.into()))?;
    let snapshot = catalog.snapshot.load();
    if let Some(resource) = snapshot.resources.get(&uri).filter(|resource| catalog.shows(cx, &***resource)) {
        let reading = resource.read.read(cx.clone(), &resource.about, &uri, &Vec::new());
        return Ok(Box::pin(async move { final_only(reading.await?) }));
    }
    let version = cx.protocol_version();
    for template in snapshot.templates.items().filter(|template| catalog.shows(cx, &***template)) {
        let Some(values) = template.template.matches(&uri) else { continue };
        // The first that matches decides: a value it refuses is not offered to the next.
        if !template.is_safe(&values) {
            tracing::warn!(?uri, "a URI that leads out of its place is refused");
            break;
        }
        return Ok(template.read.read(cx.clone(), &template.about, &uri, &values));
    }
    Err(unknown(&uri, version))
}

/// A resource with one URI is the same for everybody: it asks for nothing.
fn final_only(outcome: Outcome) -> Result<Outcome, McpError> {
    if outcome.result_type() == result_type::INPUT_REQUIRED {
        return Err(McpError::internal("a resource without variables cannot ask for input"));
    }
    Ok(outcome)
}
