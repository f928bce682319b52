//! Questions of tasks of 2025-11-25, which are requests to the client.

use std::sync::atomic::AtomicUsize;

use bytestring::ByteString;
use duplexer_core::dispatch::{NoChannel, NotifyFuture, Outbound, OutboundRequest};
use duplexer_core::error::CallError;
use duplexer_types::jsonrpc::Body;
use duplexer_types::meta::key;
use duplexer_types::tool::CallToolResult;

use super::*;
use crate::Context;
use crate::kernel::connection::Negotiated;
use crate::tool::ToolError;

/// The stream of a session, which its client opens late.
#[derive(Default)]
struct OpenedLate(AtomicUsize);

impl Outbound for OpenedLate {
    fn request(&self, request: OutboundRequest) -> BoxFuture<'_, Result<ByteString, CallError>> {
        let attempt = self.0.fetch_add(1, Ordering::SeqCst);
        assert!(request.meta.get(key::RELATED_TASK).is_some(), "it names its task");
        Box::pin(async move {
            if attempt < 3 {
                return NoChannel.request(request).await;
            }
            Ok(ByteString::from_static(r#"{"action":"accept","content":{"years":7}}"#))
        })
    }

    fn notify(&self, method: &str, params: Option<&dyn Body>) -> NotifyFuture {
        NoChannel.notify(method, params)
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Age {
    years: u8,
}

/// TSK-66: the question may come on any stream. A client that polls the state, and never asks for the result, receives it
/// on the stream of its session, as soon as that is open.
#[tokio::test(start_paused = true)]
async fn a_client_that_only_polls_is_asked_on_the_stream_of_its_session() {
    let asks = |cx: Context| async move {
        let Age { years } = cx.elicit("age", "How old?").await?.accepted()?;
        Ok::<_, ToolError>(format!("{years} years"))
    };
    let tool = Tool::new("asks", asks).task(TaskPolicy::new());
    let server = Server::builder("jobs", "0").extend(Tasks::new()).tool(tool);
    let running = server.build().unwrap().start().await.unwrap();
    let (version, stream) = (ProtocolVersion::LATEST_HANDSHAKE, Arc::new(OpenedLate::default()));
    let connection = Connection::handshake(version, Arc::clone(&stream) as Arc<dyn Outbound>);
    let capabilities: ClientCapabilities = serde_json::from_str(r#"{"elicitation":{}}"#).unwrap();
    connection.agree(Negotiated::new(version, ClientProfile::new(None, Some(capabilities))));
    connection.set_initialized();
    let connection = Arc::new(connection);
    let params = r#"{"name":"asks","task":{}}"#;
    let created = testing::call(&running, &connection, Method::ToolsCall, params).await.unwrap();
    let id = created.into_typed::<CreateTaskResult>().unwrap().task.task_id;
    assert_eq!(end(&running, &connection, &id).await, TaskStatus::Completed);
    assert_eq!(stream.0.load(Ordering::SeqCst), 4);
    let outcome = about(&running, &connection, Method::TasksResult, &id).await.unwrap();
    assert_eq!(outcome.into_typed::<CallToolResult>().unwrap().to_text(), "7 years");
}
