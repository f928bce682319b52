//! Resources: a text, bytes, one with subscriptions, and a template.

use duplexer::Json;
use duplexer::ServerBuilder;
use duplexer::prelude::*;
use duplexer::types::resource::ResourceContents;
use serde_json::json;

use crate::contents::PNG;

pub(crate) fn offer(server: ServerBuilder<()>) -> ServerBuilder<()> {
    server.resource(static_text).resource(static_binary).resource(watched).resource(item)
}

/// A text that never changes.
#[resource("test://static-text", mime_type = "text/plain")]
async fn static_text() -> &'static str {
    "This is the content of the static text resource."
}

/// A picture.
#[resource("test://static-binary", mime_type = "image/png")]
async fn static_binary() -> ResourceContents {
    ResourceContents::blob("test://static-binary", PNG).mime_type("image/png")
}

/// A text with change notifications.
#[resource("test://watched-resource", mime_type = "text/plain")]
async fn watched() -> &'static str {
    "This is the content of the watched resource."
}

/// The data of any id.
#[resource("test://template/{id}/data", mime_type = "application/json")]
async fn item(id: String) -> Json {
    Json::from(json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") }))
}
