//! Diagnosis of a session that could not be opened.

use duplexer::client::ConnectError;
use duplexer::error::CallError;
use duplexer::transport::child::Child;
use duplexer::transport::{HttpRefusal, TransportFailure};

use crate::failure::{Exit, Failure};

/// Diagnoses a URL with which no session could be opened, if the transport says why. `given` is the option with a token.
pub(super) fn of_http(url: &str, given: Option<&str>, error: &ConnectError) -> Option<Failure> {
    match error {
        ConnectError::Call(CallError::Transport(TransportFailure::Unreachable(cause))) => {
            let failure = Failure::new(Exit::Connect, format!("no connection to {url}: {cause}"));
            Some(failure.hint("is the server running there?"))
        }
        error => of_refusal(url, given, error.refusal()?),
    }
}

fn of_refusal(url: &str, given: Option<&str>, refusal: &HttpRefusal) -> Option<Failure> {
    let status = format!("{} {}", refusal.status, refusal.phrase);
    match refusal.status {
        401 => Some(match given {
            Some(option) => {
                let what = format!("{url} did not accept the token given with {option} ({status})");
                Failure::new(Exit::Auth, what).hint("is it expired, or for another server?")
            }
            None => Failure::new(Exit::Auth, format!("{url} requires a login ({status})"))
                .hint("`duplexer login URL` stores a token, --token gives one"),
        }),
        403 => {
            let body = &refusal.body;
            Some(Failure::new(Exit::Auth, format!("{url} does not let this request in ({status}): {body}")))
        }
        404 | 405 => Some(
            Failure::new(Exit::Connect, format!("there is no MCP server at {url} ({status})"))
                .hint("is the path right? Most are at /mcp"),
        ),
        300..=399 => {
            let to = refusal.location.as_deref().unwrap_or("elsewhere");
            let failure = Failure::new(Exit::Connect, format!("{url} has moved to {to} ({status})"));
            Some(failure.hint("use that URL"))
        }
        500.. => Some(
            Failure::new(Exit::Connect, format!("the server at {url} is in trouble ({status})"))
                .hint("try again later, or look at its log"),
        ),
        _ => None,
    }
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
