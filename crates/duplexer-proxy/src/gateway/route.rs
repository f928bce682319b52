//! Which server of a gateway a request is for, and the request in that server's own names.

use std::sync::Arc;

use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_types::error::ErrorCode;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::task;
use duplexer_types::text::shown;

use super::Shared;
use super::backend::Backend;
use super::lists::List;
use crate::translate::members;

/// A server, and the request for it.
pub(crate) struct Routed {
    pub(crate) backend: Arc<Backend>,
    pub(crate) message: Message,
}

fn text(members: &JsonObject, name: &str) -> Option<String> {
    members.get(name)?.decode().ok()
}

fn unknown(kind: &str, name: &str) -> McpError {
    let text = format!("No server of this gateway has the {kind} '{}'", shown(name));
    McpError::new(ErrorCode::INVALID_PARAMS, text)
}

impl Shared {
    /// Finds the server of a tool or prompt by its name.
    fn named(&self, list: List, name: &str) -> Option<(Arc<Backend>, String)> {
        self.backends().into_iter().find_map(|backend| {
            let own = backend.settings().own_name(name)?.to_owned();
            backend.list(list).iter().any(|item| item.name == own).then_some((backend, own))
        })
    }

    /// Finds the server of a resource: the first that lists it, or whose template begins like it.
    pub(crate) fn owner(&self, uri: &str) -> Option<Arc<Backend>> {
        let backends = self.backends();
        let lists = |backend: &Backend| backend.list(List::Resources).iter().any(|item| item.name == uri);
        if let Some(backend) = backends.iter().find(|backend| lists(backend)) {
            return Some(Arc::clone(backend));
        }
        let begins = |backend: &Backend| {
            let templates = backend.list(List::Templates);
            let matching = templates.iter().filter_map(|item| {
                let beginning = item.name.split('{').next().unwrap_or_default();
                (uri == item.name || uri.starts_with(beginning)).then_some(beginning.len())
            });
            matching.max()
        };
        let mut found: Option<(usize, &Arc<Backend>)> = None;
        for backend in backends.iter().filter(|backend| backend.settings().offers(uri)) {
            if let Some(length) = begins(backend)
                && found.is_none_or(|(longest, _)| length > longest)
            {
                found = Some((length, backend));
            }
        }
        found.map(|(_, backend)| Arc::clone(backend))
    }

    /// Routes a request that names a tool or a prompt.
    pub(crate) fn by_name(&self, list: List, kind: &str, message: &Message) -> Result<Routed, McpError> {
        let mut members = members(message)?;
        let name = text(&members, "name").unwrap_or_default();
        let (backend, own) = self.named(list, &name).ok_or_else(|| unknown(kind, &name))?;
        members.insert("name", Json::from(own));
        Ok(Routed { backend, message: with_members(message, members) })
    }

    /// Routes a request that names a resource.
    pub(crate) fn by_uri(&self, message: &Message) -> Result<Routed, McpError> {
        let members = members(message)?;
        let uri = text(&members, "uri").unwrap_or_default();
        let not_found = || {
            let error =
                McpError::new(ErrorCode::RESOURCE_NOT_FOUND, format!("Resource not found: {}", shown(&uri)));
            error.with_data(serde_json::json!({ "uri": uri }))
        };
        let backend = self.owner(&uri).ok_or_else(not_found)?;
        Ok(Routed { backend, message: with_members(message, members) })
    }

    /// Routes a request for completions, which names a prompt or a template.
    pub(crate) fn by_reference(&self, message: &Message) -> Result<Routed, McpError> {
        let mut members = members(message)?;
        let mut reference: JsonObject =
            members.get("ref").and_then(|reference| reference.decode().ok()).unwrap_or_default();
        let backend = match (text(&reference, "name"), text(&reference, "uri")) {
            (Some(name), _) => {
                let (backend, own) =
                    self.named(List::Prompts, &name).ok_or_else(|| unknown("prompt", &name))?;
                reference.insert("name", Json::from(own));
                backend
            }
            (None, Some(uri)) => self.owner(&uri).ok_or_else(|| unknown("resource template", &uri))?,
            (None, None) => return Err(McpError::InvalidParams("`ref` names nothing".into())),
        };
        members.insert("ref", Json::from(reference));
        Ok(Routed { backend, message: with_members(message, members) })
    }
}

/// Returns the message with other params. A gateway passes no tasks on: their ids do not name a server.
pub(crate) fn with_members(message: &Message, mut members: JsonObject) -> Message {
    if message.meta().is_some_and(|meta| meta.contains(task::EXTENSION)) {
        remove_tasks(&mut members);
    }
    members.remove("task");
    message.clone().with_params(Some(Json::from(members).as_str().into()))
}

fn remove_tasks(members: &mut JsonObject) {
    let object = |json: &Json| json.decode::<JsonObject>().ok();
    let Some(mut meta) = members.get("_meta").and_then(object) else { return };
    let Some(mut capabilities) = meta.get(key::CLIENT_CAPABILITIES).and_then(object) else { return };
    let Some(mut extensions) = capabilities.get("extensions").and_then(object) else { return };
    extensions.remove(task::EXTENSION);
    capabilities.insert("extensions", Json::from(extensions));
    meta.insert(key::CLIENT_CAPABILITIES, Json::from(capabilities));
    members.insert("_meta", Json::from(meta));
}
