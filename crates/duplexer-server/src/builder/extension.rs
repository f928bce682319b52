//! Extensions: capability settings, and whatever else a server needs to keep their promise.

use crate::builder::ServerBuilder;
use duplexer_types::json::Json;

/// Something that servers can speak beyond the protocol. Added with [`ServerBuilder::extend`].
pub trait Extension<S> {
    /// Its id: `prefix/name`, where the prefix is a domain written backwards. One that is not, or is taken, fails the build.
    fn id(&self) -> &str;

    /// What is advertised under that id.
    fn settings(&self) -> Json {
        Json::object()
    }

    /// Registers what it consists of: tools, resources, custom methods, and what calls of tools pass through
    /// ([`ServerBuilder::tool_middleware`]).
    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S>;
}
