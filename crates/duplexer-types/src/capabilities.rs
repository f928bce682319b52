//! Capabilities of clients and servers.

use crate::json::JsonObject;
use crate::model::model;

model! {
    /// Capabilities of a client: in [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#capability-negotiation), and in the `_meta` of
    /// every request of the [envelope era](https://modelcontextprotocol.io/specification/2026-07-28/basic#_meta).
    ///
    /// ```
    /// use duplexer_types::capabilities::{ClientCapabilities, RootsCapability};
    ///
    /// let declared = ClientCapabilities::new().roots(RootsCapability::new().list_changed(true));
    /// assert_eq!(serde_json::to_string(&declared)?, r#"{"roots":{"listChanged":true}}"#);
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub struct ClientCapabilities {} optional {
        /// The client exposes roots.
        roots: RootsCapability = "roots",
        /// The client supports sampling.
        sampling: SamplingCapability = "sampling",
        /// The client supports elicitation.
        elicitation: ElicitationCapability = "elicitation" since V2025_06_18,
        /// Non-standard capabilities.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        experimental: JsonObject = "experimental",
        /// Supported extensions, by identifier, with their settings. Each extension says in which revisions it is declared.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        extensions: JsonObject = "extensions",
        /// Support of tasks (2025-11-25).
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::no_members))]
        tasks: JsonObject = "tasks" since V2025_11_25 until V2025_11_25,
    }
}

model! {
    /// Capabilities of a server: in the result of [`initialize`](https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#capability-negotiation) and of
    /// [`server/discover`](https://modelcontextprotocol.io/specification/2026-07-28/server/discover).
    ///
    /// ```
    /// use duplexer_types::capabilities::{ServerCapabilities, ToolsCapability};
    ///
    /// let declared = ServerCapabilities::new().tools(ToolsCapability::new().list_changed(true));
    /// assert_eq!(serde_json::to_string(&declared)?, r#"{"tools":{"listChanged":true}}"#);
    /// # Ok::<_, serde_json::Error>(())
    /// ```
    pub struct ServerCapabilities {} optional {
        /// The server offers tools.
        tools: ToolsCapability = "tools",
        /// The server offers resources.
        resources: ResourcesCapability = "resources",
        /// The server offers prompts.
        prompts: PromptsCapability = "prompts",
        /// The server supports argument completion.
        completions: JsonObject = "completions" since V2025_03_26,
        /// The server sends log messages.
        logging: JsonObject = "logging",
        /// Non-standard capabilities.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        experimental: JsonObject = "experimental",
        /// Supported extensions, by identifier, with their settings. Each extension says in which revisions it is declared.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        extensions: JsonObject = "extensions",
        /// Support of tasks (2025-11-25).
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::no_members))]
        tasks: JsonObject = "tasks" since V2025_11_25 until V2025_11_25,
    }
}

model! {
    /// Capability of a client that exposes [roots](https://modelcontextprotocol.io/specification/2025-11-25/client/roots#capabilities).
    pub struct RootsCapability {} optional {
        /// The client sends `notifications/roots/list_changed` (handshake era).
        list_changed: bool = "listChanged" until V2025_11_25,
    }
}

model! {
    /// Capability of a client that supports [sampling](https://modelcontextprotocol.io/specification/2026-07-28/client/sampling#capabilities).
    pub struct SamplingCapability {} optional {
        /// The client supports `includeContext`.
        context: JsonObject = "context" since V2025_11_25,
        /// The client supports `tools` and `toolChoice`.
        tools: JsonObject = "tools" since V2025_11_25,
    }
}

model! {
    /// Capability of a client that supports [elicitation](https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation#capabilities).
    pub struct ElicitationCapability {} optional {
        /// Form mode.
        form: JsonObject = "form" since V2025_11_25,
        /// URL mode.
        url: JsonObject = "url" since V2025_11_25,
    }
}

impl ElicitationCapability {
    /// Whether the client supports form mode: declared, or implied because no mode is declared.
    pub fn asks_by_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether the client supports URL mode.
    pub fn asks_by_url(&self) -> bool {
        self.url.is_some()
    }
}

model! {
    /// Capability of a server that offers [tools](https://modelcontextprotocol.io/specification/2026-07-28/server/tools#capabilities).
    pub struct ToolsCapability {} optional {
        /// The server sends `notifications/tools/list_changed`.
        list_changed: bool = "listChanged",
    }
}

model! {
    /// Capability of a server that offers [prompts](https://modelcontextprotocol.io/specification/2026-07-28/server/prompts#capabilities).
    pub struct PromptsCapability {} optional {
        /// The server sends `notifications/prompts/list_changed`.
        list_changed: bool = "listChanged",
    }
}

model! {
    /// Capability of a server that offers [resources](https://modelcontextprotocol.io/specification/2026-07-28/server/resources#capabilities).
    pub struct ResourcesCapability {} optional {
        /// The server supports subscriptions to single resources.
        subscribe: bool = "subscribe",
        /// The server sends `notifications/resources/list_changed`.
        list_changed: bool = "listChanged",
    }
}
