//! Views: an HTML page and the permissions that it requests from the client.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use duplexer_core::dispatch::BoxFuture;
use duplexer_core::error::BoxError;
use duplexer_types::app::{MIME_TYPE, OriginUse, check_origin};
use duplexer_types::json::JsonObject;
use duplexer_types::resource::{ResourceContents, TextResourceContents};
use serde::Serialize;

use super::page;
use crate::catalog::resource::{IntoResource, Resource, ResourceError, read_file};
use crate::catalog::tool::ui::declare;
use crate::kernel::context::Context;

/// HTML page under a URI that begins with `ui://`, and the permissions that it requests from the client.
///
/// A page has no access that it does not request: no other origins, no devices. A page that is not a whole HTML document,
/// and an origin that is none, fail the build.
///
/// ```
/// use duplexer::apps::{Apps, Permission, View};
///
/// let map = View::new("ui://map", "<!doctype html><html><body><canvas></canvas></body></html>")
///     .title("Map")
///     .permission(Permission::Geolocation)
///     .bordered();
/// let server = duplexer::Server::builder("maps", "1.0.0").extend(Apps::new().view(map)).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[must_use = "a view is offered once `Apps` has it"]
pub struct View<S = ()> {
    uri: String,
    source: Source<S>,
    title: Option<String>,
    description: Option<String>,
    ui: ViewUi,
    listing: Listing,
    bridge: Bridge,
}

type MakePage<S> =
    Arc<dyn Fn(Context<S>) -> BoxFuture<'static, Result<View<S>, ResourceError>> + Send + Sync>;

/// Where the page comes from.
enum Source<S> {
    Html(Arc<str>),
    File(Arc<PathBuf>),
    Made(MakePage<S>),
}

impl<S> Clone for Source<S> {
    fn clone(&self) -> Self {
        match self {
            Self::Html(html) => Self::Html(Arc::clone(html)),
            Self::File(path) => Self::File(Arc::clone(path)),
            Self::Made(make) => Self::Made(Arc::clone(make)),
        }
    }
}

/// Whether lists contain the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Listing {
    Listed,
    Unlisted,
}

/// Whether the page gets the bridge script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bridge {
    Own,
    Inline,
}

impl Bridge {
    fn apply(self, html: String) -> String {
        match self {
            Self::Own => html,
            Self::Inline => page::with_bridge(&html),
        }
    }
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

/// Origins that a page can use. Empty lists are sent too: without them, a host may choose a policy under which the page's
/// own script does not run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_field_names, reason = "the names of the extension")]
struct Policy {
    connect_domains: Vec<String>,
    resource_domains: Vec<String>,
    frame_domains: Vec<String>,
    base_uri_domains: Vec<String>,
}

impl Policy {
    /// Returns a fault if something is not an origin.
    fn fault(&self) -> Option<String> {
        let all = [
            (&self.connect_domains, OriginUse::Connections),
            (&self.resource_domains, OriginUse::Resources),
            (&self.frame_domains, OriginUse::Frames),
            (&self.base_uri_domains, OriginUse::Base),
        ];
        all.into_iter().find_map(|(origins, usage)| {
            origins.iter().find_map(|origin| {
                check_origin(origin, usage).err().map(|reason| format!("its origin '{origin}' {reason}"))
            })
        })
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

impl<S> View<S> {
    /// Creates a view from its URI and HTML.
    pub fn new(uri: impl Into<String>, html: impl Into<String>) -> Self {
        Self::from_source(uri.into(), Source::Html(html.into().into()))
    }

    /// Creates a view from a file, which every request reads anew. See [`view_file!`](crate::view_file) for a page that
    /// is part of the program.
    pub fn file(uri: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self::from_source(uri.into(), Source::File(Arc::new(path.into())))
    }

    /// Creates a view whose page is made for each request, with the permissions of that page. The function returns a
    /// [`View::new`], whose URI does not matter; those settings that lists show are the ones of this view.
    ///
    /// ```
    /// use duplexer::Context;
    /// use duplexer::apps::{Apps, View};
    ///
    /// let page = View::dynamic("ui://visitor", |cx: Context<()>| async move {
    ///     let era = cx.protocol_version();
    ///     Ok(View::new("ui://visitor", format!("<!doctype html><html><body>{era}</body></html>")))
    /// });
    /// let server = duplexer::Server::builder("visits", "1.0.0").extend(Apps::new().view(page)).build()?;
    /// # Ok::<_, duplexer::BuildError>(())
    /// ```
    pub fn dynamic<F>(uri: impl Into<String>, make: impl Fn(Context<S>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Self, ResourceError>> + Send + 'static,
    {
        Self::from_source(uri.into(), Source::Made(Arc::new(move |cx| Box::pin(make(cx)))))
    }

    fn from_source(uri: String, source: Source<S>) -> Self {
        let (ui, listing, bridge) = (ViewUi::default(), Listing::Listed, Bridge::Own);
        Self { uri, source, title: None, description: None, ui, listing, bridge }
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

    /// Leaves the page out of `resources/list`. It can be read nevertheless.
    pub fn unlisted(mut self) -> Self {
        self.listing = Listing::Unlisted;
        self
    }

    /// Puts the bridge script into the page, before its own scripts. It speaks with the host: `mcpApp.on("result", ..)`,
    /// `mcpApp.callTool(..)`, and it reports the size of the page.
    pub fn with_bridge(mut self) -> Self {
        self.bridge = Bridge::Inline;
        self
    }

    origins! {
        /// Adds origins that the page can connect to (`connect-src`).
        connect_domains;
        /// Adds origins of scripts, styles, images and fonts. `https://*.example.com` means all sub-domains.
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

    /// Returns the contents of a page that was made for one request.
    fn contents(self, uri: &str) -> Result<ResourceContents, ResourceError> {
        let internal = |reason: String| ResourceError::Internal(BoxError::from(reason));
        let Source::Html(html) = self.source else {
            return Err(internal("the page of a dynamic view is HTML".to_owned()));
        };
        page::check(&html).map_err(internal)?;
        if let Some(fault) = self.ui.csp.fault() {
            return Err(internal(fault));
        }
        let mut contents = TextResourceContents::new(uri, self.bridge.apply(html.to_string()));
        contents.mime_type = Some(MIME_TYPE.to_owned());
        declare(&mut contents.meta, &self.ui).map_err(internal)?;
        Ok(ResourceContents::Text(contents))
    }

    /// Returns what is wrong with the view, as far as it is known before it is read.
    fn fault(&self) -> Option<String> {
        if !self.uri.starts_with("ui://") {
            return Some("a view's URI begins with 'ui://'".to_owned());
        }
        let checked = match &self.source {
            Source::Html(html) => page::check(html),
            Source::File(path) => std::fs::read_to_string(&**path)
                .map_err(|error| format!("its file '{}' cannot be read: {error}", path.display()))
                .and_then(|html| page::check(&html)),
            Source::Made(_) => Ok(()),
        };
        checked.err().or_else(|| self.ui.csp.fault())
    }
}

impl<S: Send + Sync + 'static> IntoResource<S> for View<S> {
    fn into_resource(self) -> Resource<S> {
        let fault = self.fault();
        let (uri, bridge) = (self.uri, self.bridge);
        let mut page = match self.source {
            Source::Html(html) => Resource::text(uri, bridge.apply(html.to_string())),
            Source::File(path) => Resource::new::<_, fn(Context<S>)>(uri, move |cx: Context<S>| {
                let path = Arc::clone(&path);
                async move {
                    let loaded = read_file(&path, cx.server().registry().max_file_size).await?;
                    let html = loaded.into_text();
                    let html = html.ok_or_else(|| ResourceError::Internal("the page is not text".into()))?;
                    Ok::<_, ResourceError>(bridge.apply(html))
                }
            }),
            Source::Made(make) => {
                let at: Arc<str> = uri.as_str().into();
                Resource::new::<_, fn(Context<S>)>(uri, move |cx: Context<S>| {
                    let (page, at) = (make(cx), Arc::clone(&at));
                    async move { page.await?.contents(&at) }
                })
            }
        };
        page = page.mime_type(MIME_TYPE);
        (page.spec.title, page.spec.description) = (self.title, self.description);
        page.spec.unlisted = self.listing == Listing::Unlisted;
        if let Some(reason) = fault {
            page.spec.fail(reason);
        }
        if let Err(reason) = declare(&mut page.spec.meta, &self.ui) {
            page.spec.fail(reason);
        }
        page
    }
}

impl<S> Clone for View<S> {
    fn clone(&self) -> Self {
        Self {
            uri: self.uri.clone(),
            source: self.source.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            ui: self.ui.clone(),
            listing: self.listing,
            bridge: self.bridge,
        }
    }
}

impl<S> fmt::Debug for View<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("uri", &self.uri).field("ui", &self.ui).finish_non_exhaustive()
    }
}

/// Creates a [`View`](crate::apps::View) from a file of the crate, whose path is relative to its manifest. Debug builds read
/// the file for each request, so that it can be edited while the server runs; other builds contain it.
///
/// ```
/// use duplexer_server::Server;
/// use duplexer_server::apps::Apps;
/// use duplexer_server::view_file;
///
/// let page = view_file!("ui://clock", "tests/server/pages/clock.html").title("Clock");
/// let server = Server::builder("clock", "1.0.0").extend(Apps::new().view(page)).build();
/// # assert!(server.is_ok());
/// ```
#[macro_export]
macro_rules! view_file {
    ($uri:expr, $path:literal) => {{
        #[cfg(debug_assertions)]
        let view = $crate::apps::View::file($uri, concat!(env!("CARGO_MANIFEST_DIR"), "/", $path));
        #[cfg(not(debug_assertions))]
        let view =
            $crate::apps::View::new($uri, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/", $path)));
        view
    }};
}
