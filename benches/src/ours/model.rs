//! Stand-ins with the members and the writing of the models of the same name in `duplexer-types`.

use duplexer_types::json::{Json, Members};
use duplexer_types::wire::{ResultBody, Shape, Wire, WireObject};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serializer};

#[derive(Deserialize)]
pub(super) struct CallToolParams {
    pub(super) name: String,
    #[serde(default)]
    pub(super) arguments: Option<Json>,
}

pub(super) struct CallToolResult {
    content: Vec<TextContent>,
    meta: Option<Members>,
}

struct TextContent {
    text: String,
}

pub(super) fn text_result(text: String) -> CallToolResult {
    CallToolResult { content: vec![TextContent { text }], meta: None }
}

impl Wire for TextContent {
    fn write<S: Serializer>(&self, _: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "text")?;
        map.serialize_entry("text", &self.text)?;
        map.end()
    }
}

impl Wire for CallToolResult {
    fn write<S: Serializer>(&self, shape: Shape, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.members(shape, &mut map)?;
        map.end()
    }
}

impl WireObject for CallToolResult {
    fn members<M: SerializeMap>(&self, shape: Shape, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("content", &duplexer_types::wire::Shaped(&self.content, shape))
    }
}

impl ResultBody for CallToolResult {
    fn meta(&self) -> Option<&Members> {
        self.meta.as_ref()
    }
}
