//! Messages of one era in the form of the other.

use std::borrow::Cow;

use bytestring::ByteString;
use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;
use duplexer_server::Outcome;
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::lifecycle::Implementation;
use duplexer_types::meta::key;
use duplexer_types::methods::{self, Method, Request};

use crate::bridge::tasks::Wish;
use crate::failure;

/// Members of the params that only input rounds have.
pub(crate) const INPUT_RESPONSES: &str = "inputResponses";
pub(crate) const REQUEST_STATE: &str = "requestState";
/// Member of the params that asks for a task (2025-11-25).
const TASK: &str = "task";

/// Keys of `_meta` that are the envelope.
const ENVELOPE: [&str; 4] =
    [key::PROTOCOL_VERSION, key::CLIENT_INFO, key::CLIENT_CAPABILITIES, key::LOG_LEVEL];

/// Returns the params of a message as they are.
pub(crate) fn params_of(message: &Message) -> Result<Option<Json>, McpError> {
    message.params().map(Json::parse).transpose().map_err(|error| McpError::InvalidParams(error.into()))
}

/// Returns the method of a message for a request of our own.
pub(crate) fn method_of(message: &Message) -> Cow<'static, str> {
    match message.known() {
        Some(method) => method.name().into(),
        None => message.method().to_owned().into(),
    }
}

/// Returns the members of the params of a message.
pub(crate) fn members(message: &Message) -> Result<JsonObject, McpError> {
    serde_json::from_str(message.params().unwrap_or("{}"))
        .map_err(|error| McpError::InvalidParams(error.into()))
}

fn without_meta_keys(members: &mut JsonObject, keys: &[&str]) {
    let Some(Ok(mut meta)) = members.get("_meta").map(Json::decode::<JsonObject>) else { return };
    for key in keys {
        meta.remove(key);
    }
    if meta.is_empty() {
        members.remove("_meta");
    } else {
        members.insert("_meta", Json::from(meta));
    }
}

/// Returns params of the envelope era for a handshake server: without the envelope and without input rounds, and with the
/// request for a task.
pub(crate) fn params_for_handshake(message: &Message, wish: Wish) -> Result<Json, McpError> {
    let mut members = members(message)?;
    match wish {
        Wish::Task => drop(members.insert(TASK, Json::object())),
        Wish::Result => drop(members.remove(TASK)),
    }
    members.remove(INPUT_RESPONSES);
    members.remove(REQUEST_STATE);
    without_meta_keys(&mut members, &ENVELOPE);
    Ok(Json::from(members))
}

/// Returns params of the handshake era for an envelope server. The session adds the envelope.
pub(crate) fn params_for_envelope(message: &Message) -> Result<JsonObject, McpError> {
    let mut members = members(message)?;
    members.remove(TASK);
    Ok(members)
}

/// Returns the result of a handshake server for a client of the envelope era. The kernel adds `resultType` and freshness.
pub(crate) fn result_for_envelope(text: &str, server: Option<&Implementation>) -> Result<Outcome, McpError> {
    let mut members: JsonObject = serde_json::from_str(text).map_err(invalid_result)?;
    if let Some(server) = server {
        let mut meta: JsonObject =
            members.get("_meta").and_then(|meta| meta.decode().ok()).unwrap_or_default();
        meta.insert(key::SERVER_INFO, Json::encode(server).map_err(McpError::internal)?);
        members.insert("_meta", Json::from(meta));
    }
    Outcome::custom(&members)
}

/// Returns the result of an envelope server for a client of the handshake era. The kernel gives it the shape of the revision.
pub(crate) fn result_for_handshake(method: Option<Method>, text: &str) -> Result<Outcome, McpError> {
    match method {
        Some(Method::ToolsList) => typed::<methods::ToolsList>(text),
        Some(Method::ToolsCall) => typed::<methods::ToolsCall>(text),
        Some(Method::ResourcesList) => typed::<methods::ResourcesList>(text),
        Some(Method::ResourcesTemplatesList) => typed::<methods::ResourcesTemplatesList>(text),
        Some(Method::ResourcesRead) => typed::<methods::ResourcesRead>(text),
        Some(Method::PromptsList) => typed::<methods::PromptsList>(text),
        Some(Method::PromptsGet) => typed::<methods::PromptsGet>(text),
        Some(Method::CompletionComplete) => typed::<methods::CompletionComplete>(text),
        _ => {
            let mut members: JsonObject = serde_json::from_str(text).map_err(invalid_result)?;
            for name in ["resultType", "ttlMs", "cacheScope"] {
                members.remove(name);
            }
            without_meta_keys(&mut members, &[key::SERVER_INFO]);
            Ok(Outcome::raw(Json::from(members).as_str().to_owned()))
        }
    }
}

fn typed<M: Request>(text: &str) -> Result<Outcome, McpError> {
    serde_json::from_str::<M::Result>(text).map(Outcome::of).map_err(invalid_result)
}

fn invalid_result(error: serde_json::Error) -> McpError {
    failure::of_call(duplexer_core::error::CallError::Unexpected(error))
}

/// Returns params or a result without line breaks: some transports end messages with them. Inside of strings they are escaped.
pub(crate) fn one_line(text: ByteString) -> ByteString {
    if memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none() {
        return text;
    }
    text.replace(['\n', '\r'], " ").into()
}
