//! Progress and cancellation: a tool reports its progress, and stops when the client cancels the call.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use duplexer_examples::{clients, same};
use serde_json::json;

/// Counts up, with a pause between steps.
#[tool]
async fn count(cx: Context<Arc<AtomicUsize>>, to: u32, #[default(0)] pause: u64) -> u32 {
    let _gone = CountOnDrop(Arc::clone(cx.state()));
    for step in 1..=to {
        cx.progress(step).total(to).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    to
}

/// Counts the dropped futures: a call's future is dropped both when it returns and when it is cancelled.
struct CountOnDrop(Arc<AtomicUsize>);

impl Drop for CountOnDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let ended = Arc::new(AtomicUsize::new(0));
    let server = Server::builder("counter", "1.0.0").state(Arc::clone(&ended)).tool(count).build()?;
    for client in clients(&server).await? {
        let before = ended.load(Ordering::SeqCst);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&seen);
        client
            .call_tool("count", json!({"to": 3}))
            .on_progress(move |report| {
                if let Ok(mut seen) = reports.lock() {
                    seen.push(report.progress);
                }
            })
            .await?;
        let seen = seen.lock().map_err(|_| "poisoned")?.clone();
        same(seen, vec![1.0, 2.0, 3.0])?;
        same(ended.load(Ordering::SeqCst), before + 1)?;
        let slow = client.call_tool("count", json!({"to": 1000, "pause": 1000}));
        same(slow.timeout(Duration::from_millis(50)).await.is_err(), true)?;
        while ended.load(Ordering::SeqCst) < before + 2 {
            tokio::task::yield_now().await;
        }
        client.close().await;
    }
    Ok(())
}
