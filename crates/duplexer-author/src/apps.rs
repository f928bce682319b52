//! MCP Apps: tools that bring a view, which is a page of HTML that the client shows.

use std::any::Any;

use duplexer_core::server::{Context, ServerBuilder};
use duplexer_types::json::Json;
use serde_json::{Value, json};

use crate::extension::Extension;
use crate::resource::Resource;
use crate::server::ServerExt;
use crate::tool::Tool;

const ID: &str = "io.modelcontextprotocol/ui";
const MIME_TYPE: &str = "text/html;profile=mcp-app";

/// Views for tools. A tool names its view with [`Tool::view`].
///
/// ```
/// # use duplexer_author::{Apps, Server, ServerExt, Tool};
/// let clock = Tool::new("clock").handler(|| async { "12:00" }).view("ui://clock");
/// let server = Server::builder("clock")
///     .extend(Apps::new().view("ui://clock", "<p id=time></p>"))
///     .tool(clock)
///     .build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Apps {
    views: Vec<(String, String)>,
}

impl Apps {
    /// No views yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more view: a page of HTML under a URI that begins with `ui://`.
    #[must_use]
    pub fn view(mut self, uri: impl Into<String>, html: impl Into<String>) -> Self {
        self.views.push((uri.into(), html.into()));
        self
    }

    /// Whether the client of a message can show views.
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

    fn settings(&self) -> Json {
        json!({ "mimeTypes": [MIME_TYPE] }).into()
    }

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        self.views.into_iter().fold(builder, |builder, (uri, html)| {
            let mut view = Resource::text(uri, html).mime_type(MIME_TYPE);
            if !view.draft.uri.starts_with("ui://") {
                view.draft.fault = Some("a view's URI begins with 'ui://'".to_owned());
            }
            builder.resource(view)
        })
    }
}

impl<S> Tool<S> {
    /// Shows its results in a view of [`Apps`]. A view that is not registered fails the build.
    pub fn view(mut self, uri: impl Into<String>) -> Self {
        let uri = uri.into();
        let taken = self.draft.tool.meta.as_ref().is_some_and(|meta| meta.get("ui").is_some());
        if taken {
            let tool = self.draft.tool.name.clone();
            let reason = "its `_meta` has a member `ui` already".to_owned();
            self.draft.fault.get_or_insert(crate::CatalogError::Schema { tool, reason });
        }
        self.draft.view = Some(uri.clone());
        self.meta("ui", json!({ "resourceUri": uri }))
    }
}
