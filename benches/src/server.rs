//! The measured server, written as a user would write it.
//!
//! It offers the same as comparable servers of other SDKs: a few small tools, fifty filler tools for a long list, and a
//! resource of any size.

use std::time::Duration;

use duplexer::Context;
use duplexer::prelude::*;
use duplexer::server::subscriptions::MemoryBus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Echo the text back.
#[tool]
async fn echo(text: String) -> Content {
    Content::text(text)
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

/// Add two numbers.
#[tool]
async fn add(a: f64, b: f64) -> Sum {
    Sum { sum: a + b }
}

/// Sleep for some milliseconds.
#[tool]
async fn sleep(ms: u64) -> Content {
    tokio::time::sleep(Duration::from_millis(ms)).await;
    Content::text("slept")
}

/// Send n progress notifications, then return.
#[tool]
async fn progress(cx: Context, n: u32) -> Content {
    for step in 1..=n {
        cx.progress(step).total(n).await;
    }
    Content::text("done")
}

/// An ordinary failure, reported in-band.
#[tool]
async fn fail() -> Result<String, ToolError> {
    Err(ToolError::new("this tool always fails"))
}

/// A bug.
#[tool]
async fn panic() -> String {
    panic!("secret-internal-detail")
}

/// Text of any size.
#[resource("bench://blob/{n}", mime_type = "text/plain")]
async fn blob(n: usize) -> Result<String, ResourceError> {
    if n > 64 * 1024 * 1024 { Err(ResourceError::NotFound) } else { Ok("x".repeat(n)) }
}

/// Arguments of the filler tools.
#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "only their schema is of interest")]
struct Dummy {
    /// Path of the file to work on
    path: String,
    /// Maximum number of entries
    limit: Option<u32>,
    recursive: Option<bool>,
}

/// URI of the resource that `touch` changes.
const TOUCHED: &str = "bench://touched";

/// Notify all subscribers of a change.
#[tool]
async fn touch(cx: Context) -> Content {
    cx.notify_resource_updated(TOUCHED).await;
    Content::text("touched")
}

/// Optional parts of the server.
#[derive(Clone, Copy, Debug)]
pub struct Offer {
    /// Number of filler tools.
    pub dummies: usize,
    /// Whether there is a tool `touch` that notifies all subscribers of a changed resource.
    pub changes: bool,
}

impl Default for Offer {
    fn default() -> Self {
        Self { dummies: 50, changes: false }
    }
}

impl Offer {
    /// Reads the leading options `--dummies N` and `--with-changes`, and returns the others.
    pub fn read(mut options: &[String]) -> Result<(Self, &[String]), BoxError> {
        let mut offer = Self::default();
        loop {
            options = match options {
                [option, number, rest @ ..] if option == "--dummies" => {
                    offer.dummies = number.parse()?;
                    rest
                }
                [option, rest @ ..] if option == "--with-changes" => {
                    offer.changes = true;
                    rest
                }
                rest => return Ok((offer, rest)),
            };
        }
    }
}

/// Builds the server.
pub fn build(offer: Offer) -> Result<Server, BoxError> {
    let mut server = Server::builder("bench", "1.0.0")
        .tool(echo)
        .tool(add)
        .tool(sleep)
        .tool(progress)
        .tool(fail)
        .tool(panic)
        .resource(blob);
    for number in 0..offer.dummies {
        let tool = Tool::new(format!("dummy_{number:02}"), |_: Dummy| async { Content::text("dummy") })
            .description(format!(
                "Dummy tool number {number}: stands in for a realistic tool with a short description"
            ));
        server = server.tool(tool);
    }
    if offer.changes {
        let touched = Resource::text(TOUCHED, "").name("touched");
        server = server.subscriptions(MemoryBus::new()).resource(touched).tool(touch);
    }
    #[cfg(feature = "count-alloc")]
    let server = server.tool(alloc_stats);
    Ok(server.build()?)
}

/// Allocations and bytes since the start of the process.
#[cfg(feature = "count-alloc")]
#[tool]
async fn alloc_stats() -> Content {
    Content::text(crate::allocations::total())
}
