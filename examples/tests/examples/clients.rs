//! Examples that connect: to a program that they start, and to a server over HTTP.

use std::process::Command;

/// Runs a client and returns what it prints.
fn client(binary: &str, words: &[&str]) -> (bool, String) {
    let output = Command::new(binary).args(words).output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn the_client_over_stdio_starts_a_server_and_calls_its_tool() {
    let binary = env!("CARGO_BIN_EXE_client-stdio");
    let (success, text) = client(binary, &[env!("CARGO_BIN_EXE_hello")]);
    assert!(success, "{text}");
    assert!(text.contains("add: Adds two numbers.") && text.contains("40 + 2 = 42"), "{text}");
    assert!(text.contains("without arguments: The arguments do not fit this tool:"), "{text}");
    let (success, text) = client(binary, &["/no/such/program"]);
    assert!(!success && text.contains("cannot be started"), "{text}");
}

/// A server over HTTP with the tool that the client books a table with.
mod restaurant {
    use duplexer::prelude::*;
    use duplexer::{Context, http::StreamableHttp};
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    struct Booking {
        /// How many people?
        #[schemars(range(min = 1, max = 12))]
        guests: u8,
        place: Place,
    }

    /// The places of the demo's tool `book`.
    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Place {
        Inside,
        Garden,
    }

    /// Books a table.
    #[tool]
    async fn book(cx: Context, day: String) -> Result<String, ToolError> {
        let booking: Booking = cx.elicit("booking", "For how many?").await?.accepted()?;
        let place = match booking.place {
            Place::Inside => "inside",
            Place::Garden => "in the garden",
        };
        Ok(format!("A table for {} {place}, {day}.", booking.guests))
    }

    pub(crate) async fn serve(
        until: tokio::sync::oneshot::Receiver<()>,
    ) -> (String, tokio::task::JoinHandle<()>) {
        let server = Server::builder("restaurant", "0").tool(book).build().unwrap();
        let bound = StreamableHttp::builder(server).build().unwrap().bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", bound.local_addr().unwrap());
        let serving = tokio::task::spawn_local(async move {
            bound.serve_until(async { drop(until.await) }).await;
        });
        (url, serving)
    }
}

#[test]
fn the_client_over_http_answers_the_question_of_the_server() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    tasks.block_on(&runtime, async {
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let (url, serving) = restaurant::serve(stopped).await;
        let run = async |words: Vec<String>| {
            let run = tokio::task::spawn_blocking(move || {
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                client(env!("CARGO_BIN_EXE_client-http"), &words)
            });
            run.await.unwrap()
        };
        let (success, text) = run(vec![url.clone(), "4".to_owned()]).await;
        assert!(success && text.contains("A table for 4 in the garden, Friday."), "{text}");
        let (success, text) = run(vec![url.clone(), "0".to_owned()]).await;
        assert!(success && text.contains("`guests` must be an integer of at least 1"), "{text}");
        assert!(text.contains("not booked: The user declined to answer."), "{text}");
        let (success, text) = run(vec!["http://127.0.0.1:1/mcp".to_owned()]).await;
        assert!(!success && text.contains("nothing listens there"), "{text}");
        drop(stop);
        serving.await.unwrap();
    });
}
