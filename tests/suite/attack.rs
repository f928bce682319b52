//! Attacks on a server as strangers see it: a process, and the bytes that go in and come out.
//!
//! The promises: no input ends the process or keeps the next request from being served; every request whose id can be read is
//! answered once; nothing grows without bound; nothing internal is told. Cases that begin with R- are those which other
//! servers are known to have failed.

mod bodies;
mod forged;
mod garbage;
mod heads;
mod lines;
mod load;
mod sessions;
mod site;

use serde_json::{Value, json};

use crate::wire::envelope;
use crate::{ENVELOPE, HANDSHAKE};

const ERAS: [&str; 2] = [HANDSHAKE, ENVELOPE];

/// A request as text, with what its era needs.
fn request(revision: &str, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    if revision == ENVELOPE {
        let mut meta = envelope(ENVELOPE);
        if let Value::Object(own) = params["_meta"].take() {
            own.into_iter().for_each(|(key, value)| meta[key] = value);
        }
        params["_meta"] = meta;
    }
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": method, "params": params })
}

fn echo(revision: &str, id: impl Into<Value>, text: &str) -> Value {
    request(revision, id, "tools/call", json!({ "name": "echo", "arguments": { "text": text } }))
}

/// Nothing of how the server is made is in what it says.
fn tells_no_secrets(said: &str) {
    for secret in
        ["secret-internal-detail", "panicked", "serde", "src/", ".rs", "line 1 column", "attacked::"]
    {
        assert!(!said.contains(secret), "{secret:?} in {said}");
    }
}
