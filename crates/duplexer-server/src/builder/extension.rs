//! Extensions: their capability settings, and the registrations that implement them.

use crate::builder::ServerBuilder;
use duplexer_types::json::Json;
use duplexer_types::version::Window;

/// A protocol extension. Added with [`ServerBuilder::extend`].
///
/// ```
/// use duplexer::server::Extension;
/// use duplexer::{Json, Server, ServerBuilder, Tool};
///
/// /// Adds receipts to a shop.
/// struct Receipts;
///
/// impl<S: Send + Sync + 'static> Extension<S> for Receipts {
///     fn id(&self) -> &str {
///         "com.example/receipts"
///     }
///
///     fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S> {
///         builder.tool(Tool::new("receipt", || async { "Paid." }))
///     }
/// }
///
/// let server = Server::builder("shop", "1.0.0").extend(Receipts).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
pub trait Extension<S> {
    /// Returns the id: `prefix/name`, where the prefix is a reversed domain. An invalid or repeated id fails the build.
    fn id(&self) -> &str;

    /// Returns the settings that are advertised under the id.
    fn settings(&self) -> Json {
        Json::object()
    }

    /// Returns the revisions in which the extension is declared: by default those of the envelope era.
    ///
    /// In the handshake era it is declared in the result of `initialize`, and clients declare it in its params.
    fn window(&self) -> Window {
        Window::ENVELOPE
    }

    /// Registers what it consists of: tools, resources, custom methods, and what calls of tools pass through
    /// ([`ServerBuilder::tool_middleware`]).
    fn install(self, builder: ServerBuilder<S>) -> ServerBuilder<S>;
}
