//! What a tool declares about its view (MCP Apps), under `_meta.ui`.

use duplexer_types::json::{Json, JsonObject};
use serde::Serialize;

use super::Tool;

/// The media type of a view.
pub(crate) const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The member of `_meta` that holds the declaration.
const MEMBER: &str = "ui";

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
