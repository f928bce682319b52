//! Callbacks of a client for requests and notifications of the server, and the capabilities that they declare.

use std::sync::Arc;

use duplexer_types::capabilities::{ElicitationCapability, SamplingCapability};
use duplexer_types::elicitation::{ElicitParams, ElicitResult};
use duplexer_types::json::Json;
use duplexer_types::logging::LoggingMessageParams;
use duplexer_types::roots::ListRootsResult;
use duplexer_types::sampling::{CreateMessageParams, CreateMessageResult};
use duplexer_types::version::Window;

use super::ClientBuilder;
use crate::extension::{ClientExtension, DeclaredExtension};
use crate::handler::ServerNotification;
use duplexer_core::error::McpError;
use duplexer_core::transport::FrameDirection;

/// Callbacks and capabilities.
impl ClientBuilder {
    /// Declares an extension with its settings, a JSON object (envelope era).
    pub fn extension(self, id: impl Into<String>, settings: impl Into<Json>) -> Self {
        self.extension_in(id, settings, Window::ENVELOPE)
    }

    /// Declares an extension with its settings, a JSON object, in these revisions. A later declaration of the same id
    /// replaces an earlier one.
    pub fn extension_in(mut self, id: impl Into<String>, settings: impl Into<Json>, window: Window) -> Self {
        let declared = DeclaredExtension { id: id.into(), settings: settings.into(), window };
        let extensions = &mut self.callbacks.declared.extensions;
        extensions.retain(|earlier| earlier.id != declared.id);
        extensions.push(declared);
        self
    }

    /// Adds an extension: declares it, and gives it the results and notifications that it claims. A later extension with
    /// the same id replaces an earlier one.
    pub fn extend(mut self, extension: impl ClientExtension) -> Self {
        let (id, settings, window) = (extension.id().to_owned(), extension.settings(), extension.window());
        self.callbacks.extensions.retain(|earlier| earlier.id() != id);
        self.callbacks.extensions.push(Arc::new(extension));
        self.extension_in(id, settings, window)
    }

    /// Sets the callback that answers `sampling/createMessage`. Its future is dropped if the server cancels.
    #[doc(alias("sampling", "llm"))]
    pub fn on_sampling<F>(
        mut self,
        callback: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, McpError>> + Send + 'static,
    {
        self.callbacks.sampling = Some(Arc::new(move |params| Box::pin(callback(params))));
        self
    }

    /// Sets the capability declared for [`Self::on_sampling`]. Default: neither tools nor context.
    pub fn sampling_capability(mut self, capability: SamplingCapability) -> Self {
        self.callbacks.declared.sampling = capability;
        self
    }

    /// Sets the callback that answers `sampling/createMessage` together with the capability that is declared for it.
    pub fn on_sampling_with<F>(
        self,
        capability: SamplingCapability,
        callback: impl Fn(CreateMessageParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, McpError>> + Send + 'static,
    {
        self.sampling_capability(capability).on_sampling(callback)
    }

    /// Sets the callback that answers `elicitation/create`: questions to the user.
    pub fn on_elicitation<F>(mut self, callback: impl Fn(ElicitParams) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ElicitResult, McpError>> + Send + 'static,
    {
        self.callbacks.elicitation = Some(Arc::new(move |params| Box::pin(callback(params))));
        self
    }

    /// Sets the capability declared for [`Self::on_elicitation`]. Default: forms and URLs.
    pub fn elicitation_capability(mut self, capability: ElicitationCapability) -> Self {
        self.callbacks.declared.elicitation = capability;
        self
    }

    /// Sets the callback that answers `roots/list`. Roots are `file://` URIs.
    pub fn on_roots<F>(mut self, callback: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ListRootsResult, McpError>> + Send + 'static,
    {
        self.callbacks.roots = Some(Arc::new(move |()| Box::pin(callback())));
        self
    }

    /// Sets the callback for log messages, which are delivered in the order they arrive. It must not block.
    #[doc(alias("log", "logging"))]
    pub fn on_log(mut self, callback: impl Fn(LoggingMessageParams) + Send + Sync + 'static) -> Self {
        self.callbacks.log = Some(Arc::new(callback));
        self
    }

    /// Sets the callback for every message on the wire, in both directions, for logs of a session over a transport. It must not
    /// block.
    #[doc(alias("trace", "wire", "debug"))]
    pub fn on_frame(mut self, callback: impl Fn(FrameDirection, &str) + Send + Sync + 'static) -> Self {
        self.on_frame = Some(Arc::new(callback));
        self
    }

    /// Sets the callback for all notifications, log messages included, in the order they arrive. It must not block.
    pub fn on_notification(mut self, callback: impl Fn(ServerNotification) + Send + Sync + 'static) -> Self {
        self.callbacks.notification = Some(Arc::new(callback));
        self
    }
}
