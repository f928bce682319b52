//! Who is there and which revision is spoken: `initialize`, `server/discover`, and the errors about both.

use crate::capabilities::{ClientCapabilities, ServerCapabilities};
use crate::error::{ErrorCode, ErrorObject};
use crate::icon::Icon;
use crate::json::Json;
use crate::model::model;

model! {
    /// A program that speaks the protocol.
    pub struct Implementation {
        /// Its name, for programs.
        name: String = "name",
        /// Its version.
        version: String = "version",
    } optional {
        /// Its name, for people.
        title: String = "title" since V2025_06_18,
        /// What it does.
        description: String = "description" since V2025_11_25,
        /// Where people read more.
        website_url: String = "websiteUrl" since V2025_11_25,
        /// Pictures.
        icons: Vec<Icon> = "icons" since V2025_11_25,
    }
}

model! {
    /// Params of methods and notifications that need none.
    pub struct EmptyParams {}
}

model! {
    /// "Done."
    pub result EmptyResult {}
}

model! {
    /// Opens a connection of the handshake era.
    pub struct InitializeParams {
        /// The revision the client would like.
        protocol_version: String = "protocolVersion",
        /// What the client can do.
        capabilities: ClientCapabilities = "capabilities",
        /// Who the client is.
        client_info: Implementation = "clientInfo",
    }
}

model! {
    /// What the connection will be like.
    pub result InitializeResult {
        /// The revision that is spoken from now on.
        protocol_version: String = "protocolVersion",
        /// What the server can do.
        capabilities: ServerCapabilities = "capabilities",
        /// Who the server is.
        server_info: Implementation = "serverInfo",
    } optional {
        /// For the model.
        instructions: String = "instructions",
    }
}

model! {
    /// What a server of the envelope era is like. Who it is stands in `_meta`, as in every result.
    pub cacheable result DiscoverResult {
        /// The revisions it serves.
        supported_versions: Vec<String> = "supportedVersions",
        /// What it can do.
        capabilities: ServerCapabilities = "capabilities",
    } optional {
        /// For the model.
        instructions: String = "instructions",
    }
}

model! {
    /// The data of [`ErrorCode::UNSUPPORTED_PROTOCOL_VERSION`].
    pub struct UnsupportedVersionData {
        /// What is served.
        supported: Vec<String> = "supported",
        /// What was asked for.
        requested: String = "requested",
    }
}

model! {
    /// The data of [`ErrorCode::MISSING_CLIENT_CAPABILITY`].
    pub struct MissingCapabilityData {
        /// What the client would have to declare.
        required_capabilities: ClientCapabilities = "requiredCapabilities",
    }
}

impl MissingCapabilityData {
    /// The error with this data.
    pub fn error(&self, message: impl Into<std::borrow::Cow<'static, str>>) -> ErrorObject {
        let mut error = ErrorObject::new(ErrorCode::MISSING_CLIENT_CAPABILITY, message);
        error.data = Json::encode(self).ok();
        error
    }
}
