//! Tasks of one era in the form of the other: the extension of the envelope era, and the experiment of 2025-11-25.
//!
//! `experiment` follows the tasks of a handshake server for a client of the envelope era, `extension` those of an envelope
//! server for a client of 2025-11-25. Ids are those of the server, so that a task can be resumed by another session.

mod experiment;
mod extension;
mod finished;
mod followed;

use std::time::Duration;

use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_types::capabilities::ServerCapabilities;
use duplexer_types::input::{InputRequest, InputResponse};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use duplexer_types::task::{EXTENSION, Task};
use duplexer_types::version::{Era, ProtocolVersion, feature};

use crate::failure;

pub(crate) use experiment::{Wish, created, request as for_envelope_client, wish};
pub(crate) use extension::{Tasked, request as for_handshake_client};
pub(crate) use finished::Finished;
pub(crate) use followed::Followed;

/// Polling interval of a task whose server names none, and the bounds of those that servers name.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(60);

/// Returns whether a message is a request about a task.
pub(crate) fn concerns(method: Option<Method>) -> bool {
    matches!(
        method,
        Some(
            Method::TasksGet
                | Method::TasksUpdate
                | Method::TasksCancel
                | Method::TasksResult
                | Method::TasksList
        )
    )
}

/// Returns whether the server of a session runs tools as tasks, in the form of its era.
pub(crate) fn are_offered(capabilities: &ServerCapabilities, version: ProtocolVersion) -> bool {
    match version.era() {
        Era::Envelope => {
            capabilities.extensions.as_ref().is_some_and(|extensions| extensions.get(EXTENSION).is_some())
        }
        Era::Handshake => {
            let calls = || {
                let requests: JsonObject = capabilities.tasks.as_ref()?.get("requests")?.decode().ok()?;
                let tools: JsonObject = requests.get("tools")?.decode().ok()?;
                tools.get("call").cloned()
            };
            version.has(feature::TASK_EXPERIMENT) && calls().is_some()
        }
    }
}

/// Returns the capabilities of a server with its tasks in the form of the other era, for clients of `version`.
pub(crate) fn translated(
    declared: &ServerCapabilities,
    server: ProtocolVersion,
    version: ProtocolVersion,
) -> ServerCapabilities {
    let are_offered = are_offered(declared, server);
    let mut capabilities = declared.clone();
    let mut extensions = capabilities.extensions.take().unwrap_or_default();
    extensions.remove(EXTENSION);
    capabilities.tasks = None;
    match version.era() {
        Era::Envelope if are_offered => {
            extensions.insert(EXTENSION, Json::object());
        }
        Era::Handshake if are_offered && version.has(feature::TASK_EXPERIMENT) => {
            let call: JsonObject = JsonObject::new().with("call", Json::object());
            let requests: JsonObject = JsonObject::new().with("tools", Json::from(call));
            // Not listed: the server cannot list its tasks.
            let tasks = JsonObject::new().with("cancel", Json::object());
            capabilities.tasks = Some(tasks.with("requests", Json::from(requests)));
        }
        _ => {}
    }
    capabilities.extensions = Some(extensions).filter(|extensions| !extensions.is_empty());
    capabilities
}

/// Returns whether a request of the envelope era declares that its client has tasks.
fn is_declared(message: &Message) -> bool {
    let declared = || {
        let meta = message.meta().filter(|meta| meta.contains(EXTENSION))?;
        let meta: JsonObject = serde_json::from_str(meta).ok()?;
        let capabilities: JsonObject = meta.get(key::CLIENT_CAPABILITIES)?.decode().ok()?;
        let extensions: JsonObject = capabilities.get("extensions")?.decode().ok()?;
        extensions.get(EXTENSION).cloned()
    };
    declared().is_some()
}

/// Returns the id of the task that a request names.
fn id_of(message: &Message) -> Result<String, McpError> {
    let params: duplexer_types::task::GetTaskParams =
        message.decode().map_err(|error| McpError::InvalidParams(error.into()))?;
    Ok(params.task_id)
}

/// Returns the params that name a task.
fn naming(id: &str) -> Json {
    Json::from(serde_json::json!({ "taskId": id }))
}

/// Reads a result of the server.
fn read<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, McpError> {
    let unexpected = |error| failure::of_call(duplexer_core::error::CallError::Unexpected(error));
    serde_json::from_str(text).map_err(unexpected)
}

/// Returns the result of a tool without, or with, the mark that it belongs to a task (2025-11-25).
fn marked(text: &str, id: Option<&str>) -> Result<JsonObject, McpError> {
    let mut members: JsonObject = read(text)?;
    let mut meta: JsonObject = members.get("_meta").and_then(|meta| meta.decode().ok()).unwrap_or_default();
    match id {
        Some(id) => drop(meta.insert(key::RELATED_TASK, naming(id))),
        None => drop(meta.remove(key::RELATED_TASK)),
    }
    if meta.is_empty() {
        members.remove("_meta");
    } else {
        members.insert("_meta", Json::from(meta));
    }
    Ok(members)
}

/// Returns whether a response is of the kind that a request asks for.
fn fits(request: &InputRequest, response: &InputResponse) -> bool {
    matches!(
        (request, response),
        (InputRequest::Elicit(_), InputResponse::Elicit(_))
            | (InputRequest::CreateMessage(_), InputResponse::CreateMessage(_))
            | (InputRequest::ListRoots, InputResponse::ListRoots(_))
    )
}

/// Returns how long to wait before a task is read again.
fn interval(task: &Task) -> Duration {
    task.poll_interval_ms.map_or(DEFAULT_INTERVAL, Duration::from_millis).clamp(SHORTEST, LONGEST)
}
