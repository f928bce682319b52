//! Opening of a connection: `initialize`, `server/discover`, and the data of related errors.

use crate::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::error::{ErrorCode, ErrorObject};
use crate::icon::Icon;
use crate::json::Json;
use crate::model::model;

model! {
    /// Identity of a client or server: `clientInfo` and `serverInfo` of [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle) and of the
    /// [request envelope](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta).
    ///
    /// ```
    /// use duplexer_types::lifecycle::Implementation;
    ///
    /// let me = Implementation::new("calculator", "1.0.0").title("Calculator").website_url("https://example.com");
    /// assert_eq!((me.name.as_str(), me.version.as_str()), ("calculator", "1.0.0"));
    /// ```
    pub struct Implementation {
        /// Name of the program.
        name: String = "name",
        /// Version of the program.
        version: String = "version",
    } optional {
        /// Display name.
        title: String = "title" since V2025_06_18,
        /// Description of the program.
        description: String = "description" since V2025_11_25,
        /// URL of the website.
        website_url: String = "websiteUrl" since V2025_11_25,
        /// Icons for user interfaces.
        icons: Vec<Icon> = "icons" since V2025_11_25,
    }
}

model! {
    /// Parameters of requests and notifications that have none.
    ///
    /// Requests: [`ping`](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping), [`server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover),
    /// [`roots/list`](https://modelcontextprotocol.io/specification/2026-07-28/client/roots#listing-roots). Notifications: `notifications/initialized`,
    /// `notifications/tools/list_changed`, `notifications/resources/list_changed`,
    /// `notifications/prompts/list_changed`, `notifications/roots/list_changed`, `notifications/tasks/status`.
    #[doc(alias = "ping")]
    #[doc(alias = "server/discover")]
    #[doc(alias = "roots/list")]
    #[doc(alias = "notifications/initialized")]
    #[doc(alias = "notifications/tools/list_changed")]
    #[doc(alias = "notifications/resources/list_changed")]
    #[doc(alias = "notifications/prompts/list_changed")]
    #[doc(alias = "notifications/roots/list_changed")]
    #[doc(alias = "notifications/tasks/status")]
    pub struct EmptyParams {}
}

model! {
    /// Result without members.
    ///
    /// It answers [`ping`](https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping), [`logging/setLevel`](https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging),
    /// `resources/subscribe`, `resources/unsubscribe`, `tasks/cancel` and `tasks/update`.
    #[doc(alias = "ping")]
    #[doc(alias = "logging/setLevel")]
    #[doc(alias = "resources/subscribe")]
    #[doc(alias = "resources/unsubscribe")]
    #[doc(alias = "tasks/cancel")]
    #[doc(alias = "tasks/update")]
    pub result EmptyResult {}
}

model! {
    /// Parameters of an [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization) request (handshake era).
    #[doc(alias = "initialize")]
    pub struct InitializeParams {
        /// The revision that the client proposes.
        protocol_version: String = "protocolVersion",
        /// Capabilities of the client.
        capabilities: ClientCapabilities = "capabilities",
        /// Identity of the client.
        client_info: Implementation = "clientInfo",
    }
}

model! {
    /// Result of an [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#initialization) request (handshake era).
    #[doc(alias = "initialize")]
    pub result InitializeResult {
        /// The revision of the connection.
        protocol_version: String = "protocolVersion",
        /// Capabilities of the server.
        capabilities: ServerCapabilities = "capabilities",
        /// Identity of the server.
        server_info: Implementation = "serverInfo",
    } optional {
        /// Instructions for the model on how to use the server.
        instructions: String = "instructions",
    }
}

model! {
    /// Result of a [`server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover) request (envelope era).
    ///
    /// The identity of the server is in `_meta`, as in every result.
    #[doc(alias = "server/discover")]
    pub cacheable result DiscoverResult {
        /// The revisions that the server supports.
        supported_versions: Vec<String> = "supportedVersions",
        /// Capabilities of the server.
        capabilities: ServerCapabilities = "capabilities",
    } optional {
        /// Instructions for the model on how to use the server.
        instructions: String = "instructions",
    }
}

model! {
    /// Data of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`]
    /// ([specification](https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning)).
    pub struct UnsupportedVersionData {
        /// The revisions that the server supports.
        supported: Vec<String> = "supported",
        /// The revision of the request.
        requested: String = "requested",
    }
}

model! {
    /// Data of [`ErrorCode::MISSING_CLIENT_CAPABILITY`] ([specification](https://modelcontextprotocol.io/specification/2026-07-28/basic)).
    pub struct MissingCapabilityData {
        /// The capabilities that the client must declare.
        required_capabilities: ClientCapabilities = "requiredCapabilities",
    }
}

impl MissingCapabilityData {
    /// Returns the error with this data.
    pub fn error(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorObject {
        let mut error = ErrorObject::new(ErrorCode::MISSING_CLIENT_CAPABILITY, message);
        error.data = Json::encode(self).ok();
        error
    }
}
