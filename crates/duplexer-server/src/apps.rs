//! MCP Apps: tools with a view, an HTML page that the client shows.

mod view;

use std::any::Any;

use crate::builder::ServerBuilder;
use crate::kernel::context::Context;
use duplexer_types::version::Window;
use serde_json::Value;

use crate::builder::extension::Extension;
use crate::catalog::tool::ui::MIME_TYPE;

pub use view::{Permission, View};

const ID: &str = "io.modelcontextprotocol/ui";

/// Extension that registers views for tools. A tool names its view with [`Tool::view`](crate::tool::Tool::view).
///
/// ```
/// # use duplexer_server::Server;
/// # use duplexer_server::apps::{Apps, View};
/// # use duplexer_server::tool::Tool;
/// let clock = Tool::new("clock", || async { "12:00" }).view("ui://clock");
/// let page = View::new("ui://clock", "<p id=time></p>").resource_domains(["https://fonts.example"]);
/// let server = Server::builder("clock", "0").extend(Apps::new().view(page)).tool(clock).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Apps {
    views: Vec<View>,
}

impl Apps {
    /// Creates the extension without views.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a view.
    #[must_use]
    pub fn view(mut self, view: View) -> Self {
        self.views.push(view);
        self
    }

    /// Returns whether the client of a request can show views. For other clients a tool should return the same
    /// information as content.
    pub fn shown_by<S>(cx: &Context<S>) -> bool {
        let capabilities = cx.connection().client().capabilities.as_ref();
        let settings = capabilities.and_then(|all| all.extensions.as_ref()).and_then(|all| all.get(ID));
        let types = settings.and_then(|settings| settings.decode::<Value>().ok());
        types.is_some_and(|settings| {
            settings["mimeTypes"].as_array().is_some_and(|types| types.iter().any(|one| one == MIME_TYPE))
        })
    }
}

impl<S: Any + Send + Sync> Extension<S> for Apps {
    fn id(&self) -> &str {
        ID
    }

    /// Hosts of the handshake era show views too, and can only say so there.
    fn window(&self) -> Window {
        Window::ALWAYS
    }

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        self.views.into_iter().fold(builder, ServerBuilder::resource)
    }
}
