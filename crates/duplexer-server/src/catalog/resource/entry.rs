//! `resources/list`, `resources/templates/list` and `resources/read`.

use std::borrow::Cow;
use std::sync::Arc;

use duplexer_core::error::McpError;
use duplexer_types::methods::Method;
use duplexer_types::resource as wire;
use duplexer_types::resource::{
    ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, ResourceTemplate,
};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{CacheScope, result_type};
use serde::Deserialize;

use super::read::ReadInput;
use super::{ReadResource, Resource, ResourceSpec, unknown};
use crate::catalog::completion::BoundCompletions;
use crate::catalog::erased::{BoundHandler, HandlerFuture, bind, failed};
use crate::catalog::path;
use crate::catalog::uri_template::{UriTemplate, Values};
use crate::catalog::{CatalogError, CatalogItem, Inner, Item, Listed};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::registry::StateSlot;

/// A registered resource with one URI.
pub(crate) struct ResourceEntry {
    spec: Arc<ResourceSpec>,
    scope: usize,
    read: BoundHandler<ReadResource>,
}

/// A registered template.
pub(crate) struct TemplateEntry {
    spec: Arc<ResourceSpec>,
    scope: usize,
    template: UriTemplate,
    read: BoundHandler<ReadResource>,
    pub(crate) completions: BoundCompletions,
}

impl ResourceEntry {
    pub(crate) fn mime_type(&self) -> Option<&str> {
        self.spec.mime_type.as_deref()
    }
}

pub(crate) enum AnyEntry {
    Single(ResourceEntry),
    Template(TemplateEntry),
}

impl<S: Send + Sync + 'static> Resource<S> {
    /// Checks the resource and binds it to its state.
    pub(crate) fn into_entry(self, slot: StateSlot<S>) -> Result<AnyEntry, CatalogError> {
        let Self { mut spec, read, completions } = self;
        let fail = |reason: &str| CatalogError::Resource { uri: spec.uri.clone(), reason: reason.to_owned() };
        if let Some(fault) = &spec.fault {
            return Err(fail(fault));
        }
        if !has_scheme(&spec.uri) {
            return Err(fail("a URI begins with a scheme, such as 'config:'"));
        }
        let template = spec.template.take();
        let (spec, read) = (Arc::new(spec), bind(read, slot));
        Ok(match template {
            None => AnyEntry::Single(ResourceEntry { spec, scope: 0, read }),
            Some(template) => {
                let completions = completions.bind(slot);
                AnyEntry::Template(TemplateEntry { spec, scope: 0, template, read, completions })
            }
        })
    }
}

/// Returns whether a URI begins with a letter, then letters, digits, `+`, `-` and `.`, up to a colon.
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
        &self.spec.uri
    }

    fn scope(&self) -> usize {
        self.scope
    }

    fn is_visible(&self, _: usize, visible: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        visible(CatalogItem::Resource(&self.spec.uri))
    }

    /// A prefix does not apply: URIs identify their server themselves.
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

    fn is_visible(&self, _: usize, visible: &dyn Fn(CatalogItem<'_>) -> bool) -> bool {
        visible(CatalogItem::Template(self.template.as_str()))
    }

    /// A prefix does not apply, as with resources.
    fn merge(&mut self, scope_offset: usize, _: &str) -> Result<(), CatalogError> {
        self.scope += scope_offset;
        Ok(())
    }
}

impl Listed for ResourceEntry {
    type Definition = wire::ResourceDefinition;
    type Page = ListResourcesResult;
    const METHOD: Method = Method::ResourcesList;

    fn definition(&self, _: ProtocolVersion) -> wire::ResourceDefinition {
        let spec = &*self.spec;
        let mut resource =
            wire::ResourceDefinition::new(&*spec.uri, spec.name.as_ref().unwrap_or(&spec.uri).as_str());
        resource.title.clone_from(&spec.title);
        resource.description.clone_from(&spec.description);
        resource.mime_type.clone_from(&spec.mime_type);
        resource.size = spec.size;
        resource.icons.clone_from(&spec.icons);
        resource.annotations.clone_from(&spec.annotations);
        resource.meta.clone_from(&spec.meta);
        resource
    }

    fn is_listed(&self) -> bool {
        !self.spec.unlisted
    }

    fn page(resources: Vec<wire::ResourceDefinition>, next: Option<String>) -> ListResourcesResult {
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
        let spec = &*self.spec;
        let mut template =
            ResourceTemplate::new(&*spec.uri, spec.name.as_ref().unwrap_or(&spec.uri).as_str());
        template.title.clone_from(&spec.title);
        template.description.clone_from(&spec.description);
        template.mime_type.clone_from(&spec.mime_type);
        template.icons.clone_from(&spec.icons);
        template.annotations.clone_from(&spec.annotations);
        template.meta.clone_from(&spec.meta);
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
    /// Returns whether no value would leave its base directory.
    fn is_safe(&self, values: &Values) -> bool {
        values
            .iter()
            .filter(|(name, _)| !self.spec.any_path.contains(name))
            .all(|(_, value)| value.parts().iter().all(|part| path::escape(part).is_none()))
    }
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    uri: Cow<'a, str>,
}

/// Handles `resources/read`: an exact URI first, then templates in the order of their registration.
pub(crate) fn read(catalog: &Inner, cx: Context) -> HandlerFuture {
    match start(catalog, cx) {
        // Contents that depend on the caller must not be cached for others.
        Ok(reading) if catalog.scopes.hide() => Box::pin(async move { reading.await.map(private) }),
        Ok(reading) => reading,
        Err(error) => failed(error),
    }
}

fn private(mut outcome: Outcome) -> Outcome {
    if let Some(result) = outcome.downcast_mut::<ReadResourceResult>() {
        result.cache_scope = Some(CacheScope::Private);
    }
    outcome
}

fn start(catalog: &Inner, cx: Context) -> Result<HandlerFuture, McpError> {
    // The URI borrows from the message, while the context moves into the handler.
    let message = Arc::clone(cx.shared_message());
    let Params { uri } = message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
    let snapshot = catalog.snapshot.load();
    let visible = snapshot.resources.get(&uri).filter(|resource| catalog.is_visible(&cx, &***resource));
    if let Some(resource) = visible {
        let input = ReadInput { spec: &resource.spec, uri: &uri, variables: &Vec::new() };
        let reading = resource.read.run(cx, input);
        return Ok(Box::pin(async move { final_only(reading.await?) }));
    }
    let version = cx.protocol_version();
    for template in snapshot.templates.items().filter(|template| catalog.is_visible(&cx, &***template)) {
        let Some(variables) = template.template.matches(&uri) else { continue };
        // The first template that matches decides: if it rejects a value, later ones are not tried.
        if !template.is_safe(&variables) {
            tracing::warn!(?uri, "a URI that leads out of its place is refused");
            break;
        }
        let input = ReadInput { spec: &template.spec, uri: &uri, variables: &variables };
        return Ok(template.read.run(cx, input));
    }
    Err(unknown(&uri, version))
}

/// Rejects requests for input: a resource with one URI is the same for every caller.
fn final_only(outcome: Outcome) -> Result<Outcome, McpError> {
    if outcome.result_type() == result_type::INPUT_REQUIRED {
        return Err(McpError::internal("a resource without variables cannot ask for input"));
    }
    Ok(outcome)
}
