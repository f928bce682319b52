//! What a client and a server can do.

use crate::json::JsonObject;
use crate::model::model;

model! {
    /// What a client can do.
    pub struct ClientCapabilities {} optional {
        /// It has roots.
        roots: RootsCapability = "roots",
        /// It lets servers use its model.
        sampling: SamplingCapability = "sampling",
        /// It lets servers ask the user.
        elicitation: ElicitationCapability = "elicitation" since V2025_06_18,
        /// What no specification describes.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        experimental: JsonObject = "experimental",
        /// Extensions and their settings. In the handshake era they cannot be advertised.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        extensions: JsonObject = "extensions" since V2026_07_28,
        /// The experimental tasks of 2025-11-25.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::no_members))]
        tasks: JsonObject = "tasks" since V2025_11_25 until V2025_11_25,
    }
}

model! {
    /// What a server can do.
    pub struct ServerCapabilities {} optional {
        /// It has tools.
        tools: ToolsCapability = "tools",
        /// It has resources.
        resources: ResourcesCapability = "resources",
        /// It has prompts.
        prompts: PromptsCapability = "prompts",
        /// It completes arguments.
        completions: JsonObject = "completions" since V2025_03_26,
        /// It sends log messages.
        logging: JsonObject = "logging",
        /// What no specification describes.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        experimental: JsonObject = "experimental",
        /// Extensions and their settings. In the handshake era they cannot be advertised.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::settings))]
        extensions: JsonObject = "extensions" since V2026_07_28,
        /// The experimental tasks of 2025-11-25.
        #[cfg_attr(test, arbitrary(with = crate::arbitrary::no_members))]
        tasks: JsonObject = "tasks" since V2025_11_25 until V2025_11_25,
    }
}

model! {
    /// The client has roots.
    pub struct RootsCapability {} optional {
        /// It tells when they change.
        list_changed: bool = "listChanged" until V2025_11_25,
    }
}

model! {
    /// The client lets servers use its model.
    pub struct SamplingCapability {} optional {
        /// `includeContext` may be used.
        context: JsonObject = "context" since V2025_11_25,
        /// `tools` and `toolChoice` may be used.
        tools: JsonObject = "tools" since V2025_11_25,
    }
}

model! {
    /// The client lets servers ask the user.
    pub struct ElicitationCapability {} optional {
        /// With a form.
        form: JsonObject = "form" since V2025_11_25,
        /// By opening a URL.
        url: JsonObject = "url" since V2025_11_25,
    }
}

impl ElicitationCapability {
    /// Whether the user can be asked with a form: so it is said, or nothing is said.
    pub fn asks_by_form(&self) -> bool {
        self.form.is_some() || self.url.is_none()
    }

    /// Whether the user can be sent to a URL.
    pub fn asks_by_url(&self) -> bool {
        self.url.is_some()
    }
}

model! {
    /// The server has tools.
    pub struct ToolsCapability {} optional {
        /// It tells when the list changes.
        list_changed: bool = "listChanged",
    }
}

model! {
    /// The server has prompts.
    pub struct PromptsCapability {} optional {
        /// It tells when the list changes.
        list_changed: bool = "listChanged",
    }
}

model! {
    /// The server has resources.
    pub struct ResourcesCapability {} optional {
        /// It tells when a resource changes.
        subscribe: bool = "subscribe",
        /// It tells when the list changes.
        list_changed: bool = "listChanged",
    }
}
