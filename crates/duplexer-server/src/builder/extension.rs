//! Extensions: their capability settings, and the registrations that implement them.

use crate::builder::ServerBuilder;
use duplexer_types::json::Json;

/// A protocol extension. Added with [`ServerBuilder::extend`].
pub trait Extension<S> {
    /// Returns the id: `prefix/name`, where the prefix is a reversed domain. An invalid or repeated id fails the build.
    fn id(&self) -> &str;

    /// Returns the settings that are advertised under the id.
    fn settings(&self) -> Json {
        Json::object()
    }

    /// Registers the parts of the extension: tools, resources, custom methods, and interceptors of tool calls
    /// ([`ServerBuilder::intercept`]).
    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S>;
}
