//! Middleware: code around every message. This one counts messages and rejects the calls of one tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use duplexer::Context;
use duplexer::dispatch::Message;
use duplexer::middleware::Next;
use duplexer::prelude::*;
use duplexer::server::Outcome;
use duplexer::types::error::ErrorCode;
use duplexer_examples::{call, clients, same};
use serde_json::json;

#[tool]
async fn open() -> &'static str {
    "come in"
}

#[tool]
async fn closed() -> &'static str {
    "never said"
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&seen);
    let guard = move |cx: Context, message: Message, next: Next| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            if message.params().is_some_and(|params| params.contains("\"closed\"")) {
                return Err::<Outcome, _>(McpError::new(ErrorCode(-32001), "Closed today"));
            }
            next.run(cx, message).await
        }
    };
    let server = Server::builder("door", "1.0.0").middleware(guard).tool(open).tool(closed).build()?;
    for client in clients(&server).await? {
        same(call(&client, "open", json!({})).await.is_ok(), true)?;
        same(
            call(&client, "closed", json!({})).await.map_err(|error| error.to_string()).err(),
            Some("Closed today".to_owned()),
        )?;
        client.close().await;
    }
    same(seen.load(Ordering::SeqCst) >= 6, true)
}
