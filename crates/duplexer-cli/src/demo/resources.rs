//! Resources: one that changes by itself, bytes, and templates with typed variables.

use duplexer::Context;
use duplexer::completion::CompletionRequest;
use duplexer::prelude::*;
use duplexer::types::resource::ResourceContents;

use super::notebook::Notebook;

/// The resource that changes.
pub(super) const CLOCK: &str = "demo://clock";

/// A picture of one red pixel, in base64.
pub(super) const RED_DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The uptime of the server. Subscribers are notified every second.
#[resource("demo://clock", mime_type = "text/plain")]
pub(super) async fn clock(cx: Context<Notebook>) -> String {
    format!("{} s", cx.state().age())
}

/// A picture.
#[resource("demo://dot.png", mime_type = "image/png")]
pub(super) async fn dot() -> ResourceContents {
    ResourceContents::blob("demo://dot.png", RED_DOT).mime_type("image/png")
}

/// The square of a number.
#[resource("math://square/{n}", mime_type = "text/plain")]
pub(super) async fn square(n: i64) -> String {
    n.saturating_mul(n).to_string()
}

const CAPITALS: [(&str, &str); 5] = [
    ("France", "Paris"),
    ("Finland", "Helsinki"),
    ("Japan", "Tokyo"),
    ("Kenya", "Nairobi"),
    ("Peru", "Lima"),
];

async fn countries(request: CompletionRequest) -> Vec<String> {
    request.filter(CAPITALS.map(|(country, _)| country))
}

/// The capital of a country. Clients can request completions for the country.
#[resource("world://{country}/capital", mime_type = "text/plain")]
pub(super) async fn capital(#[complete(countries)] country: String) -> Result<String, ResourceError> {
    let known = CAPITALS.iter().find(|(name, _)| name.eq_ignore_ascii_case(&country));
    known.map(|(_, city)| (*city).to_owned()).ok_or(ResourceError::NotFound)
}
