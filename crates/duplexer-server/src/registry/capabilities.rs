//! Derives the capabilities of a server from its registrations.

use duplexer_types::capabilities::{
    PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability,
};
use duplexer_types::json::JsonObject;
use duplexer_types::methods::{METHODS, Method};
use duplexer_types::version::{Era, ProtocolVersion};

use super::Registry;
use crate::features::tasks;

/// The lists whose changes a server of the handshake era reports.
///
/// ```
/// use duplexer::server::NotificationOptions;
///
/// let mut reported = NotificationOptions::default();
/// reported.tools_changed = true;
/// let server = duplexer::Server::builder("archive", "1.0.0").notification_options(reported).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
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
    /// Returns the options with all three lists.
    pub fn all() -> Self {
        Self { prompts_changed: true, resources_changed: true, tools_changed: true }
    }
}

impl std::ops::BitOrAssign for NotificationOptions {
    fn bitor_assign(&mut self, other: Self) {
        self.prompts_changed |= other.prompts_changed;
        self.resources_changed |= other.resources_changed;
        self.tools_changed |= other.tools_changed;
    }
}

pub(super) fn derive(server: &Registry, version: ProtocolVersion) -> ServerCapabilities {
    let handles = |method: Method| server.handlers.spec(method).is_some();
    // In the envelope era changes reach the streams of listeners, so one handler decides.
    let listens = handles(Method::SubscriptionsListen) && !server.advertised.tasks_only;
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
        derived = derived.logging(JsonObject::new());
    }
    if handles(Method::CompletionComplete) {
        derived = derived.completions(JsonObject::new());
    }
    let given = |members: &JsonObject| (!members.is_empty()).then(|| members.clone());
    derived.experimental = given(&server.advertised.experimental);
    if server.tasks.is_some() {
        derived.tasks = Some(tasks::capability());
    }
    let declared = server.advertised.extensions.iter().filter(|(_, it)| it.window.contains(version));
    derived.extensions = given(&declared.map(|(id, it)| (id.clone(), it.settings.clone())).collect());
    derived
}

/// Returns the methods that freshness hints are valid for.
pub(crate) fn cacheable() -> impl Iterator<Item = Method> {
    METHODS.iter().map(|row| row.method).filter(|method| method.is_cacheable())
}

#[cfg(test)]
mod tests {
    use duplexer_types::json::Json;
    use duplexer_types::lifecycle::EmptyResult;
    use duplexer_types::page::PaginatedParams;
    use duplexer_types::prompt::ListPromptsResult;
    use duplexer_types::resource::{ListResourcesResult, SubscribeParams};
    use duplexer_types::tool::ListToolsResult;
    use duplexer_types::version::Window;
    use duplexer_types::{logging, methods, subscription};
    use serde_json::{Value, json};

    use super::*;
    use crate::builder::ServerBuilder;
    use crate::registry::Server;
    use duplexer_core::error::McpError;

    fn lists() -> ServerBuilder<()> {
        Server::builder("s", "0")
            .on(methods::ToolsList, |_: PaginatedParams| async {
                Ok::<_, McpError>(ListToolsResult::new(vec![]))
            })
            .on(methods::PromptsList, |_: PaginatedParams| async {
                Ok::<_, McpError>(ListPromptsResult::new(vec![]))
            })
            .on(methods::ResourcesList, |_: PaginatedParams| async {
                Ok::<_, McpError>(ListResourcesResult::new(vec![]))
            })
    }

    fn check(builder: ServerBuilder<()>, version: ProtocolVersion, expected: &Value) {
        let derived = builder.build().unwrap().capabilities(version);
        let mut text = Vec::new();
        duplexer_types::wire::write_params(&mut text, &derived, version, None).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), *expected, "{version}");
    }

    /// SRV-05, EXF-D1: from handlers and options; `listChanged` is present even when it is false; extensions are declared
    /// in the revisions that they name.
    #[test]
    fn a_handshake_server_can_do_what_it_handles() {
        let check = |builder, expected| check(builder, ProtocolVersion::LATEST_HANDSHAKE, &expected);
        check(Server::builder("s", "0"), json!({}));
        let quiet = json!({ "listChanged": false });
        let resources = json!({ "listChanged": false, "subscribe": false });
        check(lists(), json!({ "tools": quiet, "prompts": quiet, "resources": resources }));
        let reported = json!({ "listChanged": true });
        let all = lists()
            .notification_options(NotificationOptions::all())
            .extension("a.b/c", Json::object())
            .extension_in("a.b/d", json!({ "e": 1 }), Window::ALWAYS)
            .extension_in("a.b/old", Json::object(), Window::until(ProtocolVersion::V2025_06_18))
            .experimental("x", json!({ "y": 1 }))
            .on(methods::ResourcesSubscribe, |_: SubscribeParams| async {
                Ok::<_, McpError>(EmptyResult::new())
            })
            .on(methods::LoggingSetLevel, |_: logging::SetLevelParams| async {
                Ok::<_, McpError>(EmptyResult::new())
            });
        let expected = json!({
            "tools": reported, "prompts": reported, "resources": { "listChanged": true, "subscribe": true },
            "logging": {}, "experimental": { "x": { "y": 1 } },
            "extensions": { "a.b/d": { "e": 1 } },
        });
        check(all, expected);
    }

    /// SRV-06: changes reach listeners, so one handler decides; extensions are listed if there are any.
    #[test]
    fn an_envelope_server_reports_changes_when_it_serves_listeners() {
        let check = |builder, expected| check(builder, ProtocolVersion::LATEST_ENVELOPE, &expected);
        let all = lists().notification_options(NotificationOptions::all());
        let quiet = json!({ "listChanged": false });
        let resources = json!({ "listChanged": false, "subscribe": false });
        check(all, json!({ "tools": quiet, "prompts": quiet, "resources": resources }));
        let listens = lists().extension("a.b/c", Json::object()).on(
            methods::SubscriptionsListen,
            |_: subscription::SubscriptionsListenParams| async {
                Ok::<_, McpError>(subscription::SubscriptionsListenResult::new())
            },
        );
        let reported = json!({ "listChanged": true });
        let expected = json!({
            "tools": reported, "prompts": reported, "resources": { "listChanged": true, "subscribe": true },
            "extensions": { "a.b/c": {} },
        });
        check(listens, expected);
    }
}
