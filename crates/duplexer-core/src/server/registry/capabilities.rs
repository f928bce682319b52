//! What a server can do, derived from what is registered.

use duplexer_types::capabilities::{
    PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use duplexer_types::json::Members;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::version::{Era, ProtocolVersion};

use super::Registry;

/// Which lists a server of the handshake era promises to report changes of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotificationOptions {
    /// The list of prompts.
    pub prompts_changed: bool,
    /// The list of resources.
    pub resources_changed: bool,
    /// The list of tools.
    pub tools_changed: bool,
}

impl NotificationOptions {
    /// Changes of all three lists.
    pub fn all() -> Self {
        Self { prompts_changed: true, resources_changed: true, tools_changed: true }
    }
}

pub(super) fn derive(server: &Registry, version: ProtocolVersion) -> ServerCapabilities {
    let handles = |method: Method| server.handlers.spec(method).is_some();
    // In the envelope era changes reach whoever listens; whether anybody can follows from one handler.
    let listens = handles(Method::SubscriptionsListen);
    let (changes, subscribe) = match version.era() {
        Era::Handshake => (server.advertised.changes, handles(Method::ResourcesSubscribe)),
        Era::Envelope if listens => (NotificationOptions::all(), true),
        Era::Envelope => (NotificationOptions::default(), false),
    };
    let mut derived = ServerCapabilities::new();
    if handles(Method::PromptsList) {
        derived = derived.prompts(PromptsCapability::new().list_changed(changes.prompts_changed));
    }
    if handles(Method::ResourcesList) {
        let resources = ResourcesCapability::new().subscribe(subscribe);
        derived = derived.resources(resources.list_changed(changes.resources_changed));
    }
    if handles(Method::ToolsList) {
        derived = derived.tools(ToolsCapability::new().list_changed(changes.tools_changed));
    }
    if handles(Method::LoggingSetLevel) {
        derived = derived.logging(Members::new());
    }
    if handles(Method::CompletionComplete) {
        derived = derived.completions(Members::new());
    }
    let given = |members: &Members| (!members.is_empty()).then(|| members.clone());
    derived.experimental = given(&server.advertised.experimental);
    derived.extensions = given(&server.advertised.extensions);
    derived
}

/// The methods that hints about freshness can be given for.
pub(super) fn cacheable() -> impl Iterator<Item = Method> {
    METHODS.iter().map(|row| row.method).filter(|method| method.is_cacheable())
}
