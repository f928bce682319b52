//! MCP Apps: tools with a view, an HTML page that the client shows.

mod page;
mod view;

use std::any::Any;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::builder::ServerBuilder;
use crate::kernel::context::Context;
use duplexer_types::app::{EXTENSION, MIME_TYPE};
use duplexer_types::version::Window;
use serde_json::Value;

use crate::builder::extension::Extension;

pub use view::{Permission, View};

/// Extension that registers views for tools. A tool names its view with [`Tool::view`](crate::tool::Tool::view).
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::apps::{Apps, View};
/// # use duplexer_server::tool::Tool;
/// let clock = Tool::new("clock", || async { "12:00" }).view("ui://clock");
/// let page = View::new("ui://clock", "<!doctype html><html><body>12:00</body></html>");
/// let server = Server::builder("clock", "0").extend(Apps::new().view(page)).tool(clock).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[must_use = "an extension is used once a builder has it"]
pub struct Apps<S = ()> {
    views: Vec<View<S>>,
}

impl<S> Default for Apps<S> {
    fn default() -> Self {
        Self { views: Vec::new() }
    }
}

impl<S> Apps<S> {
    /// Creates the extension without views.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a view.
    pub fn view(mut self, view: View<S>) -> Self {
        self.views.push(view);
        self
    }

    /// Adds a view for each `.html` file of a directory: `pages/clock.html` is `PREFIX/clock`. A directory that cannot be
    /// read, or that has no such file, fails the build.
    pub fn directory(mut self, prefix: &str, directory: impl AsRef<Path>) -> Self {
        let directory = directory.as_ref();
        let pages = html_files(directory);
        if pages.is_empty() {
            // Fails with the name of the directory.
            self.views.push(View::file(prefix, directory.join("*.html")));
        }
        let prefix = prefix.trim_end_matches('/');
        let views = pages.into_iter().map(|(name, path)| View::file(format!("{prefix}/{name}"), path));
        self.views.extend(views);
        self
    }

    /// Returns whether the client of a request can show views. For other clients a tool should return the same
    /// information as content.
    pub fn shown_by(cx: &Context<S>) -> bool {
        let capabilities = cx.connection().client().capabilities.as_ref();
        let settings =
            capabilities.and_then(|all| all.extensions.as_ref()).and_then(|all| all.get(EXTENSION));
        let types = settings.and_then(|settings| settings.decode::<Value>().ok());
        types.is_some_and(|settings| {
            settings["mimeTypes"].as_array().is_some_and(|types| types.iter().any(|one| one == MIME_TYPE))
        })
    }
}

/// Returns the pages of a directory with their names, in the order of the names.
fn html_files(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let pages = entries.filter(|path| path.extension().is_some_and(|extension| extension == "html"));
    let mut named: Vec<_> =
        pages.filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path))).collect();
    named.sort();
    named
}

impl<S> Clone for Apps<S> {
    fn clone(&self) -> Self {
        Self { views: self.views.clone() }
    }
}

impl<S> fmt::Debug for Apps<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apps").field("views", &self.views).finish()
    }
}

impl<S: Any + Send + Sync> Extension<S> for Apps<S> {
    fn id(&self) -> &str {
        EXTENSION
    }

    /// Hosts of the handshake era show views too, and can only say so there.
    fn window(&self) -> Window {
        Window::ALWAYS
    }

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        self.views.into_iter().fold(builder, ServerBuilder::resource)
    }
}
