//! Plain `serde_json` types, written for exactly this message.

use serde::{Deserialize, Serialize};

use crate::SERVER_INFO;

#[derive(Deserialize)]
struct Request {
    jsonrpc: String,
    id: i64,
    method: String,
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    name: String,
    arguments: Arguments,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize)]
struct Arguments {
    text: String,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: String,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'a str,
    id: i64,
    result: CallResult<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    content: Vec<Text>,
    result_type: &'a str,
    #[serde(rename = "_meta")]
    meta: ResultMeta<'a>,
}

#[derive(Serialize)]
struct Text {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

#[derive(Serialize)]
struct ResultMeta<'a> {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: &'a serde_json::value::RawValue,
}

/// Answers a frame with plain types.
pub fn baseline(frame: &str, out: &mut Vec<u8>) -> Option<()> {
    let request: Request = serde_json::from_str(frame).ok()?;
    let known = request.jsonrpc == "2.0"
        && request.method == "tools/call"
        && request.params.name == "echo"
        && request.params.meta.version == "2026-07-28";
    let response = Response {
        jsonrpc: "2.0",
        id: request.id,
        result: CallResult {
            content: vec![Text { kind: "text", text: request.params.arguments.text }],
            result_type: "complete",
            meta: ResultMeta { server_info: serde_json::from_str(SERVER_INFO).ok()? },
        },
    };
    known.then_some(())?;
    serde_json::to_writer(out, &response).ok()
}
