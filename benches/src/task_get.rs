//! `tasks/get` of a finished task in memory, at the level of the kernel, to be compared with an echo.

use std::sync::Arc;

use duplexer::prelude::*;
use duplexer::tasks::{TaskPolicy, Tasks};
use duplexer_core::dispatch::Message;
use duplexer_server::Server;
use duplexer_types::task::CreateTaskResult;
use duplexer_types::version::ProtocolVersion;

use crate::kernel::{Kernel, call_context};

/// Capabilities of a client with tasks, in the `_meta` of a request.
const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-client","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
);

/// Runs a task to its end and returns the kernel that is asked for it.
pub fn finished() -> Option<Kernel> {
    let tasks = Tasks::new();
    let server = server(&tasks)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let id = runtime.block_on(async {
        let running = server.start().await.ok()?;
        let message =
            Message::new("tools/call", Some(format!(r#"{{"name":"echo","_meta":{{{META}}}}}"#).into()));
        let answer = duplexer_server::driver::serve_envelope(
            &running,
            call_context(),
            Arc::new(message),
            None,
            duplexer_server::Caller::default(),
        );
        let outcome = answer.await.ok()?.into_outcome();
        // Ends when the task has ended.
        running.shutdown().await;
        Some(outcome.into_typed::<CreateTaskResult>().ok()?.task.task_id)
    })?;
    let params = format!(r#""taskId":"{id}""#);
    Kernel::with_meta(&server, ProtocolVersion::LATEST_ENVELOPE, ("tasks/get", &params), META)
}

fn server(tasks: &Tasks) -> Option<Server> {
    let echo = Tool::new("echo", || async { "The quick brown fox jumps over the lazy dog" });
    let echo = echo.task(TaskPolicy::new().required());
    Server::builder("bench-server", "1.0.0").extend(tasks.clone()).tool(echo).build().ok()
}
