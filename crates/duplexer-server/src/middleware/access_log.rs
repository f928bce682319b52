//! The access log: one event of `tracing` per message.

use std::borrow::Cow;
use std::net::IpAddr;

use tokio::time::Instant;
use tracing::Level;

use super::call::tool_name;
use super::{Middleware, Next};
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use duplexer_core::dispatch::{BoxFuture, Message};
use duplexer_core::error::McpError;

/// Logs every message with its caller, outcome and duration, never with its payload. The events have the target
/// `duplexer::access`; without a subscriber for it, this costs nothing.
///
/// Events have the fields `method`, `tool`, `id`, `client` (of the token), `address` and `request_id` (over HTTP, if the
/// service determines them), `elapsed`, and one of `tool_error`, `code` and `error`.
///
/// ```
/// use duplexer::middleware::AccessLog;
///
/// let server = duplexer::Server::builder("archive", "1.0.0").middleware(AccessLog).build()?;
/// # Ok::<_, duplexer::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct AccessLog;

/// Header that names an HTTP request in logs.
pub(super) const REQUEST_ID: &str = "x-request-id";

impl Middleware for AccessLog {
    fn handle(
        &self,
        cx: Context,
        message: Message,
        next: Next,
    ) -> BoxFuture<'static, Result<Outcome, McpError>> {
        if !tracing::enabled!(target: "duplexer::access", Level::INFO) {
            return next.run(cx, message);
        }
        let facts = cx.clone();
        Box::pin(async move {
            let start = Instant::now();
            let outcome = next.future(cx, &message).await;
            log(&facts, &message, start, &outcome);
            outcome
        })
    }
}

fn log(cx: &Context, message: &Message, start: Instant, outcome: &Result<Outcome, McpError>) {
    // Escaped (`?`): a peer chooses these texts, and a log entry must stay one line.
    let (method, tool) = (message.method(), tool_name(message));
    let tool = tool.as_deref().map(tracing::field::debug);
    let id = cx.request_id().map(ToString::to_string);
    let client = cx.principal().map(|principal| tracing::field::debug(&principal.client_id));
    let address = cx.transport().client_address.as_ref().map(tracing::field::display::<&IpAddr>);
    let request_id = cx.transport().header(REQUEST_ID).next().map(|id| tracing::field::debug(Cow::from(id)));
    let elapsed = start.elapsed();
    macro_rules! event {
        ($level:ident, $text:literal, $($field:tt)*) => {
            tracing::event!(target: "duplexer::access", Level::$level, ?method, tool, ?id, client, address, request_id, ?elapsed, $($field)*, $text)
        };
    }
    match outcome {
        Ok(done) => event!(INFO, "handled", tool_error = done.is_error()),
        Err(McpError::Rpc(error)) => event!(INFO, "refused", code = error.code.0),
        Err(McpError::Busy(busy)) => event!(INFO, "refused", code = busy.error.code.0),
        Err(McpError::Forbidden(challenge)) => event!(INFO, "refused", code = challenge.error.code.0),
        Err(error) => event!(WARN, "failed", %error),
    }
}
