//! Views: an HTML page and the permissions that it requests from the client.

use duplexer_types::json::JsonObject;
use serde::Serialize;

use crate::catalog::resource::{IntoResource, Resource};
use crate::catalog::tool::ui::{MIME_TYPE, declare};

/// HTML page under a URI that begins with `ui://`, and the permissions that it requests from the client.
///
/// A page has no access that it does not request: no other origins, no devices.
///
/// ```
/// use duplexer::apps::{Apps, Permission, View};
///
/// let map = View::new("ui://map", "<canvas></canvas>")
///     .title("Map")
///     .permission(Permission::Geolocation)
///     .bordered();
/// let server = duplexer::Server::builder("maps", "1.0.0").extend(Apps::new().view(map)).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a view is offered once `Apps` has it"]
pub struct View {
    uri: String,
    html: String,
    title: Option<String>,
    description: Option<String>,
    ui: ViewUi,
}

/// Access to the user's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Permission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The user's location.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

/// The `_meta.ui` of a view.
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

/// An empty object requests a permission.
#[derive(Clone, Copy, Debug, Serialize)]
struct Granted {}

/// Origins that a page can use.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the extension")]
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
    /// Creates a view from its URI and HTML.
    pub fn new(uri: impl Into<String>, html: impl Into<String>) -> Self {
        let ui = ViewUi::default();
        Self { uri: uri.into(), html: html.into(), title: None, description: None, ui }
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    origins! {
        /// Adds origins that the page can connect to (`connect-src`).
        connect_domains;
        /// Adds origins of scripts, styles, images and fonts.
        resource_domains;
        /// Adds origins that the page can show in frames (`frame-src`).
        frame_domains;
        /// Adds origins that the page can use as its base (`base-uri`).
        base_uri_domains;
    }

    /// Requests access to the user's device.
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

    /// Requests a dedicated origin, in the client's own format.
    pub fn domain(mut self, domain: impl Into<String>) -> Self {
        self.ui.domain = Some(domain.into());
        self
    }

    /// Prefers a border around the page.
    pub fn bordered(mut self) -> Self {
        self.ui.prefers_border = Some(true);
        self
    }

    /// Prefers no border around the page.
    pub fn borderless(mut self) -> Self {
        self.ui.prefers_border = Some(false);
        self
    }

    fn has_ui(&self) -> bool {
        let ui = &self.ui;
        !ui.csp.is_empty() || !ui.permissions.is_empty() || ui.domain.is_some() || ui.prefers_border.is_some()
    }
}

impl<S: Send + Sync + 'static> IntoResource<S> for View {
    fn into_resource(self) -> Resource<S> {
        let has_ui = self.has_ui();
        let mut page = Resource::text(self.uri, self.html).mime_type(MIME_TYPE);
        (page.spec.title, page.spec.description) = (self.title, self.description);
        if !page.spec.uri.starts_with("ui://") {
            page.spec.fault = Some("a view's URI begins with 'ui://'".to_owned());
        }
        if has_ui && let Err(reason) = declare(&mut page.spec.meta, &self.ui) {
            page.spec.fault = Some(reason);
        }
        page
    }
}
