//! Writes frames into the caller's buffer in one pass: a whole frame or nothing.

use serde::{Serialize as _, Serializer as _};

use super::RequestId;
use crate::error::ErrorObject;
use crate::json::writer::Writer;

/// Value that writes itself as JSON text.
pub trait Body {
    /// Appends the text to `out`. On failure the caller truncates what was appended.
    ///
    /// # Errors
    ///
    /// Fails if the value cannot be serialized as JSON.
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error>;
}

/// JSON text, verbatim.
impl Body for str {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }
}

impl Body for crate::json::Json {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.as_str().write(out)
    }
}

impl Body for ErrorObject {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        self.serialize(Writer::new(out))
    }
}

/// Appends a request.
///
/// # Errors
///
/// Fails if the params cannot be written; `out` is then unchanged.
pub fn write_request<B: Body + ?Sized>(
    out: &mut Vec<u8>,
    id: &RequestId,
    method: &str,
    params: Option<&B>,
) -> Result<(), serde_json::Error> {
    atomically(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        id.write(out);
        out.push(b',');
        write_call(out, method, params)
    })
}

/// Appends a notification.
///
/// # Errors
///
/// Fails if the params cannot be written; `out` is then unchanged.
pub fn write_notification<B: Body + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&B>,
) -> Result<(), serde_json::Error> {
    atomically(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        write_call(out, method, params)
    })
}

/// Appends a success response.
///
/// # Errors
///
/// Fails if the result cannot be written; `out` is then unchanged.
pub fn write_success<B: Body + ?Sized>(
    out: &mut Vec<u8>,
    id: &RequestId,
    result: &B,
) -> Result<(), serde_json::Error> {
    atomically(out, |out| {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        id.write(out);
        out.extend_from_slice(br#","result":"#);
        result.write(out)?;
        out.push(b'}');
        Ok(())
    })
}

/// Appends an error response; without an id if that was unreadable.
pub fn write_failure(out: &mut Vec<u8>, id: Option<&RequestId>, error: &ErrorObject) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        out.extend_from_slice(br#""id":"#);
        id.write(out);
        out.push(b',');
    }
    out.extend_from_slice(br#""error":"#);
    let start = out.len();
    if error.write(out).is_err() {
        // An error object consists of strings and JSON text, so writing it into memory cannot fail.
        out.truncate(start);
        out.extend_from_slice(br#"{"code":-32603,"message":"Internal server error"}"#);
    }
    out.push(b'}');
}

fn write_call<B: Body + ?Sized>(
    out: &mut Vec<u8>,
    method: &str,
    params: Option<&B>,
) -> Result<(), serde_json::Error> {
    out.extend_from_slice(br#""method":"#);
    Writer::new(out).serialize_str(method)?;
    if let Some(params) = params {
        out.extend_from_slice(br#","params":"#);
        params.write(out)?;
    }
    out.push(b'}');
    Ok(())
}

/// Runs `write`, and truncates `out` to its former length on failure.
fn atomically(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    let start = out.len();
    let written = write(out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}
