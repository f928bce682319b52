//! Diagnosis of a session that could not be opened.
//!
//! The client only knows that there was no response. A second request distinguishes a closed port from a server that
//! rejects the request.

use std::error::Error;
use std::time::Duration;

use duplexer::transport::child::Child;
use duplexer::types::methods::Method;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Response, StatusCode, redirect};

use crate::failure::{Exit, Failure};

/// Maximum time of the diagnosis.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum shown length of an error body.
const MAX_SHOWN: usize = 200;

/// Diagnoses a URL with which no session could be opened. A failure that is specific already is returned unchanged.
pub(super) async fn of_http(url: &str, headers: &[(String, String)], failure: Failure) -> Failure {
    if !matches!(failure.exit, Exit::Connect | Exit::Protocol) {
        return failure;
    }
    match look(url, headers).await {
        Ok(response) => of_response(url, response, failure).await,
        Err(error) => Failure::new(Exit::Connect, format!("no connection to {url}: {}", root(&error)))
            .hint("is the server running there?"),
    }
}

/// Sends a request without side effects.
async fn look(url: &str, headers: &[(String, String)]) -> Result<Response, reqwest::Error> {
    let client = reqwest::Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE).build()?;
    let mut request = client.post(url);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    request
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, text/event-stream")
        .body(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, Method::Ping))
        .send()
        .await
}

async fn of_response(url: &str, response: Response, failure: Failure) -> Failure {
    let status = response.status();
    match status {
        StatusCode::UNAUTHORIZED => {
            Failure::new(Exit::Auth, format!("{url} wants to know who is asking ({status})"))
                .hint("give a token with --header 'Authorization: Bearer ...'")
        }
        StatusCode::FORBIDDEN => {
            let body = response.text().await.unwrap_or_default();
            let body: String = body.lines().next().unwrap_or_default().chars().take(MAX_SHOWN).collect();
            Failure::new(Exit::Auth, format!("{url} does not let this request in ({status}): {body}"))
        }
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => {
            Failure::new(Exit::Connect, format!("there is no MCP server at {url} ({status})"))
                .hint("is the path right? Most are at /mcp")
        }
        _ if status.is_redirection() => {
            let to = response.headers().get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("elsewhere");
            Failure::new(Exit::Connect, format!("{url} has moved to {to} ({status})")).hint("use that URL")
        }
        _ if status.is_server_error() => {
            Failure::new(Exit::Connect, format!("the server at {url} is in trouble ({status})"))
                .hint("try again later, or look at its log")
        }
        _ => failure,
    }
}

/// Returns the innermost cause, which is the most specific one.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// Diagnoses a program with which no session could be opened, and ends it.
pub(super) async fn of_program(program: &str, child: Child, failure: Failure) -> Failure {
    let status = child.shutdown().await;
    match (failure.exit, status) {
        (Exit::Connect, Ok(status)) => {
            Failure::new(Exit::Connect, format!("`{program}` ended before the session was open ({status})"))
                .hint("does it speak MCP over standard input and output?")
        }
        _ => failure,
    }
}
