//! Tools: each demonstrates one feature.

use std::time::Duration;

use duplexer::Context;
use duplexer::Resource;
use duplexer::elicit::Elicited;
use duplexer::prelude::*;
use duplexer::schemars::{self, JsonSchema};
use duplexer::types::sampling::{CreateMessageParams, SamplingMessage};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use super::notebook::Notebook;
use super::resources::RED_DOT;

/// Maximum length of an answer of the client's model.
const MAX_TOKENS: u64 = 200;

/// Home page of the protocol.
const HOME_PAGE: &str = "https://modelcontextprotocol.io";

/// Returns the given text.
#[tool(read_only)]
pub(super) async fn echo(text: String) -> String {
    text
}

/// The sum of two numbers.
#[derive(Serialize, JsonSchema)]
pub(super) struct Sum {
    sum: f64,
}

/// Adds two numbers. Programs get a structured value, models the same value as text.
#[tool(read_only)]
pub(super) async fn add(a: f64, b: f64) -> Sum {
    Sum { sum: a + b }
}

/// Divides one number by another, or explains to the model why it cannot.
#[tool(read_only)]
pub(super) async fn divide(a: f64, b: f64) -> Result<f64, ToolError> {
    if b == 0.0 {
        return Err(ToolError::new("Nothing can be divided by zero; choose another b."));
    }
    Ok(a / b)
}

/// Counts up and reports its progress. It stops when the call is cancelled.
#[tool(read_only)]
pub(super) async fn count(
    cx: Context<Notebook>,
    /// The last number.
    to: u32,
    /// Milliseconds between two steps.
    #[default(100)]
    pause: u64,
) -> String {
    for step in 1..=to {
        cx.progress(step).total(to).message("counting").await;
        sleep(Duration::from_millis(pause)).await;
    }
    format!("Counted to {to}.")
}

/// How long a report is.
#[derive(Deserialize, JsonSchema)]
struct Length {
    /// How many chapters?
    #[schemars(range(min = 1, max = 20))]
    chapters: u8,
}

/// Writes a report, which takes a minute, and asks one question in the middle. Clients with tasks do not wait for it.
#[tool(task)]
pub(super) async fn report(
    cx: Context<Notebook>,
    /// The subject.
    about: String,
    /// How long it takes, in seconds.
    #[default(60)]
    seconds: u32,
) -> Result<String, ToolError> {
    let pause = Duration::from_millis(u64::from(seconds.min(3600)) * 50);
    for step in 1..=10 {
        cx.progress(step).total(20).await;
        sleep(pause).await;
    }
    let Length { chapters } =
        cx.elicit("length", "The research is done. How long shall it be?").await?.accepted()?;
    for step in 11..=20 {
        cx.progress(step).total(20).await;
        sleep(pause).await;
    }
    Ok(format!("A report about {about} in {chapters} chapters."))
}

/// Shows a picture.
#[tool(read_only)]
pub(super) async fn picture() -> [Content; 2] {
    [Content::text("One red pixel:"), Content::image(RED_DOT, "image/png")]
}

/// What the user fills in.
#[derive(Deserialize, JsonSchema)]
struct Table {
    /// How many people?
    #[schemars(range(min = 1, max = 12))]
    guests: u8,
    /// Where would you like to sit?
    place: Place,
    /// Anything else?
    wish: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Place {
    Inside,
    Garden,
}

/// Books a table. It asks the user for details, with every protocol revision.
#[tool]
pub(super) async fn book(
    cx: Context<Notebook>,
    /// The day of the visit.
    day: String,
) -> Result<String, ToolError> {
    let table: Table = cx.elicit("table", &format!("A table for {day}")).await?.accepted()?;
    let place = match table.place {
        Place::Inside => "inside",
        Place::Garden => "in the garden",
    };
    let wish = table.wish.map(|wish| format!(" We noted: {wish}.")).unwrap_or_default();
    Ok(format!("A table for {} {place}, {day}.{wish}", table.guests))
}

/// Asks the user to open a page, for what should not go through the client: secrets, payments, or just reading.
#[tool]
pub(super) async fn tour(cx: Context<Notebook>) -> Result<&'static str, ToolError> {
    let answer = cx.elicit_url("tour", "Would you like to see what MCP is?", HOME_PAGE).await?;
    Ok(match answer {
        Elicited::Accepted(_) => "The user has a look.",
        Elicited::Declined | Elicited::Cancelled => "The user knows already.",
    })
}

/// Takes a note. It becomes a resource, and subscribers are notified.
#[tool]
pub(super) async fn remember(cx: Context<Notebook>, text: String) -> Result<String, ToolError> {
    let number = cx.state().next_note().ok_or_else(|| ToolError::new("The notebook is full."))?;
    let uri = format!("note://{number}");
    let note = Resource::text(uri.as_str(), text).name(format!("note {number}"));
    cx.catalog()?.edit(|catalog| catalog.add_resource(note)).await?;
    cx.logger("notebook").info(format!("{uri} was written").as_str()).await;
    Ok(format!("Noted as {uri}."))
}

/// Lists the folders that the client lets the server work on (its roots).
#[tool(read_only)]
pub(super) async fn folders(cx: Context<Notebook>) -> Result<String, ToolError> {
    let roots = cx.roots("roots").await?;
    let names: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
    Ok(if names.is_empty() { "There are none.".to_owned() } else { names.join("\n") })
}

/// Asks the client's model a question (sampling).
#[tool]
pub(super) async fn consult(cx: Context<Notebook>, question: String) -> Result<String, ToolError> {
    let message = SamplingMessage::user(question.as_str());
    let answer = cx.sample("answer", CreateMessageParams::new([message], MAX_TOKENS)).await?;
    Ok(answer.content.text())
}
