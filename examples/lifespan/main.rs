//! A lifespan: the state that handlers share is created when the server starts and released when it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use duplexer::Context;
use duplexer::prelude::*;
use duplexer::testing::TestClient;
use duplexer_examples::{call, same, text};
use serde_json::json;

/// A stand-in for a connection pool.
struct Database {
    queries: AtomicUsize,
    open: Arc<AtomicBool>,
}

/// Queries the database.
#[tool]
async fn query(cx: Context<Database>) -> usize {
    cx.state().queries.fetch_add(1, Ordering::SeqCst) + 1
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let open = Arc::new(AtomicBool::new(false));
    let shared = Arc::clone(&open);
    let server = Server::builder("database", "1.0.0")
        .lifespan(move || {
            let open = Arc::clone(&shared);
            async move {
                open.store(true, Ordering::SeqCst);
                Ok::<_, BoxError>(Database { queries: AtomicUsize::new(0), open })
            }
        })
        .on_shutdown(|database| async move { database.open.store(false, Ordering::SeqCst) })
        .tool(query)
        .build()?;
    same(open.load(Ordering::SeqCst), false)?;
    let client = TestClient::new(&server).await?;
    same(open.load(Ordering::SeqCst), true)?;
    same(text(&call(&client, "query", json!({})).await?), "1")?;
    same(text(&call(&client, "query", json!({})).await?), "2")?;
    client.close().await;
    same(open.load(Ordering::SeqCst), false)
}
