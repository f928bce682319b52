//! A server with one tool.

use duplexer::prelude::*;

/// Adds two numbers.
#[tool]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

fn main() -> Result<(), BoxError> {
    let server = Server::builder("calculator", "1.0.0").tool(add).build()?;
    Ok(run_stdio(&server)?)
}
