//! The welcome message of the demo: its address, its protocol revisions and commands to try.

use std::net::SocketAddr;

use duplexer::Json;
use duplexer::types::headers;
use duplexer::types::json::JsonObject;
use duplexer::types::meta;
use duplexer::types::methods::Method;
use duplexer::types::version::ProtocolVersion;
use serde_json::json;

use crate::arguments::AuthChoice;

/// The single user of the demo's authorization server.
pub(super) const USER: &str = "ada";

/// Formats the message.
pub(super) fn welcome(address: SocketAddr, auth: Option<AuthChoice>, page: Option<String>) -> String {
    let page = page.map(|url| format!("Look at it in a browser: {url}\n")).unwrap_or_default();
    let url = format!("http://{address}/mcp");
    let names = |versions: &[ProtocolVersion]| {
        versions.iter().rev().map(|version| version.as_str()).collect::<Vec<_>>().join(", ")
    };
    let open = if address.ip().is_loopback() { "" } else { " (anybody who reaches this machine can use it)" };
    if auth.is_some() {
        return protected(&url, address, &page);
    }
    format!(
        "\
The demo server listens at {url}{open}
It speaks {} (self-contained requests) and {} (handshake). Ctrl-C ends it.
{page}
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

/// Formats the message for a demo with authorization.
fn protected(url: &str, address: SocketAddr, page: &str) -> String {
    let steps = [
        (format!("curl -si {url} -X POST"), "401, and where to go".to_owned()),
        (
            format!("curl -s http://{address}/.well-known/oauth-protected-resource/mcp"),
            "who gives out tokens".to_owned(),
        ),
        (format!("curl -s http://{address}/.well-known/oauth-authorization-server"), "how".to_owned()),
        (
            format!("{} call {url} add a:=2 b:=3", program()),
            "opens your browser, then prints the sum".to_owned(),
        ),
        ("npx @modelcontextprotocol/inspector".to_owned(), "connect to the server".to_owned()),
    ];
    format!(
        "\
The demo server listens at {url} and asks for tokens. Ctrl-C ends it.
Tokens come from http://{address}, where everybody is `{USER}`.
Clients find that by themselves and show you a page.
{page}
Watch the flow:
{}",
        columns(&steps)
    )
}

/// Formats commands with what each shows, in two columns.
fn columns(steps: &[(String, String)]) -> String {
    let width = steps.iter().map(|(command, _)| command.len()).max().unwrap_or_default();
    let lines: Vec<_> =
        steps.iter().map(|(command, shows)| format!("  {command:width$}   ({shows})")).collect();
    lines.join("\n")
}

/// Returns the command that started this program, so that the printed commands work.
fn program() -> String {
    std::env::args().next().unwrap_or_else(|| "duplexer".to_owned())
}

/// Formats a self-contained request.
fn curl(url: &str) -> String {
    let (tool, method, version) = ("add", Method::ToolsCall, ProtocolVersion::LATEST_ENVELOPE);
    let who = Json::from(json!({"name": "curl", "version": "1"}));
    let params = JsonObject::<Json>::new()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_explanations_of_a_protected_demo_line_up() {
        for address in ["127.0.0.1:80", "127.0.0.1:65535", "[::1]:8000"] {
            let address: SocketAddr = address.parse().unwrap();
            let text = welcome(address, Some(AuthChoice::Dev), None);
            let columns: Vec<_> = text
                .lines()
                .filter(|line| line.starts_with("  "))
                .map(|line| line.rfind("   (").unwrap())
                .collect();
            assert_eq!(columns.len(), 5);
            assert!(columns.iter().all(|column| *column == columns[0]), "{text}");
        }
    }
}
