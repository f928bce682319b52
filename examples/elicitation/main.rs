//! Elicitation: one function for clients that accept server requests and for clients that repeat the call with the answer.

use duplexer::Context;
use duplexer::client::{Client, ClientBuilder, Negotiation};
use duplexer::prelude::*;
use duplexer::testing::TestClient;
use duplexer::types::elicitation::ElicitResult;
use duplexer_examples::{call, same, text};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Booking {
    /// How many people?
    #[schemars(range(min = 1, max = 12))]
    guests: u8,
}

/// Books a table.
#[tool]
async fn book(cx: Context, day: String) -> Result<String, ToolError> {
    let booking: Booking =
        cx.elicit("booking", &format!("A table on {day}: for how many?")).await?.accepted()?;
    Ok(format!("A table for {} on {day}.", booking.guests))
}

fn client(guests: Option<u8>) -> ClientBuilder {
    Client::builder("story", "1").on_elicitation(move |_| async move {
        Ok(match guests {
            Some(guests) => ElicitResult::accept(json!({"guests": guests})),
            None => ElicitResult::decline(),
        })
    })
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = Server::builder("restaurant", "0").tool(book).build()?;
    for negotiation in [Negotiation::Handshake, Negotiation::Auto] {
        let polite = TestClient::connect(&server, client(Some(4)).negotiation(negotiation.clone())).await?;
        same(text(&call(&polite, "book", json!({"day": "Friday"})).await?), "A table for 4 on Friday.")?;
        polite.close().await;
        let silent = TestClient::connect(&server, client(None).negotiation(negotiation)).await?;
        let declined = call(&silent, "book", json!({"day": "Friday"})).await?;
        same((declined.is_error, text(&declined)), (Some(true), "The user declined to answer."))?;
        silent.close().await;
    }
    Ok(())
}
