//! MCP Apps: tools that bring a view, which is a page of HTML that the client shows.

mod view;

use std::any::Any;

use duplexer_core::server::{Context, ServerBuilder};
use duplexer_types::json::{Json, JsonObject};
use serde::Serialize;
use serde_json::Value;

use crate::extension::Extension;
use crate::server::ServerExt;
use crate::tool::Tool;

pub use view::{Permission, View};

const ID: &str = "io.modelcontextprotocol/ui";
pub(crate) const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The member of `_meta` that all of this is said in.
const MEMBER: &str = "ui";

/// Views for tools. A tool names its view with [`Tool::view`].
///
/// ```
/// # use duplexer_author::{Apps, Server, ServerExt, Tool, View};
/// let clock = Tool::new("clock").handler(|| async { "12:00" }).view("ui://clock");
/// let page = View::new("ui://clock", "<p id=time></p>").resource_domains(["https://fonts.example"]);
/// let server = Server::builder("clock").extend(Apps::new().view(page)).tool(clock).build()?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Apps {
    views: Vec<View>,
}

impl Apps {
    /// No views yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more view.
    #[must_use]
    pub fn view(mut self, view: View) -> Self {
        self.views.push(view);
        self
    }

    /// Whether the client of a message can show views. A tool whose client cannot says the same in its content.
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

    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
        self.views.into_iter().fold(builder, ServerExt::resource)
    }
}

/// What a tool says about views.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolUi {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visibility: Option<[&'static str; 1]>,
}

impl<S> Tool<S> {
    /// Shows its results in a view of [`Apps`]. A view that is not registered fails the build.
    pub fn view(mut self, uri: impl Into<String>) -> Self {
        self.ui().resource_uri = Some(uri.into());
        self
    }

    /// Only views call it: clients that show views hide it from the model.
    pub fn app_only(mut self) -> Self {
        self.ui().visibility = Some(["app"]);
        self
    }

    /// Only the model calls it: clients do not let views do so.
    pub fn model_only(mut self) -> Self {
        self.ui().visibility = Some(["model"]);
        self
    }

    fn ui(&mut self) -> &mut ToolUi {
        self.draft.ui.get_or_insert_default()
    }
}

/// Says it in `_meta`, where nobody else may have said something.
pub(crate) fn tell(meta: &mut Option<JsonObject>, ui: &impl Serialize) -> Result<(), String> {
    let said = Json::encode(ui).map_err(|error| error.to_string())?;
    let meta = meta.get_or_insert_with(JsonObject::new);
    match meta.insert(MEMBER, said) {
        None => Ok(()),
        Some(_) => Err(format!("its `_meta` has a member `{MEMBER}` already: say it with `view` alone")),
    }
}
