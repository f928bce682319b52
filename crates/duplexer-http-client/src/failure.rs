//! What becomes of an HTTP request that fails: a typed failure with what is needed to act on it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use duplexer_core::error::Chain;
use duplexer_core::transport::{HttpRefusal, TransportFailure};
use duplexer_types::error::ErrorObject;
use duplexer_types::jsonrpc::{self, RawFrame};
use reqwest::Response;
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use tokio::time::timeout;

/// Maximum bytes of the body of a refusal that are read, and the maximum time for them.
const MAX_BODY: usize = 4096;
const BODY_TIMEOUT: Duration = Duration::from_secs(5);

/// Classifies an error of sending a request. It is logged with all its causes, without the URL, which can hold secrets.
pub(crate) fn of_sending(error: reqwest::Error) -> TransportFailure {
    let error = error.without_url();
    tracing::debug!(error = %Chain(&error), "an HTTP request failed");
    let cause = root(&error);
    if error.is_connect() {
        TransportFailure::Unreachable(cause)
    } else if error.is_builder() {
        TransportFailure::Unsendable(cause.into())
    } else {
        TransportFailure::Interrupted(cause.into())
    }
}

/// Classifies an error of reading a response.
pub(crate) fn of_reading(error: reqwest::Error) -> TransportFailure {
    let error = error.without_url();
    tracing::debug!(error = %Chain(&error), "a response broke off");
    TransportFailure::Interrupted(root(&error).into())
}

/// Creates the failure of a response over the limit.
pub(crate) fn too_large(limit: usize) -> TransportFailure {
    TransportFailure::Protocol(format!("it is larger than {limit} bytes").into())
}

/// Creates the failure of a refused request, with the beginning of a text body or the message of a JSON-RPC error.
pub(crate) async fn of_refusal(mut response: Response) -> TransportFailure {
    let body = if is_text(&response) { beginning(&mut response).await } else { Vec::new() };
    let body = String::from_utf8_lossy(&body);
    match jsonrpc::read(&body) {
        Ok(RawFrame::Failure { error, .. }) => match serde_json::from_str::<ErrorObject>(error) {
            Ok(error) => refused(&response, &error.message),
            Err(_) => refused(&response, &body),
        },
        _ => refused(&response, &body),
    }
}

/// Reads the beginning of a body. What has arrived in time is enough for a message.
pub(crate) async fn beginning(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(piece)) = response.chunk().await {
            body.extend_from_slice(&piece[..piece.len().min(MAX_BODY - body.len())]);
            if body.len() == MAX_BODY {
                break;
            }
        }
    };
    let _ = timeout(BODY_TIMEOUT, read).await;
    body
}

/// Creates the failure of a refused request.
pub(crate) fn refused(response: &Response, body: &str) -> TransportFailure {
    let headers = response.headers();
    let challenges = headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
    let seconds = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    let status = response.status();
    let refusal = HttpRefusal::new(status.as_u16(), status.canonical_reason().unwrap_or_default())
        .challenges(challenges)
        .retry_after(seconds.map(Duration::from_secs))
        .location(headers.get(LOCATION).and_then(|value| value.to_str().ok()))
        .body(body);
    TransportFailure::Http(Arc::new(refusal))
}

fn is_text(response: &Response) -> bool {
    let Some(kind) = response.headers().get(CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default().to_ascii_lowercase();
    kind.starts_with("text/") || kind.contains("json") || kind.contains("xml")
}

/// Returns the text of the innermost cause, which is the most specific one.
fn root(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}
