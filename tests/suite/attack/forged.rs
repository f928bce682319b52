//! Forged values that the server must reject: request states, cursors, and URIs with path traversal.

use serde_json::{Value, json};

use super::lines::spawn;
use super::site::{Post, Site};
use super::{ERAS, request, reveals_no_internals};
use crate::wire::{Wire, error_of};
use crate::{ENVELOPE, HANDSHAKE};

fn ask(text: &str, state: &Value) -> Value {
    let able = json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } });
    let mut params = json!({ "name": "ask", "arguments": { "text": text }, "_meta": able });
    if !state.is_null() {
        params["requestState"] = state.clone();
        params["inputResponses"] = json!({ "who": { "action": "accept", "content": { "text": "Eve" } } });
    }
    params
}

/// Variants of a state that must not be accepted.
fn forgeries(state: &str) -> Vec<String> {
    let mut forged =
        vec![String::new(), "x".to_owned(), state[1..].to_owned(), format!("{state}A"), state.repeat(2)];
    // Change one letter in every part.
    for at in (0..state.len()).step_by(state.len().div_ceil(16)) {
        let other = if state.as_bytes()[at] == b'A' { "B" } else { "A" };
        forged.push(format!("{}{other}{}", &state[..at], &state[at + 1..]));
    }
    forged
}

async fn state(wire: &mut Wire) -> Value {
    let asked = wire.result("tools/call", ask("hello", &Value::Null)).await;
    assert_eq!(asked["resultType"], "input_required");
    asked["requestState"].clone()
}

/// Section 1.3: a state opens only on the server that sealed it, for the request it was sealed for, and unmodified.
#[tokio::test]
async fn a_forged_state_is_refused() {
    let mut wire = spawn();
    wire.open(ENVELOPE).await;
    let good = state(&mut wire).await;
    for forged in forgeries(good.as_str().unwrap()) {
        let refused = wire.error("tools/call", ask("hello", &json!(forged))).await;
        assert_eq!(refused.0, -32602, "{forged}");
    }
    assert_eq!(wire.error("tools/call", ask("other arguments", &good)).await.0, -32602);
    for odd in [json!(5), json!({}), json!([good])] {
        assert_eq!(wire.error("tools/call", ask("hello", &odd)).await.0, -32602);
    }
    let mut other = spawn();
    other.open(ENVELOPE).await;
    assert_eq!(other.error("tools/call", ask("hello", &good)).await.0, -32602, "another server's");
    reveals_no_internals(&wire.transcript());
    let done = wire.result("tools/call", ask("hello", &good)).await;
    assert_eq!(done["content"][0]["text"], "hello Eve", "it is still good itself");
}

/// The same over HTTP, where every request can come from a different client.
#[tokio::test]
async fn a_forged_state_is_refused_over_http() {
    let site = Site::open().await;
    let call = async |text: &str, state: &Value| {
        let reply =
            site.send(&Post::of(ENVELOPE, &request(ENVELOPE, 1, "tools/call", ask(text, state)))).await;
        (reply.status, reply.answer())
    };
    let good = call("hello", &Value::Null).await.1["result"]["requestState"].clone();
    for forged in forgeries(good.as_str().unwrap()) {
        let (status, answer) = call("hello", &json!(forged)).await;
        assert_eq!((status, error_of(&answer).0), (400, -32602), "{forged}");
    }
    assert_eq!(error_of(&call("other arguments", &good).await.1).0, -32602);
    assert_eq!(call("hello", &good).await.1["result"]["content"][0]["text"], "hello Eve");
}

/// Only cursors that the server issued are accepted.
#[tokio::test]
async fn a_forged_cursor_is_refused() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        for cursor in ["", "0", "-1", "99999999999999999999", "AAAA", "../..", "\u{0}", &"x".repeat(100_000)]
        {
            for method in ["tools/list", "resources/list", "prompts/list", "resources/templates/list"] {
                let refused = wire.error(method, json!({ "cursor": cursor })).await;
                assert_eq!(refused.0, -32602, "{method} {}", &cursor[..cursor.len().min(20)]);
            }
        }
    }
}

/// CVE-2026-32871, CVE-2026-0621: a URI with path traversal is an unknown resource, and no URI takes long to match.
#[tokio::test]
async fn a_uri_with_path_traversal_is_unknown() {
    for revision in ERAS {
        let mut wire = spawn();
        wire.open(revision).await;
        let unknown = if revision == HANDSHAKE { -32002 } else { -32602 };
        let long = format!("test://files/{}", "a/".repeat(50_000));
        for uri in [
            "test://files/..",
            "test://files/../one",
            "test://files/%2e%2e",
            "test://files/%2e%2e%2fone",
            "test://files/..%5cone",
            "test://files/%2Fetc%2Fpasswd",
            "test://files/a%00b",
            "file:///etc/passwd",
            "test://files/%zz",
            &long,
        ] {
            let (code, text, _) = wire.error("resources/read", json!({ "uri": uri })).await;
            assert_eq!(code, unknown, "{} {text}", &uri[..uri.len().min(60)]);
        }
        let read = wire.result("resources/read", json!({ "uri": "test://files/a%20b" })).await;
        assert_eq!(read["contents"][0]["text"], "a b");
    }
}
