//! A server with its tests: the function that builds it is shared by `main` and by the tests next to it.
//!
//! Run: `cargo run -p duplexer-examples --bin testing`; it serves standard input and output.
//! Try: `cargo test -p duplexer-examples --bin testing`, which needs neither a process nor a port.
//! Then break a tool, and watch a test fail.
//! The tests in `tests.rs` play the client: of both protocol eras, with a user who answers questions.

#[cfg(test)]
mod tests;

use std::sync::{Mutex, PoisonError};

use duplexer::Context;
use duplexer::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;

/// The list that all clients share.
#[derive(Default)]
struct Shopping(Mutex<Vec<String>>);

/// Adds something to the list and returns its length.
#[tool]
async fn add(cx: Context<Shopping>, #[schemars(length(min = 1, max = 40))] item: String) -> usize {
    let mut items = cx.state().0.lock().unwrap_or_else(PoisonError::into_inner);
    items.push(item);
    items.len()
}

#[derive(Deserialize, JsonSchema)]
struct Sure {
    /// Delete the whole list?
    yes: bool,
}

/// Empties the list, if the user agrees.
#[tool(destructive)]
async fn clear(cx: Context<Shopping>) -> Result<&'static str, ToolError> {
    let sure: Sure = cx.elicit("sure", "This cannot be undone.").await?.accepted()?;
    if !sure.yes {
        return Ok("Nothing was deleted.");
    }
    cx.state().0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    Ok("The list is empty.")
}

fn server() -> Result<Server, BoxError> {
    Ok(Server::builder("shopping", "1.0.0").state(Shopping::default()).tool(add).tool(clear).build()?)
}

fn main() -> Result<(), BoxError> {
    Ok(run_stdio(&server()?)?)
}
