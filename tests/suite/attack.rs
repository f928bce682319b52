//! Attacks on a server process from outside, through the bytes of its streams and its socket.
//!
//! The guarantees: no input ends the process or prevents the next request; every request whose id can be read is answered
//! once; nothing grows without bound; no internal detail is revealed. Ids that begin with R- are attack cases that other
//! servers are known to have failed.

mod abandoned;
#[cfg(target_os = "linux")]
mod batches;
mod bodies;
#[cfg(target_os = "linux")]
mod cost;
#[cfg(unix)]
mod files;
mod forged;
mod garbage;
mod grants;
mod heads;
mod lines;
mod load;
mod revocation;
mod sessions;
mod shares;
mod site;
mod slow_bodies;
mod unread;

use serde_json::{Value, json};

use crate::wire::envelope;
use crate::{ENVELOPE, HANDSHAKE};

const ERAS: [&str; 2] = [HANDSHAKE, ENVELOPE];

/// Builds a request with the members that its era requires.
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

/// Checks that a text contains no internal detail of the server.
fn reveals_no_internals(text: &str) {
    for secret in
        ["secret-internal-detail", "panicked", "serde", "src/", ".rs", "line 1 column", "attacked::"]
    {
        assert!(!text.contains(secret), "{secret:?} in {text}");
    }
}
