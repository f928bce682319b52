//! The demo server: a little of everything a server can offer.

use std::time::Duration;

use duplexer::prelude::*;
use schemars::JsonSchema;
use serde::Serialize;

/// What two numbers add up to.
#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: f64,
}

/// Adds two numbers.
#[tool(read_only)]
async fn add(a: f64, b: f64) -> Sum {
    Sum { sum: a + b }
}

/// Says back what it is told.
#[tool(read_only)]
async fn echo(text: String) -> String {
    text
}

/// Counts up and reports how far it is.
#[tool]
async fn count(
    cx: Context,
    /// Where to stop.
    to: u32,
    /// Milliseconds between two steps.
    #[default(100)]
    pause: u64,
) -> String {
    for step in 1..=to {
        cx.progress(f64::from(step), Some(f64::from(to)), Some("counting")).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    format!("counted to {to}")
}

/// Shows a picture: one red pixel.
#[tool(read_only)]
async fn pixel() -> Content {
    let red =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
    Content::image(red, "image/png")
}

async fn greetings(completing: Completing) -> Vec<String> {
    completing.filter(["hello", "good morning", "good evening"])
}

/// A greeting for somebody.
#[prompt]
async fn greet(name: String, #[complete(greetings)] greeting: Option<String>) -> String {
    format!("Say {} to {name}, in one friendly sentence.", greeting.as_deref().unwrap_or("hello"))
}

/// The square of a number.
#[resource("math://square/{n}")]
async fn square(n: i64) -> String {
    n.saturating_mul(n).to_string()
}

pub(crate) fn server() -> Result<Server, BoxError> {
    let server = Server::builder("duplexer-demo")
        .version(env!("CARGO_PKG_VERSION"))
        .title("Duplexer demo")
        .instructions("A little of everything, to try clients with.")
        .tool(add)
        .tool(echo)
        .tool(count)
        .tool(pixel)
        .prompt(greet)
        .resource(square)
        .resource(Resource::text("demo://readme", "One server, every revision.").name("readme"))
        .build()?;
    Ok(server)
}
