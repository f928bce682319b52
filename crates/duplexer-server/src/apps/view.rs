//! A view: a page, and what it asks of the client that shows it.

use duplexer_types::json::JsonObject;
use serde::Serialize;

use crate::catalog::resource::{IntoResource, Resource};
use crate::catalog::tool::ui::{MIME_TYPE, tell};

/// A page of HTML under a URI that begins with `ui://`, and what it asks of the client that shows it.
///
/// A page gets nothing that it has not asked for: no other origins, no devices.
#[derive(Clone, Debug)]
#[must_use = "a view is offered once `Apps` has it"]
pub struct View {
    uri: String,
    html: String,
    title: Option<String>,
    description: Option<String>,
    ui: ViewUi,
}

/// Something of the user's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// Where the user is.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

/// What a view says in `_meta`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct ViewUi {
    #[serde(skip_serializing_if = "Policy::is_empty")]
    csp: Policy,
    #[serde(skip_serializing_if = "JsonObject::is_empty")]
    permissions: JsonObject<Granted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefers_border: Option<bool>,
}

/// A permission is asked for by an empty object.
#[derive(Clone, Copy, Debug, Serialize)]
struct Granted {}

/// The origins a page may use.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the words of the extension")]
struct Policy {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connect_domains: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_domains: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    frame_domains: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    base_uri_domains: Vec<String>,
}

impl Policy {
    fn is_empty(&self) -> bool {
        let all =
            [&self.connect_domains, &self.resource_domains, &self.frame_domains, &self.base_uri_domains];
        all.into_iter().all(Vec::is_empty)
    }
}

macro_rules! origins {
    ($($(#[$about:meta])* $setter:ident;)*) => {$(
        $(#[$about])*
        pub fn $setter<T: Into<String>>(mut self, origins: impl IntoIterator<Item = T>) -> Self {
            self.ui.csp.$setter.extend(origins.into_iter().map(Into::into));
            self
        }
    )*};
}

impl View {
    /// A page under its URI.
    pub fn new(uri: impl Into<String>, html: impl Into<String>) -> Self {
        let ui = ViewUi::default();
        Self { uri: uri.into(), html: html.into(), title: None, description: None, ui }
    }

    /// Its name, for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it shows.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    origins! {
        /// Origins it may connect to (`connect-src`).
        connect_domains;
        /// Origins it may load scripts, styles, pictures and fonts from.
        resource_domains;
        /// Origins it may show in frames (`frame-src`).
        frame_domains;
        /// Origins its base may lie at (`base-uri`).
        base_uri_domains;
    }

    /// Asks for something of the user's device.
    pub fn permission(mut self, permission: Permission) -> Self {
        let name = match permission {
            Permission::Camera => "camera",
            Permission::Microphone => "microphone",
            Permission::Geolocation => "geolocation",
            Permission::ClipboardWrite => "clipboardWrite",
        };
        self.ui.permissions.insert(name, Granted {});
        self
    }

    /// An origin of its own, in the form the client has for that.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.ui.domain = Some(domain.into());
        self
    }

    /// Would rather have a border around it.
    pub fn bordered(mut self) -> Self {
        self.ui.prefers_border = Some(true);
        self
    }

    /// Would rather have no border around it.
    pub fn borderless(mut self) -> Self {
        self.ui.prefers_border = Some(false);
        self
    }

    fn says_something(&self) -> bool {
        let ui = &self.ui;
        !ui.csp.is_empty() || !ui.permissions.is_empty() || ui.domain.is_some() || ui.prefers_border.is_some()
    }
}

impl<S: Send + Sync + 'static> IntoResource<S> for View {
    fn into_resource(self) -> Resource<S> {
        let says_something = self.says_something();
        let mut page = Resource::text(self.uri, self.html).mime_type(MIME_TYPE);
        (page.draft.title, page.draft.description) = (self.title, self.description);
        if !page.draft.uri.starts_with("ui://") {
            page.draft.fault = Some("a view's URI begins with 'ui://'".to_owned());
        }
        if says_something && let Err(reason) = tell(&mut page.draft.meta, &self.ui) {
            page.draft.fault = Some(reason);
        }
        page
    }
}
