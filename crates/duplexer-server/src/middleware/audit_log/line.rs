//! The form of one line.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use duplexer_types::json::find_member;
use duplexer_types::jsonrpc::{RequestId, first_text};
use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::Arguments;
use crate::features::tasks::UnixMillis;
use crate::kernel::context::Context;
use crate::kernel::outcome::Outcome;
use crate::middleware::access_log::REQUEST_ID;
use duplexer_core::dispatch::Message;
use duplexer_core::error::McpError;

/// Longest text of a client in a line, in bytes. Arguments, if they are written, are whole.
const MAX_TEXT: usize = 1024;

/// What is known of a request.
pub(super) struct Facts<'a> {
    pub(super) cx: &'a Context,
    pub(super) message: &'a Message,
    pub(super) time: SystemTime,
    pub(super) elapsed: Duration,
}

/// The outcome of a request.
#[derive(Clone, Copy)]
pub(super) struct Ended {
    outcome: &'static str,
    code: Option<i64>,
}

impl Ended {
    pub(super) fn of(outcome: &Result<Outcome, McpError>) -> Self {
        let code = |code: i64| Self { outcome: "error", code: Some(code) };
        match outcome {
            Ok(done) if done.is_error() => Self { outcome: "tool_error", code: None },
            Ok(_) => Self { outcome: "ok", code: None },
            Err(McpError::Rpc(error)) => code(error.code.0),
            Err(McpError::Forbidden(challenge)) => code(challenge.error.code.0),
            Err(McpError::Busy(busy)) => code(busy.error.code.0),
            Err(McpError::InvalidParams(_)) => code(duplexer_types::error::ErrorCode::INVALID_PARAMS.0),
            Err(_) => code(duplexer_types::error::ErrorCode::INTERNAL_ERROR.0),
        }
    }

    /// The request had no outcome: it was cancelled, or its handler panicked.
    pub(super) fn dropped() -> Self {
        Self { outcome: "dropped", code: None }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    time: String,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Cow<'a, str>>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<i64>,
    elapsed_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<std::net::IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
    id: Option<&'a RequestId>,
    transport: &'static str,
    revision: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<Box<RawValue>>,
}

impl Facts<'_> {
    /// Returns the line, with its line break.
    pub(super) fn line(&self, ended: Ended, kept: Arguments) -> Vec<u8> {
        let Facts { cx, message, .. } = self;
        let params = message.params();
        let field = message.known().and_then(duplexer_types::methods::Method::mirrored_field);
        let name = params.zip(field).and_then(|(params, field)| first_text(params, message.meta(), field));
        let arguments = params.and_then(|params| find_member(params, "arguments"));
        let principal = cx.principal().map(crate::Principal::identity);
        let line = Line {
            time: UnixMillis::from(self.time).rfc3339(),
            method: truncated(message.method()),
            name: name.map(|name| match name {
                Cow::Borrowed(name) => Cow::Borrowed(truncated(name)),
                Cow::Owned(name) => Cow::Owned(truncated(&name).to_owned()),
            }),
            outcome: ended.outcome,
            code: ended.code,
            elapsed_ms: self.elapsed.as_secs_f64() * 1000.0,
            client: principal.map(|(client, ..)| client),
            issuer: principal.and_then(|(_, issuer, _)| issuer),
            subject: principal.and_then(|(.., subject)| subject),
            address: cx.transport().client_address,
            request_id: cx.transport().header(REQUEST_ID).next().map(truncated),
            id: cx.request_id(),
            transport: cx.transport().kind,
            revision: cx.protocol_version().as_str(),
            arguments_sha256: arguments.map(hash),
            arguments: arguments.filter(|_| kept == Arguments::Text).and_then(in_one_line),
        };
        let mut text = Vec::with_capacity(512);
        if serde_json::to_writer(&mut text, &line).is_err() {
            // Nothing of a line can fail to be written. An empty line would hide a call.
            text = br#"{"event":"unwritable"}"#.to_vec();
        }
        text.push(b'\n');
        text
    }
}

/// Returns the SHA-256 of the text of the arguments, as they were sent, in hexadecimal.
fn hash(arguments: &str) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(arguments.as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Returns a JSON text without line breaks. They can only be between its parts, where a blank means the same, and a client could
/// forge lines of the log with them.
fn in_one_line(text: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(text.replace(['\n', '\r'], " ")).ok()
}

fn truncated(text: &str) -> &str {
    let end = (0..=MAX_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    text.get(..end.unwrap_or_default()).unwrap_or_default()
}
