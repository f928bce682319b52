//! The declaration of a tool about its view (MCP Apps), in `_meta.ui`.

use duplexer_types::json::{Json, JsonObject};
use serde::Serialize;

use super::Tool;

/// Member of `_meta` that holds the declaration.
const MEMBER: &str = "ui";
/// Member of `_meta` that named the view before the extension was released.
const FLAT_MEMBER: &str = "ui/resourceUri";

/// The `_meta.ui` of a tool.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ToolUi {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_uri: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    visibility: Option<[&'static str; 1]>,
    #[serde(skip)]
    flat_key: bool,
}

impl ToolUi {
    /// Writes the declaration into the `_meta` of a tool. Fails if a member exists already.
    pub(super) fn declare(&self, meta: &mut Option<JsonObject>) -> Result<(), String> {
        declare(meta, self)?;
        let (Some(meta), Some(uri), true) = (meta, &self.resource_uri, self.flat_key) else { return Ok(()) };
        match meta.insert(FLAT_MEMBER, Json::from(uri.as_str())) {
            None => Ok(()),
            Some(_) => Err(format!("its `_meta` has a member `{FLAT_MEMBER}` already")),
        }
    }
}

impl<S> Tool<S> {
    /// Shows the results in a view of [`Apps`](crate::apps::Apps). A view that is not registered fails the build.
    pub fn view(mut self, uri: impl Into<String>) -> Self {
        self.ui().resource_uri = Some(uri.into());
        self
    }

    /// Restricts the tool to views: clients that show views hide it from the model.
    pub fn app_only(mut self) -> Self {
        self.ui().visibility = Some(["app"]);
        self
    }

    /// Restricts the tool to the model: clients refuse calls from views.
    pub fn model_only(mut self) -> Self {
        self.ui().visibility = Some(["model"]);
        self
    }

    /// Names the view also where hosts of before the release of the extension look for it: `_meta["ui/resourceUri"]`.
    pub fn flat_view_key(mut self) -> Self {
        self.ui().flat_key = true;
        self
    }

    fn ui(&mut self) -> &mut ToolUi {
        self.spec.ui.get_or_insert_default()
    }
}

/// Writes a declaration into `_meta`. Fails if the member exists already.
pub(crate) fn declare(meta: &mut Option<JsonObject>, ui: &impl Serialize) -> Result<(), String> {
    let declaration = Json::encode(ui).map_err(|error| error.to_string())?;
    let meta = meta.get_or_insert_with(JsonObject::new);
    match meta.insert(MEMBER, declaration) {
        None => Ok(()),
        Some(_) => Err(format!("its `_meta` has a member `{MEMBER}` already: say it with `view` alone")),
    }
}
