//! A resource before it is registered: its definition and its settings.

use duplexer_types::annotations::Annotations;
use duplexer_types::icon::Icon;
use duplexer_types::json::JsonObject;

use super::Resource;
use super::contents::ResourceMeta;
use crate::catalog::settings::shared_settings;
use crate::catalog::uri_template::UriTemplate;

/// The definition of a resource or template, its settings, and the first fault found in them.
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
    /// Variables that can hold any text.
    pub(crate) any_path: Vec<String>,
    pub(crate) fault: Option<String>,
    /// Left out of lists.
    pub(crate) unlisted: bool,
}

impl ResourceSpec {
    pub(super) fn new(uri: String) -> Self {
        Self { uri, ..Self::default() }
    }

    /// Parses the URI as a template whose variables are these members.
    pub(super) fn template(uri_template: String, members: &[&str]) -> Self {
        let mut spec = Self::new(uri_template);
        match UriTemplate::parse(&spec.uri) {
            Ok(template) => {
                spec.fault = mismatch(&template, members);
                spec.template = Some(template);
            }
            Err(error) => spec.fault = Some(error.to_string()),
        }
        spec
    }

    pub(crate) fn fail(&mut self, reason: String) {
        self.fault.get_or_insert(reason);
    }

    /// Returns whether the template has a variable of this name.
    pub(super) fn has_variable(&self, variable: &str) -> bool {
        self.template.as_ref().is_some_and(|template| template.names().any(|name| name == variable))
    }

    /// Returns the metadata that the contents repeat.
    pub(super) fn contents_meta(&self) -> ResourceMeta<'_> {
        ResourceMeta { mime_type: self.mime_type.as_deref(), meta: self.meta.as_ref() }
    }
}

/// Returns a fault unless every variable has a member and every member a variable. A type without declared members
/// accepts every variable.
fn mismatch(template: &UriTemplate, members: &[&str]) -> Option<String> {
    if members.is_empty() {
        return None;
    }
    let stray = members.iter().find(|member| !template.names().any(|name| name == **member));
    let unused = template.names().find(|name| !members.contains(name));
    match (stray, unused) {
        (Some(member), _) => {
            Some(format!("its function wants '{member}', which is no variable of the template"))
        }
        (_, Some(name)) => Some(format!("its function does not take the variable '{name}'")),
        _ => None,
    }
}

impl<S> Resource<S> {
    shared_settings!("resource", spec);

    /// Sets the name for programs. Default: the URI.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.spec.name = Some(name.into());
        self
    }

    /// Sets the media type of the contents.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.spec.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the hints for clients.
    pub fn annotations(mut self, annotations: Annotations) -> Self {
        self.spec.annotations = Some(annotations);
        self
    }

    /// Sets the size in bytes. A template has no size; setting one fails the build.
    pub fn size(mut self, size: u64) -> Self {
        if self.spec.template.is_some() {
            self.spec.fail("a template has no size: each of its resources has one of its own".to_owned());
        }
        self.spec.size = Some(size);
        self
    }

    /// Exempts a variable of a template from the path check, for functions that do not use it as a path. A name that
    /// is not a variable fails the build.
    pub fn allow_any_path(mut self, variable: impl Into<String>) -> Self {
        let variable = variable.into();
        if !self.spec.has_variable(&variable) {
            self.spec.fail(format!("'{variable}' is exempt from the path check but is no variable of it"));
        }
        self.spec.any_path.push(variable);
        self
    }
}
