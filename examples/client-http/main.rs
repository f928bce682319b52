//! A client over HTTP that answers questions of the server: it books a table in the garden for as many guests as you say.
//!
//! Run: `cargo run --release` (the demo has the tool `book`), and in another terminal
//! `cargo run -p duplexer-examples --bin client-http -- http://127.0.0.1:8000/mcp 4`.
//! Try: 0 guests, which the form does not allow; no number, which declines; a port on which nothing listens.
//! It shows a URL as target, elicitation, a header for one call, and errors by their kind.

#![expect(clippy::print_stderr, reason = "a program for the terminal")]

use duplexer::client::prelude::*;
use serde_json::json;

/// Answers the form with the number of guests and a place, if there is a number and the form allows it.
fn answer(question: &ElicitParams, guests: Option<u32>) -> ElicitResult {
    let (ElicitParams::Form(form), Some(guests)) = (question, guests) else { return ElicitResult::decline() };
    eprintln!("the server asks: {}", form.message);
    let result = ElicitResult::accept(json!({"guests": guests, "place": "garden"}));
    match form.requested_schema.check(result.content.as_ref().unwrap_or(&JsonObject::new())) {
        Ok(()) => result,
        Err(invalid) => {
            eprintln!("{invalid}");
            ElicitResult::decline()
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut words = std::env::args().skip(1);
    let url = words.next().ok_or("usage: client-http URL [GUESTS]")?;
    let guests = words.next().map(|guests| guests.parse()).transpose()?;
    let builder = Client::builder("client-http", "1.0")
        .on_elicitation(move |question| std::future::ready(Ok(answer(&question, guests))));
    let client = match builder.open(url).await {
        Ok(client) => client,
        Err(OpenError::Connect(error)) if error.kind() == ErrorKind::Unreachable => {
            return Err(format!("nothing listens there: {error}").into());
        }
        Err(error) => return Err(error.into()),
    };
    let call = client.call_tool("book", json!({"day": "Friday"})).header("x-request-source", "example");
    match call.text().await {
        Ok(text) => eprintln!("{text}"),
        Err(ClientError::ToolFailed(failed)) => eprintln!("not booked: {failed}"),
        Err(error) => return Err(error.into()),
    }
    Ok(client.close().await?)
}
