//! What the demo says when it begins: where it is, what it speaks, and what to try.

use std::net::SocketAddr;

use duplexer::Json;
use duplexer::types::headers;
use duplexer::types::json::Members;
use duplexer::types::meta;
use duplexer::types::methods::Method;
use duplexer::types::version::ProtocolVersion;
use serde_json::json;

/// A few lines for whoever has started it.
pub(super) fn welcome(address: SocketAddr) -> String {
    let url = format!("http://{address}/mcp");
    let names = |versions: &[ProtocolVersion]| {
        versions.iter().rev().map(|version| version.as_str()).collect::<Vec<_>>().join(", ")
    };
    let open = if address.ip().is_loopback() { "" } else { " (anybody who reaches this machine can use it)" };
    format!(
        "\
The demo server listens at {url}{open}
It speaks {} (self-contained requests) and {} (handshake). Ctrl-C ends it.

Try it:
{}
  {} call {url} count to:=20
  npx @modelcontextprotocol/inspector --cli {url} --transport http --method {}",
        names(ProtocolVersion::ENVELOPE),
        names(ProtocolVersion::HANDSHAKE),
        curl(&url),
        program(),
        Method::ToolsList,
    )
}

/// How this program was called, so that what is printed can be typed.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "duplexer".to_owned())
}

/// One request that needs nothing before it.
fn curl(url: &str) -> String {
    let (tool, method, version) = ("add", Method::ToolsCall, ProtocolVersion::LATEST_ENVELOPE);
    let who = Json::from(json!({"name": "curl", "version": "1"}));
    let params = Members::<Json>::new()
        .with("name", tool)
        .with("arguments", json!({"a": 2, "b": 3}))
        .with("_meta", meta::envelope(version.as_str(), &who, &Json::object()));
    let params = Json::from(params);
    format!(
        "  curl -s {url} \\
    -H 'Content-Type: application/json' -H 'Accept: application/json, text/event-stream' \\
    -H '{}: {version}' -H '{}: {method}' -H '{}: {tool}' \\
    -d '{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{}}}'",
        headers::PROTOCOL_VERSION.canonical,
        headers::METHOD.canonical,
        headers::NAME.canonical,
        params.as_str(),
    )
}
