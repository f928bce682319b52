//! Configuration files: both spellings, faults that name their member, variables and secrets.

use super::*;
use crate::client::OpenError;

fn opened(entry: &str) -> Result<String, String> {
    let config = McpConfig::parse(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#));
    let config = config.map_err(|error| error.to_string())?;
    let lookup = |name: &str| (name == "TOKEN").then(|| "secret".to_owned());
    match config.entries()[0].location_with(lookup) {
        Ok(location) => Ok(format!("{location:?}")),
        Err(OpenError::Config(error)) => Err(error.to_string()),
        Err(other) => Err(format!("other: {other}")),
    }
}

#[test]
fn both_spellings_are_read_in_order_and_disabled_servers_are_left_out() {
    for name in ["mcpServers", "servers"] {
        let text = format!(
            r#"{{"inputs": [], "{name}": {{"b": {{"command": "x"}}, "off": {{"command": "y", "disabled": true}},
                "a": {{"type": "http", "url": "https://a.example/mcp", "unknown": 1}}}}}}"#
        );
        let config = McpConfig::parse(&text).unwrap();
        let names: Vec<_> = config.entries().iter().map(ServerEntry::name).collect();
        assert_eq!(names, ["b", "a"]);
        assert!(config.entry("off").is_none());
    }
}

#[test]
fn a_fault_names_the_file_and_the_member() {
    let check = |text: &str, expected: &str| {
        let error = McpConfig::parse(text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check("{", "mcp.json is not valid JSON: EOF while parsing");
    check("[]", "mcp.json is not valid JSON: invalid type: sequence");
    check("{}", "mcp.json:1: mcpServers: it is missing, and so is `servers`");
    check(r#"{"servers": {}, "mcpServers": {}}"#, "mcp.json:1: servers: the file has `mcpServers` too");
    check(r#"{"servers": []}"#, "mcp.json:1: servers: it must be an object");
    check(
        r#"{"servers": {"a": {"command": "x"}, "a": {"command": "y"}}}"#,
        "mcp.json:1: servers: it must be an object",
    );
    check(r#"{"servers": {"s": 1}}"#, "mcp.json:1: servers.s: it must be an object");
    check(r#"{"servers": {"s": {}}}"#, "mcp.json:1: servers.s.command: it is missing");
    check(r#"{"servers": {"s": {"type": "http"}}}"#, "mcp.json:1: servers.s.url: it is missing");
    check(
        r#"{"servers": {"s": {"command": "x", "url": "y"}}}"#,
        "mcp.json:1: servers.s.url: the entry has a `command` too",
    );
    check(r#"{"servers": {"s": {"command": ["x"]}}}"#, "mcp.json:1: servers.s.command: it must be a string");
    check(
        r#"{"servers": {"s": {"command": "x", "args": [1]}}}"#,
        "mcp.json:1: servers.s.args: it must be an array of strings",
    );
    check(
        r#"{"servers": {"s": {"command": "x", "env": {"A": 1}}}}"#,
        "mcp.json:1: servers.s.env: it must be an object of strings",
    );
    check(
        r#"{"servers": {"s": {"type": "pigeon", "url": "x"}}}"#,
        "mcp.json:1: servers.s.type: `pigeon` is not `stdio`, `http` or `sse`",
    );
    check(
        "{\n  \"servers\": {\n    \"s\": {\n      \"command\": \"x\",\n      \"args\": 1\n    }\n  }\n}",
        "mcp.json:5: servers.s.args: it must be an array of strings",
    );
    check("{\n  \"servers\": {\n    \"s\": {}\n  }\n}", "mcp.json:3: servers.s.command: it is missing");
    let huge = format!(r#"{{"servers": {{}}, "x": "{}"}}"#, "x".repeat(1024 * 1024));
    check(&huge, "mcp.json: the file: it is larger than 1 MiB");
    let missing = McpConfig::read("no/such/mcp.json").unwrap_err().to_string();
    assert_eq!(missing, "no/such/mcp.json cannot be read");
}

/// No value of an entry appears in its `Debug`: it may be a secret.
#[test]
fn variables_are_expanded_and_secrets_are_not_shown() {
    let http = r#"{"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}"#;
    let shown = opened(http).unwrap();
    assert!(shown.contains("a.example") && !shown.contains("secret"), "{shown}");
    let stdio = opened(r#"{"command": "${NONE:-server}", "args": ["--key", "${env:TOKEN}"]}"#).unwrap();
    assert!(stdio.contains(r#""server""#), "{stdio}");
    let sse = opened(r#"{"type": "sse", "url": "http://b.example/sse"}"#).unwrap();
    assert!(sse.starts_with("HttpSse") && sse.contains("b.example"), "{sse}");
    let check = |entry: &str, fault: &str| assert_eq!(opened(entry).unwrap_err(), fault);
    let unset = "the environment variable `NONE` is not set";
    check(
        r#"{"command": "x", "env": {"A": "${NONE}"}}"#,
        &format!("mcp.json:1: mcpServers.s.env.A: {unset}"),
    );
    check(r#"{"url": "http://${NONE}"}"#, &format!("mcp.json:1: mcpServers.s.url: {unset}"));
    check(
        r#"{"url": "http://a", "headers": {"X": "${NONE}"}}"#,
        &format!("mcp.json:1: mcpServers.s.headers.X: {unset}"),
    );
    check(r#"{"url": "ftp://a"}"#, "other: 'ftp://a' is not a URL that begins with http:// or https://");
    let entry = McpConfig::parse(r#"{"servers": {"s": {"command": "x", "args": ["secret"]}}}"#).unwrap();
    assert!(!format!("{entry:?}").contains("secret"));
}
