//! Runs the work of a task again, after the node that ran it is gone: the same tool, arguments and identity, without a request.

use std::sync::Arc;

use bytestring::ByteString;
use duplexer_core::dispatch::{CallContext, Channel, Message};
use duplexer_core::error::McpError;
use duplexer_core::transport::{Headers, TransportContext};
use duplexer_types::json::{Json, JsonObject};
use duplexer_types::meta::key;
use duplexer_types::methods::Method;
use duplexer_types::version::ProtocolVersion;

use super::call::TaskCall;
use super::engine::{Engine, Work};
use super::record::TaskRecord;
use crate::kernel::connection::{ClientProfile, Connection};
use crate::kernel::context::{Context, Scope};
use crate::kernel::handler::fail;
use crate::kernel::runner;
use crate::registry::RunningServer;

/// Returns the call and its future.
pub(super) fn start(
    engine: &Arc<Engine>,
    server: &RunningServer,
    record: &TaskRecord,
) -> (Arc<TaskCall>, Work) {
    let version = record.call.version.parse().unwrap_or(ProtocolVersion::LATEST_ENVELOPE);
    let client = ClientProfile::new(record.call.client_info.clone(), record.call.capabilities.clone());
    let connection = Arc::new(Connection::ready(version, client));
    let call = TaskCall::again(engine, record, &connection);
    let work = match message(record) {
        Ok(message) => {
            let transport = Arc::new(TransportContext::exchange("task", Headers::default()));
            let channel = Arc::clone(&call) as Arc<dyn Channel>;
            let request = CallContext::new(Some(0_i64.into()), transport, channel);
            let principal = record.owner.as_ref().map(|owner| Arc::new(owner.principal()));
            let scope = Scope::new(request, connection, server.clone(), principal, Arc::new(message));
            let cx = Context::new(Arc::new(scope.with_task(Arc::clone(&call))));
            runner::request(cx).boxed()
        }
        Err(error) => fail(McpError::internal(error)),
    };
    (call, work)
}

/// Returns the call as a message, with the progress token of the original one.
fn message(record: &TaskRecord) -> Result<Message, serde_json::Error> {
    let mut params: JsonObject = JsonObject::new()
        .with("name", Json::from(record.call.tool.as_str()))
        .with("arguments", record.call.arguments.clone());
    if let Some(token) = &record.call.progress_token {
        let meta: JsonObject = JsonObject::new().with(key::PROGRESS_TOKEN, Json::encode(token)?);
        params.insert("_meta", Json::encode(&meta)?);
    }
    let text = serde_json::to_string(&params)?;
    Ok(Message::new(Method::ToolsCall.name(), Some(ByteString::from(text))))
}
