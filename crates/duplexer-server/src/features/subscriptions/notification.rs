//! The notification that reports an event to a client.

use duplexer_types::json::JsonObject;
use duplexer_types::jsonrpc::Body;
use duplexer_types::lifecycle::EmptyParams;
use duplexer_types::methods::Method;
use duplexer_types::resource::ResourceUpdatedParams;
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, WireObject};

use super::bus::Event;

/// Calls `send` with the method and the params of the notification. Returns `None` for a session, of which clients do not hear,
/// and for a task, whose notification is made of its record.
pub(super) fn notification<R>(
    event: &Event,
    version: ProtocolVersion,
    meta: Option<&JsonObject>,
    send: impl FnOnce(&str, &dyn Body) -> R,
) -> Option<R> {
    let nothing = EmptyParams::new();
    let list = ShapedParams { params: &nothing, version, meta };
    Some(match event {
        Event::ToolsChanged => send(Method::ToolsListChanged.name(), &list),
        Event::PromptsChanged => send(Method::PromptsListChanged.name(), &list),
        Event::ResourcesChanged => send(Method::ResourcesListChanged.name(), &list),
        Event::ResourceUpdated { uri } => {
            let params = ResourceUpdatedParams::new(&**uri);
            send(Method::ResourcesUpdated.name(), &ShapedParams { params: &params, version, meta })
        }
        Event::SessionChanged { .. } | Event::TaskChanged { .. } => return None,
    })
}

/// Params in the shape of a revision, with their `_meta`.
pub(super) struct ShapedParams<'a, P> {
    pub(super) params: &'a P,
    pub(super) version: ProtocolVersion,
    pub(super) meta: Option<&'a JsonObject>,
}

impl<P: WireObject> Body for ShapedParams<'_, P> {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_params(out, self.params, self.version, self.meta)
    }
}
