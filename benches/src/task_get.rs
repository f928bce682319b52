//! Tasks in memory, at the level of the kernel: a finished one that is looked up, and many that wait.

use std::future::pending;

use duplexer::prelude::*;
use duplexer::tasks::{TaskLimits, TaskPolicy, Tasks};
use duplexer_core::dispatch::Message;
use duplexer_server::driver::serve_envelope;
use duplexer_server::{Caller, RunningServer};
use duplexer_types::task::CreateTaskResult;
use duplexer_types::version::ProtocolVersion;

use crate::kernel::{Kernel, call_context};

/// Members of the `_meta` of a client with tasks.
const META: &str = concat!(
    r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench-client","version":"1.0.0"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#,
);

/// Runs a task to its end and returns the kernel that is asked for it.
pub fn finished() -> Option<Kernel> {
    let server = server()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let id = runtime.block_on(async {
        let running = server.start().await.ok()?;
        let id = start(&running, "echo").await?;
        // Returns when the task has ended.
        running.shutdown().await;
        Some(id)
    })?;
    let params = format!(r#""taskId":"{id}""#);
    Kernel::with_meta(&server, ProtocolVersion::LATEST_ENVELOPE, ("tasks/get", &params), META)
}

/// Builds a server with a tool that ends and one that waits.
pub fn server() -> Option<Server> {
    let required = || TaskPolicy::new().required();
    let echo = Tool::new("echo", || async { "The quick brown fox jumps over the lazy dog" }).task(required());
    let wait = Tool::new("wait", || async { pending::<()>().await }).task(required());
    let mut limits = TaskLimits::default();
    limits.per_owner = limits.total;
    let tasks = Tasks::new().limits(limits).running(usize::MAX);
    Server::builder("bench-server", "1.0.0").extend(tasks).tool(echo).tool(wait).build().ok()
}

/// Starts a task and returns its id.
pub async fn start(running: &RunningServer, tool: &str) -> Option<String> {
    let params = format!(r#"{{"name":"{tool}","_meta":{{{META}}}}}"#);
    let message = Message::new("tools/call", Some(params.into()));
    let answer = serve_envelope(running, call_context(), message, None, Caller::default()).await;
    let created = answer.ok()?.into_outcome().into_typed::<CreateTaskResult>().ok()?;
    Some(created.task.task_id)
}
