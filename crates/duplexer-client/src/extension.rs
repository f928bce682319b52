//! Extensions of a client: what they declare, and the results and notifications that they claim.

use duplexer_types::json::Json;
use duplexer_types::methods::Method;
use duplexer_types::version::Window;

use super::{Client, ClientError};
use duplexer_core::dispatch::BoxFuture;

/// A protocol extension of a client. Added with [`ClientBuilder::extend`](super::ClientBuilder::extend).
///
/// It takes part in sessions whose revision is in its window.
///
/// ```
/// use duplexer_client::{ClaimedResult, Client, ClientError, ClientExtension};
/// use duplexer_core::dispatch::{BoxFuture, OutboundRequest};
/// use duplexer_types::json::Json;
/// use duplexer_types::methods::Method;
///
/// /// Fetches results that the server keeps for later: their type is `deferred`.
/// struct Deferred;
///
/// impl ClientExtension for Deferred {
///     fn id(&self) -> &str {
///         "com.example/deferred"
///     }
///
///     fn claims(&self, method: Method, result_type: &str) -> bool {
///         method == Method::ToolsCall && result_type == "deferred"
///     }
///
///     fn finish<'a>(&'a self, claimed: ClaimedResult<'a>) -> BoxFuture<'a, Result<Json, ClientError>> {
///         let fetch = OutboundRequest::new("com.example/fetch").params(claimed.result);
///         Box::pin(claimed.client.request_custom(fetch))
///     }
/// }
///
/// let builder = Client::builder("my-agent", "1.0").extend(Deferred);
/// # let _ = builder;
/// ```
pub trait ClientExtension: Send + Sync + 'static {
    /// Returns the id: `prefix/name`, where the prefix is a reversed domain.
    fn id(&self) -> &str;

    /// Returns the settings that the client declares under the id, a JSON object.
    fn settings(&self) -> Json {
        Json::object()
    }

    /// Returns the revisions in which the extension is declared: by default those of the envelope era.
    fn window(&self) -> Window {
        Window::ENVELOPE
    }

    /// Returns whether the extension finishes results of this method with this `resultType`.
    fn claims(&self, method: Method, result_type: &str) -> bool {
        let _ = (method, result_type);
        false
    }

    /// Returns the final result of a request whose result the extension has claimed: the JSON text that the method
    /// itself would have. It is dropped with the call.
    ///
    /// # Errors
    ///
    /// The call fails with the error.
    fn finish<'a>(&'a self, claimed: ClaimedResult<'a>) -> BoxFuture<'a, Result<Json, ClientError>> {
        Box::pin(std::future::ready(Err(claimed.unfinished())))
    }

    /// Receives a notification that the protocol itself does not define. Returns whether it belongs to the extension; other
    /// callbacks do not get it then. It must not block.
    fn notification(&self, method: &str, params: Option<&Json>) -> bool {
        let _ = (method, params);
        false
    }
}

/// Result of a type that an extension defines, with its request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ClaimedResult<'a> {
    /// The session, for further requests.
    pub client: &'a Client,
    /// Method of the request.
    pub method: Method,
    /// The `resultType`.
    pub result_type: String,
    /// The result, verbatim.
    pub result: Json,
}

impl ClaimedResult<'_> {
    /// Returns the error of a result that nobody finishes.
    pub(super) fn unfinished(self) -> ClientError {
        let Self { method, result_type, result, .. } = self;
        ClientError::ResultType { method, result_type, result }
    }
}

/// The declaration of an extension.
#[derive(Clone)]
pub(super) struct DeclaredExtension {
    pub(super) id: String,
    pub(super) settings: Json,
    pub(super) window: Window,
}
