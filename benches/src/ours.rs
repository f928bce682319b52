//! The implementation of the library: frame, envelope, params, arguments, result.

use std::sync::LazyLock;

use duplexer_types::json::Json;
use duplexer_types::jsonrpc::{self, Body, RawFrame};
use duplexer_types::meta::RequestMeta;
use duplexer_types::tool::{CallToolParams, CallToolResult};
use duplexer_types::version::ProtocolVersion;
use duplexer_types::wire::{self, ResultMeta};
use serde::Deserialize;

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

static SERVER: LazyLock<Json> =
    LazyLock::new(|| Json::parse(crate::SERVER_INFO).unwrap_or_else(|_| Json::null()));

/// Answers a frame with the library.
pub fn ours(frame: &str, out: &mut Vec<u8>) -> Option<()> {
    let Ok(RawFrame::Request { id, call }) = jsonrpc::read(frame) else { return None };
    let version: ProtocolVersion = RequestMeta::read(call.meta?).ok()?.version()?.parse().ok()?;
    if call.method != "tools/call" {
        return None;
    }
    let params: CallToolParams = call.decode().ok()?;
    let arguments: Arguments = params.arguments?.decode().ok()?;
    if params.name != "echo" {
        return None;
    }
    let result = CallToolResult::text(arguments.text);
    jsonrpc::write_success(out, &id, &Reply { result, version }).ok()
}

struct Reply {
    result: CallToolResult,
    version: ProtocolVersion,
}

impl Body for Reply {
    fn write(&self, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        wire::write_result(
            out,
            &self.result,
            self.version,
            ResultMeta { server_info: Some(&SERVER), hint: None },
        )
    }
}
