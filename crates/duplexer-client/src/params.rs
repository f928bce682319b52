//! Params of any method behind one type, so that the code around a request is compiled once and not once per method.

use std::any::Any;

use duplexer_types::json::{Json, JsonObject};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{Shape, WireObject};
use serde::ser::SerializeMap;

/// Params of a request. A method that needs its own type looks it up with [`Any`].
pub(super) trait Params: Any + Send + Sync {
    /// Encodes the params in the shape of `version`, followed by `_meta` unless it is empty.
    fn encode(&self, version: ProtocolVersion, meta: &JsonObject) -> Result<Json, serde_json::Error>;
}

impl<P: WireObject + Send + Sync + 'static> Params for P {
    fn encode(&self, version: ProtocolVersion, meta: &JsonObject) -> Result<Json, serde_json::Error> {
        Json::encode(&WithMeta { params: self, meta, shape: Shape::new(version) })
    }
}

struct WithMeta<'a, P> {
    params: &'a P,
    meta: &'a JsonObject,
    shape: Shape,
}

impl<P: WireObject> serde::Serialize for WithMeta<'_, P> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.params.members(self.shape, &mut map)?;
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", self.meta)?;
        }
        map.end()
    }
}
