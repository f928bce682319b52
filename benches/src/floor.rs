//! A server without a protocol, as the lower bound of the cost: reads id, method and params with `serde_json` and writes
//! the response.
//!
//! It has no validation, negotiation, state or correlation. The echoed text is copied as JSON; the list of tools is
//! rendered once. Any further cost of a server is the price of its protocol.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Response to a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// None: the message was a notification.
    Nothing,
    /// The written text.
    Whole,
    /// The written text, with a new session if the transport has sessions.
    Opened,
    /// Notifications, then a response.
    Telling(Telling),
}

#[derive(Deserialize)]
struct Outline<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    uri: Cow<'a, str>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<Meta<'a>>,
}

#[derive(Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "progressToken")]
    token: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Echo<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize)]
struct Steps {
    n: u64,
}

/// Answers a message and appends to `out`. An unknown message gets an error without a reason.
pub fn answer(message: &[u8], out: &mut Vec<u8>) -> Answer {
    let Ok(outline) = serde_json::from_slice::<Outline<'_>>(message) else {
        return refuse(out, "null");
    };
    let Some(id) = outline.id.map(RawValue::get) else { return Answer::Nothing };
    let params = outline.params.map_or("{}", RawValue::get);
    match &*outline.method {
        "tools/call" => call(out, id, params).unwrap_or_else(|| refuse(out, id)),
        "tools/list" => result(out, id, &[r#""ttlMs":0,"cacheScope":"private","tools":"#, &LIST]),
        "resources/read" => read(out, id, params).unwrap_or_else(|| refuse(out, id)),
        "initialize" => {
            result(out, id, &[OPENING]);
            Answer::Opened
        }
        _ => refuse(out, id),
    }
}

const OPENING: &str = r#""protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"floor","version":"1.0.0"}"#;

fn call(out: &mut Vec<u8>, id: &str, params: &str) -> Option<Answer> {
    let params: Params<'_> = serde_json::from_str(params).ok()?;
    let arguments = params.arguments.map_or("{}", RawValue::get);
    match &*params.name {
        "echo" => {
            let Echo { text } = serde_json::from_str(arguments).ok()?;
            Some(content(out, id, text.get()))
        }
        "add" => {
            let Add { a, b } = serde_json::from_str(arguments).ok()?;
            let sum = a + b;
            let text = format!(
                r#""content":[{{"type":"text","text":"{{\"sum\":{sum}}}"}}],"structuredContent":{{"sum":{sum}}}"#
            );
            Some(result(out, id, &[&text]))
        }
        "progress" => {
            let Steps { n } = serde_json::from_str(arguments).ok()?;
            let token = params.meta?.token?.get().to_owned();
            Some(Answer::Telling(Telling { id: id.to_owned(), token, next: 1, last: n }))
        }
        _ => None,
    }
}

fn read(out: &mut Vec<u8>, id: &str, params: &str) -> Option<Answer> {
    let params: Params<'_> = serde_json::from_str(params).ok()?;
    let size: usize = params.uri.rsplit('/').next()?.parse().ok()?;
    open(out, id, &[r#""contents":[{"uri":""#, &params.uri, r#"","mimeType":"text/plain","text":""#]);
    out.resize(out.len() + size, b'x');
    out.extend_from_slice(br#""}]}}"#);
    Some(Answer::Whole)
}

/// Writes one text, which is JSON already.
fn content(out: &mut Vec<u8>, id: &str, text: &str) -> Answer {
    result(out, id, &[r#""content":[{"type":"text","text":"#, text, "}]"])
}

fn result(out: &mut Vec<u8>, id: &str, members: &[&str]) -> Answer {
    open(out, id, members);
    out.extend_from_slice(b"}}");
    Answer::Whole
}

fn open(out: &mut Vec<u8>, id: &str, members: &[&str]) {
    for part in [r#"{"jsonrpc":"2.0","id":"#, id, r#","result":{"resultType":"complete","#] {
        out.extend_from_slice(part.as_bytes());
    }
    for member in members {
        out.extend_from_slice(member.as_bytes());
    }
}

fn refuse(out: &mut Vec<u8>, id: &str) -> Answer {
    // Writing into memory does not fail.
    let _ = write!(out, r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32600,"message":"no"}}}}"#);
    Answer::Whole
}

/// A call that sends progress before its response.
#[derive(Debug, PartialEq, Eq)]
pub struct Telling {
    id: String,
    token: String,
    next: u64,
    last: u64,
}

impl Telling {
    /// Writes the next message; `None` after the response.
    pub fn write_next(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let (step, last) = (self.next, self.last);
        if step > last + 1 {
            return None;
        }
        self.next += 1;
        if step == last + 1 {
            content(out, &self.id, r#""done""#);
            return Some(());
        }
        out.extend_from_slice(
            br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#,
        );
        out.extend_from_slice(self.token.as_bytes());
        write!(out, r#","progress":{step},"total":{last}}}}}"#).ok()
    }
}

/// Renders as many tools as the compared server has, in about as many bytes.
static LIST: LazyLock<String> = LazyLock::new(|| {
    let mut list = String::from("[");
    for name in ["echo", "add", "sleep", "progress", "fail", "panic"] {
        // Writing into memory does not fail.
        let _ = write!(
            list,
            r#"{{"name":"{name}","description":"Does what its name says.","inputSchema":{{"type":"object","properties":{{"text":{{"type":"string"}}}},"required":["text"]}}}},"#
        );
    }
    for number in 0..50 {
        let comma = if number == 0 { "" } else { "," };
        let _ = write!(
            list,
            r#"{comma}{{"name":"dummy_{number:02}","description":"Dummy tool number {number}: stands in for a realistic tool with a short description","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Path of the file to work on"}},"limit":{{"type":["integer","null"],"minimum":0,"description":"Maximum number of entries"}},"recursive":{{"type":["boolean","null"]}}}},"required":["path"]}}}}"#
        );
    }
    list.push(']');
    list
});

#[cfg(test)]
mod tests {
    use super::{Answer, answer};
    use crate::kernel::Kernel;
    use crate::server;
    use duplexer_types::version::ProtocolVersion;

    fn text(message: &str) -> (Answer, String) {
        let mut out = Vec::new();
        let answer = answer(message.as_bytes(), &mut out);
        (answer, String::from_utf8(out).unwrap())
    }

    /// Both servers must have the same work.
    #[test]
    fn its_list_is_as_long_as_that_of_the_server_beside_it() {
        let (_, floor) = text(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"#);
        let server = server::build(server::Offer::default()).unwrap();
        let kernel = Kernel::new(&server, ProtocolVersion::LATEST_ENVELOPE, "tools/list", "").unwrap();
        let mut ours = Vec::new();
        kernel.answer(&mut ours).unwrap();
        let count = |text: &str| {
            let read: serde_json::Value = serde_json::from_str(text).unwrap();
            read["result"]["tools"].as_array().unwrap().len()
        };
        assert_eq!(count(&floor), count(std::str::from_utf8(&ours).unwrap()));
        let (floor, ours) = (floor.len(), ours.len());
        assert!(floor.abs_diff(ours) * 100 < ours * 5, "{floor} bytes beside {ours}");
    }

    #[test]
    fn what_it_does_not_understand_is_an_error_and_a_notification_is_not_answered() {
        for message in [
            "nonsense",
            r#"{"id":1,"method":"other"}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"other"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#,
            r#"{"id":1,"method":"resources/read","params":{"uri":"bench://blob/much"}}"#,
        ] {
            let (answer, text) = text(message);
            assert!(answer == Answer::Whole && text.contains("\"error\""), "{message}: {text}");
            serde_json::from_str::<serde_json::Value>(&text).unwrap();
        }
        assert_eq!(text(r#"{"method":"notifications/initialized"}"#), (Answer::Nothing, String::new()));
    }
}
